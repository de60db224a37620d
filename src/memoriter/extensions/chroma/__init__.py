"""The vector engine `chroma`: vectors in collections of Chroma, in a folder beside the index."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="chroma",
    vector_engines={
        "chroma": Offer(
            "memoriter.extensions.chroma.tables:engine",
            extra="chroma",
            package="chromadb",
            summary="Collections of Chroma in a folder beside the index.",
        )
    },
)
