"""From qmd's results to hits: the workspace's own path, the lines where the text stands now, a snippet of them.

qmd remembers a file as it was when it was indexed. The text that is shown is read from the file itself, so nothing is
shown that is no longer there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memoriter.engines.qmd.command import Row
from memoriter.engines.qmd.sessions import trust_of
from memoriter.notes.chunking import trust_of_note
from memoriter.records import Explanation, Hit, Part, Source
from memoriter.text import snippet


@dataclass(frozen=True, slots=True)
class Page:
    """A file as it is now."""

    path: str  #: as people cite it
    source: Source
    lines: Sequence[str]


def hits_of(
    found: Iterable[tuple[Row, Page]], *, terms: Collection[str], mode: str, snippet_chars: int
) -> Iterator[Hit]:
    """A hit for each result, best first, each file once."""
    seen = set[str]()
    for rank, (row, page) in enumerate(found, 1):
        if page.lines and page.path not in seen:
            seen.add(page.path)
            start, end = lines_now(page.lines, row)
            shown = page.lines[start - 1 : end]
            yield Hit(
                path=page.path,
                start_line=start,
                end_line=end,
                score=row.score,
                snippet=snippet("\n".join(shown), terms, snippet_chars),
                source=page.source,
                citation=f"{page.path}#L{start}-L{end}",
                explain=Explanation(
                    f"qmd {mode}", (Part("qmd", row.score, 1.0, row.score, f"result {rank} of qmd {mode}"),)
                ),
                trust=trust_of(shown) if page.source == "sessions" else trust_of_note(page.lines),
            )


def lines_now(lines: Sequence[str], row: Row) -> tuple[int, int]:
    """Where the result's lines stand in the file, 1-based and inclusive.

    The file may have changed since it was indexed: the same lines are looked for, nearest first, and otherwise
    the old numbers are kept as far as the file reaches.
    """
    wanted = [line.rstrip() for line in row.lines]
    while len(wanted) > 1 and not wanted[-1]:
        wanted.pop()  # qmd counts the end of the file as a line
    # qmd shortens long snippets, so the last line may be a part of one.
    compared = wanted[:-1] or wanted
    places = (row.start_line - 1, *sorted(range(len(lines)), key=lambda at: abs(at + 1 - row.start_line)))
    start = next((at + 1 for at in places if _stands(compared, lines, at)), row.start_line)
    start = min(max(start, 1), len(lines))
    return start, min(start + len(wanted) - 1, len(lines))


def _stands(wanted: Sequence[str], lines: Sequence[str], at: int) -> bool:
    here = lines[at : at + len(wanted)] if at >= 0 else ()
    return len(here) == len(wanted) and all(a == b.rstrip() for a, b in zip(wanted, here, strict=True))
