"""Turn the results of qmd into hits, with paths of the workspace, current line numbers and a snippet.

qmd stores a file as it was indexed. Snippets are read from the file itself, so deleted text never appears.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from memoriter.extensions.qmd.command import Row
from memoriter.extensions.qmd.sessions import trust_of
from memoriter.notes.chunking import trust_of_note
from memoriter.records import Explanation, Hit, Part, Source, Trust
from memoriter.text import snippet


@dataclass(frozen=True, slots=True)
class Page:
    """A file as it is now."""

    #: The path in citations.
    path: str
    source: Source
    lines: Sequence[str]
    #: The most that its text can claim.
    trust: Trust = "owner"


def hits_of(
    found: Iterable[tuple[Row, Page]], *, terms: Collection[str], mode: str, snippet_chars: int
) -> Iterator[Hit]:
    """Yield a hit for each result, best first, and at most one for each file."""
    seen = set[str]()
    for rank, (row, page) in enumerate(found, 1):
        if page.lines and page.path not in seen:
            seen.add(page.path)
            start, end = current_lines(page.lines, row)
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
                trust=trust_of(shown) if page.source == "sessions" else trust_of_note(page.lines, page.trust),
            )


def current_lines(lines: Sequence[str], row: Row) -> tuple[int, int]:
    """Return the first and last line of the result in the file, 1-based and inclusive.

    The file may have changed since it was indexed. The nearest place with the same lines counts. Without one, the old
    numbers are kept within the length of the file.
    """
    wanted = [line.rstrip() for line in row.lines]
    while len(wanted) > 1 and not wanted[-1]:
        wanted.pop()  # qmd counts the end of the file as a line
    # qmd shortens long snippets, so the last line may be incomplete.
    compared = wanted[:-1] or wanted
    offsets = (row.start_line - 1, *sorted(range(len(lines)), key=lambda at: abs(at + 1 - row.start_line)))
    start = next((at + 1 for at in offsets if _matches(compared, lines, at)), row.start_line)
    start = min(max(start, 1), len(lines))
    return start, min(start + len(wanted) - 1, len(lines))


def _matches(wanted: Sequence[str], lines: Sequence[str], at: int) -> bool:
    here = lines[at : at + len(wanted)] if at >= 0 else ()
    return len(here) == len(wanted) and all(a == b.rstrip() for a, b in zip(wanted, here, strict=True))
