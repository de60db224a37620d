"""OpenAI, and servers with an OpenAI-compatible API: embeddings and chat."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="openai",
    embedders={
        "openai": Offer(
            "memoriter.extensions.openai.embeddings:OpenAIEmbedder",
            extra="openai",
            rank=1,
            models=("text-embedding-",),
        )
    },
    chats={"openai": Offer("memoriter.extensions.openai.chat:OpenAIChat", extra="openai")},
    settings={"embedding": "memoriter.extensions.vendors.settings:OpenAISettings"},
    variables={"OPENAI_BASE_URL": "embedding.openai_base_url", "OPENAI_API_KEY": "embedding.openai_api_key"},
    environment=("OPENAI_",),
)
