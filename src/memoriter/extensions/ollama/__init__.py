"""Ollama: embeddings of a server of models."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="ollama",
    # It has no rank: no key shows that the owner has chosen it.
    embedders={
        "ollama": Offer(
            "memoriter.extensions.ollama.embeddings:OllamaEmbedder", extra="ollama", models=("nomic-",)
        )
    },
    settings={"embedding": "memoriter.extensions.vendors.settings:OllamaSettings"},
    variables={"OLLAMA_BASE_URL": "embedding.ollama_base_url"},
    environment=("OLLAMA_",),
)
