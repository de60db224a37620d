"""Open a memory over a few notes with a reranker that a person brings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memoriter import Memory

OpenWith = Callable[..., Memory]

NOTES = """# Home
- The boiler was serviced by Mr Huber in March, and the invoice was 240 euros.
- We water the tomatoes on the balcony every second evening during the summer.
- The neighbour's cat is called Minka, and she likes to sleep on our doormat.
- 车库的备用钥匙放在工具箱最下面一层的蓝色盒子里。
"""


def opener(workspace: Path, open_memory: Callable[..., Memory]) -> OpenWith:
    """Write the notes, and return a function that opens the memory with a reranker and its settings."""
    (workspace / "MEMORY.md").write_text(NOTES, "utf-8")

    def open_(reranker: str, settings: dict[str, object], **more: object) -> Memory:
        chosen = {f"reranker__{name}": value for name, value in settings.items()}
        options = {"embedding__provider": "local", "search__rerank": True, **chosen, **more}
        return open_memory(search__reranker=reranker, **options)

    return open_
