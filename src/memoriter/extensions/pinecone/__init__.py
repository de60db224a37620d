"""The vector engine `pinecone`: vectors in namespaces of a Pinecone index, on Pinecone's machines."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="pinecone",
    vector_engines={
        "pinecone": Offer(
            "memoriter.extensions.pinecone.namespaces:engine",
            extra="pinecone",
            package="httpx2",
            summary="Namespaces of a Pinecone index. Vectors leave this machine, texts do not.",
        )
    },
    settings={"pinecone": "memoriter.extensions.pinecone.settings:PineconeSettings"},
    variables={"PINECONE_API_KEY": "pinecone.api_key"},
)
