"""Voyage: embeddings."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="voyage",
    embedders={
        "voyage": Offer(
            "memoriter.extensions.voyage.embeddings:VoyageEmbedder",
            extra="voyage",
            rank=3,
            models=("voyage-",),
        )
    },
    settings={"embedding": "memoriter.extensions.vendors.settings:VoyageSettings"},
    variables={"VOYAGE_API_KEY": "embedding.voyage_api_key"},
    environment=("VOYAGE_",),
)
