"""Whose vectors answer now.

Those that the rows have, which are not always those of the settings: while a new embedder's vectors are being made,
and while a fallback stands in, search goes on with what is there and says so. Making them is `indexing`'s duty.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.embedding import Choice, Embedder
    from recollect.store import Index

    Remake = Callable[[str], Choice | None]


@dataclass(frozen=True, slots=True)
class Served:
    """The embedder that a search may use now, and what is to be said about it."""

    embedder: Embedder | None
    provider: str
    model: str
    note: str | None = None
    fallback: bool = False  #: not the one that the settings name


class Serving:
    """Follows the index: its rows say whose vectors they have."""

    def __init__(self, index: Index, choice: Choice, remake: Remake | None = None) -> None:
        self._index = index
        self._choice = choice
        self._remake = remake or (lambda _: None)
        self._former: tuple[str, Choice | None] = (
            "",
            None,
        )  #: the last that was made again, by its rows' model

    def now(self) -> Served:
        """Whose vectors answer at this moment."""
        choice = self._choice
        if choice.embedder is None:
            return Served(None, choice.provider, choice.model, choice.reason if choice.missing else None)
        model = self._index.meta("model")
        if not model or model == str(choice.embedder.identity):
            note = f"Not {choice.instead} but {choice.reason}." if choice.instead else None
            return Served(choice.embedder, choice.provider, choice.model, note, choice.instead is not None)
        fallback = choice.fallback
        if fallback and fallback.embedder and str(fallback.embedder.identity) == model:
            told = self._index.meta("instead")
            return Served(fallback.embedder, fallback.provider, fallback.model, told, fallback=True)
        return self._from_former(model, str(choice.embedder.identity))

    @property
    def outdated(self) -> bool:
        """Whether rows have other vectors than those of the settings, or lack some."""
        embedder = self._choice.embedder
        if embedder is None:
            return False
        model = self._index.meta("model")
        other = bool(model) and model != str(embedder.identity)
        return other or (self._index.meta("pending") or "0") != "0"

    def close(self) -> None:
        """Close the embedder that was made again."""
        former = self._former[1]
        if former and former.embedder:
            former.embedder.close()

    def _from_former(self, model: str, wanted: str) -> Served:
        if self._former[0] != model:
            made = self._remake(self._index.meta("recipe") or "")
            usable = made and made.embedder and str(made.embedder.identity) == model
            self._former = (model, made if usable else None)
        former = self._former[1]
        if former and former.embedder:
            note = (
                f"The embedder has changed: the vectors of {model} answer until those of {wanted} are made."
            )
            return Served(former.embedder, former.provider, former.model, note)
        note = (
            f"Keyword search only: the index has vectors of {model}, which cannot be used any more, until those of "
            f"{wanted} are made (`recollect index`)."
        )
        return Served(None, self._choice.provider, self._choice.model, note)
