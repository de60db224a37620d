"""Match names and paths against globs in bounded time, whatever the pattern.

A glob comes from a settings file of a workspace, which may come from a stranger. A regular expression with many stars
can take minutes for one name. Here, only the last star is ever tried again, so the time is at most the product of the
lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")


def matches(glob: str, name: str) -> bool:
    """Return whether a name matches a glob with ``*`` and ``?``, ignoring case.

    >>> matches("memory_*", "Memory_Search"), matches("a?c", "abbc")
    (True, False)
    """
    return _matches(glob.casefold(), name.casefold(), "*", lambda one, char: one in ("?", char))


@dataclass(frozen=True, slots=True)
class PathGlobs:
    """Globs for relative paths with "/". ``**`` matches any folders. No wildcard matches a leading dot."""

    globs: tuple[str, ...]

    def matches(self, path: str) -> bool:
        """Return whether a path matches one of the globs."""
        globs = (glob.removeprefix("./").split("/") for glob in self.globs)
        paths = ([*parts, "*"] if parts[-1] == "**" else parts for parts in globs)
        segments = path.split("/")
        return any(_matches(parts, segments, "**", _fits, lambda part: part[:1] != ".") for parts in paths)


def _fits(glob: str, segment: str) -> bool:
    return (not segment.startswith(".") or glob.startswith(".")) and matches(glob, segment)


def _matches(
    pattern: Sequence[S],
    items: Sequence[T],
    star: S,
    fits: Callable[[S, T], bool],
    may_skip: Callable[[T], bool] = lambda _: True,
) -> bool:
    """Match items against a pattern in which a star stands for any number of items that may be skipped."""
    at = place = 0
    retry: tuple[int, int] | None = None
    while at < len(items):
        if place < len(pattern) and pattern[place] == star:
            place += 1
            retry = (at, place)
        elif place < len(pattern) and fits(pattern[place], items[at]):
            at, place = at + 1, place + 1
        elif retry is not None and may_skip(items[retry[0]]):
            retry = (retry[0] + 1, retry[1])
            at, place = retry
        else:
            return False
    return all(one == star for one in pattern[place:])
