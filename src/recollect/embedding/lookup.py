"""Which embedder answers, and why this one.

Nothing is loaded and nobody is called to decide: a model folder is known by its manifest.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from recollect.embedding.cache import RememberedQueries
from recollect.embedding.checked import Checked
from recollect.embedding.protocol import Embedder
from recollect.errors import EmbedderUnavailable

ENTRY_POINTS = "recollect.embedders"  #: group of callables that take no argument and return an Embedder
BUNDLED = Path(__file__).parent / "models"

HOW_TO_GET_ONE = (
    "set embedding.model_path (RECOLLECT_EMBEDDING__MODEL_PATH) to a folder with an ONNX model "
    "and its tokenizer.json"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The embedder that was found, or none, and the reason in words."""

    embedder: Embedder | None
    provider: str
    model: str
    reason: str
    wanted: bool = True  #: False: vectors were asked for and cannot be had

    @classmethod
    def given(cls, embedder: Embedder) -> Self:
        """An embedder that the caller made."""
        identity = embedder.identity
        return cls(Checked(embedder), identity.provider, identity.model, "given by the caller")


def resolve(provider: str = "auto", *, model_path: Path | None = None, threads: int = 0) -> Choice:
    """Find the embedder of this name. Never raises: where there is none, the choice says how to get one."""
    if provider == "none":
        return Choice(None, "none", "", "keyword search only, as set")
    try:
        if provider in ("auto", "local"):
            return _local(model_path, threads)
        return _added(provider)
    except EmbedderUnavailable as error:
        return Choice(None, "none", "", f"keyword search only: {error}", wanted=False)


def bundled_model() -> Path | None:
    """The folder of the newest model that came with the package."""
    folders = [manifest.parent for manifest in BUNDLED.glob("*/manifest.json")]
    return max(folders, key=lambda folder: (_version(folder.name), folder.name), default=None)


def _local(model_path: Path | None, threads: int) -> Choice:
    from recollect.embedding.local import LocalEmbedder

    folder = model_path or bundled_model()
    if folder is None:
        raise EmbedderUnavailable(f"no model came with this installation; {HOW_TO_GET_ONE}")
    embedder = LocalEmbedder(folder, threads=threads)
    identity = embedder.identity
    reason = f"the model in {folder}, as set" if model_path else "the model that comes with recollect"
    return Choice(RememberedQueries(Checked(embedder)), identity.provider, identity.model, reason)


def _added(provider: str) -> Choice:
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if provider not in found:
        known = ("auto", "local", "none", *sorted(found))
        near = difflib.get_close_matches(provider[:100], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise EmbedderUnavailable(f"there is no embedder {provider[:100]!r}; {hint}")
    try:
        make: Callable[[], Embedder] = found[provider].load()
        embedder = make()
        identity = embedder.identity
    except Exception as error:
        # A stranger's package may fail in any way; memory goes on with keywords and says so.
        raise EmbedderUnavailable(f"the embedder {provider!r} failed to start: {error}") from error
    return Choice(
        RememberedQueries(Checked(embedder)), identity.provider, identity.model, f"{provider}, as set"
    )


def _version(name: str) -> int:
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else -1
