"""mem0: every note as one raw memory (`infer=False`), because its extraction needs a language model."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from lab.evals.peers.drivers.lines import arguments, notes, serve

USER = "owner"


def main() -> None:
    """Open the store and answer."""
    given = arguments()
    os.environ |= {
        "HOME": str(given.state),
        "MEM0_DIR": str(given.state / "mem0"),
        "MEM0_TELEMETRY": "False",
        "OPENAI_API_KEY": "none",
    }
    package: Any = import_module("mem0")
    memory = package.Memory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "path": str(given.state / "qdrant"),
                    "on_disk": True,
                    "embedding_model_dims": given.dimensions,
                },
            },
            "embedder": {
                "provider": "openai",
                "config": {"model": given.model, "openai_base_url": given.url},
            },
            "llm": {"provider": "openai", "config": {"openai_base_url": given.url, "api_key": "none"}},
            "history_db_path": str(given.state / "history.db"),
        }
    )

    def index() -> None:
        for path, text in notes(given.workspace).items():
            memory.add(text, user_id=USER, metadata={"path": path}, infer=False)

    def search(query: str, limit: int) -> list[str]:
        found = memory.search(query, filters={"user_id": USER}, top_k=limit, threshold=0.0)
        return [hit["metadata"]["path"] for hit in found["results"]]

    serve(index, search)


main()
