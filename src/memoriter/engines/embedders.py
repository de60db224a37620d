"""Selection of the embedder that answers a search while the vectors of another one are computed.

The index records whose vectors its rows have. After a change of settings the former embedder keeps answering until
the vectors of the new one are complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoriter.embedding import Choice, Embedder
    from memoriter.store import Index

    Remake = Callable[[str], Choice | None]


@dataclass(frozen=True, slots=True)
class ActiveEmbedder:
    """The embedder whose vectors answer a search, and what the answer says about it."""

    embedder: Embedder | None
    provider: str
    model: str
    note: str | None = None
    #: Whether this is another embedder than the settings name.
    fallback: bool = False


class EmbedderSelector:
    """Selects the embedder that matches the vectors in the index."""

    def __init__(self, index: Index, choice: Choice, remake: Remake | None = None) -> None:
        self._index = index
        self._choice = choice
        self._remake = remake or (lambda _: None)
        #: The former embedder, with the model of the rows for which it was opened.
        self._former: tuple[str, Choice | None] = ("", None)

    def active(self) -> ActiveEmbedder:
        """Return the embedder whose vectors the rows have now."""
        choice = self._choice
        if choice.embedder is None:
            return ActiveEmbedder(
                None, choice.provider, choice.model, choice.reason if choice.missing else None
            )
        model = self._index.meta("model")
        if not model or model == str(choice.embedder.identity):
            note = f"The embedder is {choice.reason}." if choice.instead else None
            is_fallback = choice.instead is not None
            return ActiveEmbedder(choice.embedder, choice.provider, choice.model, note, is_fallback)
        fallback = choice.fallback
        if fallback and fallback.embedder and str(fallback.embedder.identity) == model:
            note = self._index.meta("instead")
            return ActiveEmbedder(fallback.embedder, fallback.provider, fallback.model, note, fallback=True)
        return self._active_former(model, str(choice.embedder.identity))

    @property
    def outdated(self) -> bool:
        """Whether rows have vectors of another embedder than the settings name, or none."""
        embedder = self._choice.embedder
        return embedder is not None and self._index.count_without(str(embedder.identity)) > 0

    def close(self) -> None:
        """Close the former embedder, if one was opened."""
        former = self._former[1]
        if former and former.embedder:
            former.embedder.close()

    def _active_former(self, model: str, configured: str) -> ActiveEmbedder:
        if self._former[0] != model:
            choice = self._remake(self._index.meta("recipe") or "")
            is_usable = choice and choice.embedder and str(choice.embedder.identity) == model
            self._former = (model, choice if is_usable else None)
        former = self._former[1]
        if former and former.embedder:
            note = f"The embedder has changed: the vectors of {model} answer until those of {configured} are complete."
            return ActiveEmbedder(former.embedder, former.provider, former.model, note)
        note = (
            f"Keyword search only: the index has vectors of {model}, whose embedder is no longer available. "
            f"Run `memoriter index` to compute those of {configured}."
        )
        return ActiveEmbedder(None, self._choice.provider, self._choice.model, note)
