"""The test doubles in `memoriter.testing`."""

from __future__ import annotations

from pathlib import Path

from memoriter.testing import HashEmbedder, sample_workspace
from memoriter.text import tokenize


def test_the_sample_workspace_can_be_searched_in_both_languages(tmp_path: Path) -> None:
    folder = sample_workspace(tmp_path / "workspace")
    tokens = {
        path.relative_to(folder).as_posix(): set(tokenize(path.read_text("utf-8")))
        for path in folder.rglob("*.md")
    }
    assert len(tokens) == 10
    for query, path in {
        "数据库": "memory/projects/backup.md",
        "止损": "memory/projects/investing.md",
        "GitHub备份": "memory/projects/backup.md",
        "ERR_IMAGE_TOO_LARGE": "memory/2026-02-03.md",
        "hazelnuts": "MEMORY.md",
    }.items():
        assert max(tokens, key=lambda name: len(set(tokenize(query)) & tokens[name])) == path


def test_a_hash_embedder_counts_texts_and_queries() -> None:
    embedder = HashEmbedder()
    embedder.embed(["a", "b"])
    embedder.embed_query("c")
    assert (embedder.texts, embedder.queries) == (2, 1)
