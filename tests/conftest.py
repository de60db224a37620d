"""What every test stands on: a home of its own, a clean environment, no model unless it asks for one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from memoriter import Memory
from memoriter.embedding import Embedder
from memoriter.testing import HashEmbedder

OURS = ("MEMORITER_", "MEMORY_DIR", "STORAGE_DIR", "OLLAMA_", "OPENAI_", "GEMINI_", "GOOGLE_", "VOYAGE_")
KEPT = ("MEMORITER_SOAK", "MEMORITER_TEST_MODEL")

hypothesis.settings.register_profile(
    "any machine", deadline=None
)  # how long one example takes is no property
hypothesis.settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test can see or touch the settings and memories of the person who runs it."""
    for name in list(os.environ):
        if name.startswith(OURS) and name not in KEPT:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    root = tmp_path / "workspace"
    (root / "memory").mkdir(parents=True)
    return root


@pytest.fixture
def note(workspace: Path) -> Callable[[str, str], Path]:
    """Writes a note into the workspace."""

    def write(path: str, text: str) -> Path:
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return write


OpenMemory = Callable[..., Memory]


@pytest.fixture
def open_memory(workspace: Path, tmp_path: Path) -> Iterator[OpenMemory]:
    """Opens the workspace's memory, by default with an embedder that needs no model; closes all at the end."""
    opened: list[Memory] = []

    def open_(embedder: Embedder | None = None, **overrides: object) -> Memory:
        settings = {key.replace("__", "."): value for key, value in overrides.items()}
        if embedder is None and "embedding.provider" not in settings:
            embedder = HashEmbedder()
        memory = Memory.open(workspace, home=tmp_path / "state", embedder=embedder, overrides=settings)
        opened.append(memory)
        return memory

    yield open_
    for memory in opened:
        memory.close()
