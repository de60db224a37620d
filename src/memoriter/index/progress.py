"""How far a derived index has come in following a store of record by its sequence numbers.

The mark is kept in the index itself, so that it is true of exactly the rows beside it, and beside it the tokenizer that
made their keywords: rows of another are made again. Several processes follow at once, and each may be killed at any
point: whatever the mark covers is in the index, always; what lies after it may be there as well.
"""

from __future__ import annotations

from typing import Protocol

from memoriter.store.index import Index
from memoriter.text import TOKENIZER_VERSION

_TOKENIZER = "tokenizer"


class Numbered(Protocol):
    """A store of record whose changes are numbered."""

    @property
    def store_id(self) -> str:
        """What tells it from every other store."""

    def seq(self) -> int:
        """The number of the newest change."""


class Reached:
    """The mark of one index about one store: "<store> <number>"."""

    def __init__(self, index: Index, key: str, store: Numbered) -> None:
        self._index = index
        self._key = key
        self._store = store

    def begin(self) -> int:
        """The change after which to go on. An index that cannot be built upon is emptied, and begins at 0."""
        # Before the store's own number, which is never behind a mark that was there already.
        known = self._known()
        if known is not None and known <= self._store.seq():
            return known
        with self._index.transaction():
            known = self._known()
            if known is not None and known <= self._store.seq():
                return known  # another process was quicker
            # Together with the mark: were it emptied under a mark that still stood, what that covers would be lost.
            self._index.clear()
            self._set(0)
        return 0

    def note(self, since: int, now: int) -> None:
        """All that came after ``since`` up to ``now`` was taken in.

        Not where another has brought it further, nor where the index was begun anew meanwhile and has not come to
        ``since`` again.
        """
        if since == now:
            return
        with self._index.transaction():
            known = self._known()
            if known is not None and since <= known < now:
                self._set(now)

    def _known(self) -> int | None:
        if self._index.meta(_TOKENIZER) != str(TOKENIZER_VERSION):
            return None
        store, _, number = (self._index.meta(self._key) or "").partition(" ")
        return int(number) if store == self._store.store_id and number.isdecimal() else None

    def _set(self, number: int) -> None:
        mark = f"{self._store.store_id} {number}"
        self._index.set_meta(**{self._key: mark, _TOKENIZER: str(TOKENIZER_VERSION)})
