"""Asking SQLite for the values that may match, and for the members of them that decide it.

What it answers is a first choice: every value that matches is among them, and whoever asked looks at each. What
SQLite would understand otherwise than Python, such as a name with quotes or a text with half a character, is left out
of the question or read whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recollect.records import Condition

EXACT = 2.0**53  #: numbers below this are the same as integers and as floats

_NUMBER = "(json_type(value, ?) not in ('integer', 'real') or value ->> ? {} ?)"
"""A text may hold a number too: SQLite would call it greater than every number."""


@dataclass(frozen=True, slots=True)
class Question:
    """A part of a statement over ``items``."""

    part: str  #: what to read of a value, as JSON
    part_bound: tuple[object, ...]
    clause: str  #: empty, or conditions that begin with "and"
    clause_bound: tuple[object, ...]


def question(names: Iterable[str], conditions: Iterable[Condition]) -> Question:
    """How to read these members of the values that may fulfil all conditions."""
    paths = {name: _path(name) for name in names}
    part, part_bound = "value", list[object]()
    if all(paths.values()):
        members = ", ".join("?, value -> ?" for _ in paths)
        part = f"iif(instr(value, 'NaN'), value, json_object({members}))"  # SQLite would make null of it
        part_bound = [bound for pair in paths.items() for bound in pair]
    clause, bound = "", list[object]()
    for name, sign, wanted in conditions:
        path = _path(name)
        if path is None or not _comparable(wanted):
            continue
        if wanted is None:
            clause, bound = f"{clause} and value ->> ? is null", [*bound, path]
        elif sign == "=":
            clause, bound = f"{clause} and value ->> ? = ?", [*bound, path, wanted]
        else:
            clause, bound = f"{clause} and {_NUMBER.format(sign)}", [*bound, path, path, wanted]
    return Question(part, tuple(part_bound), clause, tuple(bound))


def _path(name: str) -> str | None:
    """Where SQLite finds the member of this name; None for one that it could not name."""
    return f'$."{name}"' if _plain(name) and '"' not in name and "\\" not in name else None


def _comparable(wanted: str | float | None) -> bool:
    if isinstance(wanted, str):
        return _plain(wanted)
    return wanted is None or abs(wanted) < EXACT


def _plain(text: str) -> bool:
    """Whether SQLite takes a text as it is: one with a null or half a character it does not."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
