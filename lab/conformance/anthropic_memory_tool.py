"""The Anthropic SDK's tests of its memory tool on files, on ours. Loaded by pytest with `-p`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import anyio
from anthropic.lib.tools import _beta_builtin_memory_tool as theirs

import memoriter
from memoriter.extensions.anthropic import MemoriterAsyncMemoryTool, MemoriterMemoryTool
from memoriter.extensions.anthropic.agent_folder import split_front_matter
from memoriter.files.durable import make_folder


class _AsTheirs:
    """Created as their tool is, with a folder that the tests look into."""

    memory: Any
    root: Path

    def __init__(self, base_path: str = "./memory") -> None:
        self.root = Path(base_path)
        make_folder(self.root / "memories")
        overrides = {"embedding.provider": "none", "files.folder": "memories"}
        home = tempfile.mkdtemp(prefix="memoriter-conformance-")
        super().__init__(memoriter.open(self.root, home=home, overrides=overrides))  # type: ignore[call-arg]

    @property
    def memory_root(self) -> Path:
        return self.root / "memories"

    @property
    def base_path(self) -> Path:
        """A copy of the notes as Claude sees them: under the names that it gave them, without the front matter."""
        copy = Path(tempfile.mkdtemp(prefix="memoriter-conformance-"))
        for note in self.root.rglob("*.md"):
            shown = copy / str(note.relative_to(self.root)).removesuffix(".md")
            shown.parent.mkdir(parents=True, exist_ok=True)
            shown.write_text(split_front_matter(note.read_text())[1])
        return copy


class StandIn(_AsTheirs, MemoriterMemoryTool):
    """Ours in place of `BetaLocalFilesystemMemoryTool`."""


class AsyncStandIn(_AsTheirs, MemoriterAsyncMemoryTool):
    """Ours in place of `BetaAsyncLocalFilesystemMemoryTool`."""

    @property
    def memory_root(self) -> Any:
        return anyio.Path(self.root / "memories")


theirs.BetaLocalFilesystemMemoryTool = StandIn  # type: ignore[misc,assignment]
theirs.BetaAsyncLocalFilesystemMemoryTool = AsyncStandIn  # type: ignore[misc,assignment]
