"""The keyword leg while others write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from recollect import Memory
from recollect.managers.builtin import BuiltinManager
from recollect.retrieval.keyword import keyword_leg
from recollect.store import Filter, Index


class Earlier:
    """An index that was counted before its newest rows came."""

    def __init__(self, index: Index) -> None:
        self.keyword, self.terms = index.keyword, index.terms

    def total(self) -> int:
        return 1


def test_a_term_may_stand_in_more_chunks_than_were_counted(
    open_memory: Callable[[], Memory], note: Callable[[str, str], Path]
) -> None:
    for number in range(4):
        note(f"memory/{number}.md", f"The tea of day {number}.\n")
    memory = open_memory()
    memory.sync()
    assert isinstance(memory.manager, BuiltinManager)
    leg = keyword_leg(Earlier(memory.manager.index), ["tea"], limit=10, where=Filter())  # type: ignore[arg-type]
    assert len(leg.values) == 4
    assert all(0 < value <= 1 for value in leg.values.values())
