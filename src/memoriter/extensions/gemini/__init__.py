"""Gemini: embeddings of Google."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="gemini",
    embedders={
        "gemini": Offer(
            "memoriter.extensions.gemini.embeddings:GeminiEmbedder",
            extra="gemini",
            rank=2,
            models=("gemini-",),
        )
    },
    settings={"embedding": "memoriter.extensions.vendors.settings:GeminiSettings"},
    variables={"GOOGLE_API_KEY": "embedding.gemini_api_key", "GEMINI_API_KEY": "embedding.gemini_api_key"},
    environment=("GEMINI_", "GOOGLE_"),
)
