"""The vector engine `lancedb`: vectors in tables of LanceDB, in a folder beside the index."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="lancedb",
    vector_engines={
        "lancedb": Offer(
            "memoriter.extensions.lancedb.tables:engine",
            extra="lancedb",
            package="lancedb",
            summary="Tables of LanceDB in a folder beside the index.",
        )
    },
)
