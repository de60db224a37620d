"""memsearch: Markdown files in Milvus Lite, dense vectors and BM25 joined by reciprocal ranks."""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from lab.evals.peers.drivers.lines import arguments, serve


def main() -> None:
    """Open the store and answer."""
    given = arguments()
    os.environ |= {"HOME": str(given.state), "OPENAI_API_KEY": "none"}
    package: Any = import_module("memsearch")
    loop = asyncio.new_event_loop()

    def opened() -> Any:
        return package.MemSearch(
            [str(given.workspace)],
            embedding_provider="openai",
            embedding_model=given.model,
            embedding_base_url=given.url,
            milvus_uri=str(given.state / "milvus.db"),
        )

    store: Any = None

    def index() -> None:
        nonlocal store
        filling = opened()
        loop.run_until_complete(filling.index())
        filling.close()
        # A search is several times faster after the store was closed once. This is also what a user has.
        store = opened()

    def search(query: str, limit: int) -> list[str]:
        hits = loop.run_until_complete(store.search(query, top_k=limit))
        return [str(Path(hit["source"]).relative_to(given.workspace.resolve())) for hit in hits]

    serve(index, search)
    store.close()


main()
