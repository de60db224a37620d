"""Labelled sets in their uniform form: JSON lines in, frozen values out.

A set is a folder with `corpus.jsonl` and `queries.jsonl`; a pair `corpus_session.jsonl` / `queries_session.jsonl`
beside them is a set of its own, named `<folder>_session`. What is done with a set is not decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

#: The sets that are part of this repository.
OWN = Path(__file__).parent / "sets"

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that can be found: a turn, a message, a record, a belief."""

    id: str
    group: str
    text: str
    #: "YYYY-MM-DD".
    day: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One question, and the items that answer it."""

    id: str
    group: str
    text: str
    category: str
    relevant: tuple[str, ...]
    #: Evidence grouped by event. Empty means that each item is its own event.
    facets: tuple[tuple[str, ...], ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The answer is exactly the relevant items, possibly none.
    exact: bool = False
    forbidden: tuple[str, ...] = ()
    #: Nothing in the corpus answers it.
    abstain: bool = False
    #: "zh" or "en", or "zh → en" when a Chinese question has an English answer.
    language: str = ""
    #: Asked of a group that it does not belong to, to see whether the search notices.
    foreign: bool = False

    @property
    def unanswerable(self) -> bool:
        """Whether nothing in the group answers it."""
        return self.abstain or (self.exact and not self.relevant)


@dataclass(frozen=True, slots=True)
class EvalSet:
    """A labelled set; a search is always limited to the query's group."""

    name: str
    items: tuple[Item, ...]
    queries: tuple[Query, ...]

    def groups(self) -> Iterator[tuple[str, list[Item], list[Query]]]:
        """Each group with its items and its queries; a group that only has queries is included."""
        items: dict[str, list[Item]] = {}
        queries: dict[str, list[Query]] = {}
        for item in self.items:
            items.setdefault(item.group, []).append(item)
        for query in self.queries:
            queries.setdefault(query.group, []).append(query)
        for group in sorted(items.keys() | queries.keys()):
            yield group, items.get(group, []), queries.get(group, [])

    def with_foreign(self, count: int) -> EvalSet:
        """Return the set with questions of each group asked of the next group, where nothing answers them."""
        groups = [queries for _, _, queries in self.groups() if queries]
        if len(groups) < 2:
            return self
        foreign = [
            replace(
                query,
                id=f"{query.id} in {queries[0].group}",
                group=queries[0].group,
                relevant=(),
                facets=(),
                roles={},
                exact=False,
                abstain=True,
                foreign=True,
            )
            for queries, others in zip(groups, [*groups[1:], groups[0]], strict=True)
            for query in _spread([other for other in others if other.relevant], count)
        ]
        return replace(self, queries=(*self.queries, *foreign))


def _spread(queries: Sequence[Query], count: int) -> Sequence[Query]:
    return queries[:: max(1, len(queries) // count)][:count] if count else ()


def find_sets(folder: Path) -> dict[str, tuple[Path, Path]]:
    """The sets below a folder: name → corpus file, queries file."""
    found = {}
    for corpus in sorted(folder.glob("*/corpus*.jsonl")):
        suffix = corpus.stem.removeprefix("corpus")
        queries = corpus.with_name(f"queries{suffix}.jsonl")
        if queries.exists():
            found[corpus.parent.name + suffix] = (corpus, queries)
    return found


def load_set(name: str, corpus: Path, queries: Path) -> EvalSet:
    """Read one set."""
    items = tuple(_item(row) for row in _rows(corpus))
    texts = {item.id: item.text for item in items}
    return EvalSet(name, items, tuple(_query(row, texts) for row in _rows(queries)))


def language_of(text: str) -> str:
    """Chinese by two Han characters: names and identifiers in Latin letters do not count against it."""
    return "zh" if len(re.findall(r"[\u4e00-\u9fff]", text)) >= 2 else "en"


def parse_day(time: str) -> str | None:
    """The day in the forms that the sets use.

    >>> parse_day("1:56 pm on 8 May, 2023"), parse_day("March-15-2024"), parse_day("2025-05-12 19:35:20")
    ('2023-05-08', '2024-03-15', '2025-05-12')
    """
    if found := re.search(r"(\d{4})-(\d{1,2})-(\d{1,2})", time):
        return _day(found[1], found[2], found[3])
    if found := re.search(r"(\d{1,2}) ([A-Za-z]+),? (\d{4})", time):
        return _day(found[3], found[2], found[1])
    if found := re.search(r"([A-Za-z]+)[- ](\d{1,2}),?[- ](\d{4})", time):
        return _day(found[3], found[1], found[2])
    return None


def _day(year: str, month: str, day: str) -> str | None:
    number = int(month) if month.isdigit() else _month(month)
    try:
        return date(int(year), number, int(day)).isoformat()
    except ValueError:
        return None


def _month(name: str) -> int:
    """Return the number of the month, or 0 if the word does not name one."""
    return next((n for n, month in enumerate(_MONTHS, 1) if month == name.lower()[:3]), 0)


def _rows(path: Path) -> Iterator[dict[str, object]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def _item(row: Mapping[str, object]) -> Item:
    return Item(str(row["id"]), str(row["group"]), str(row["text"]), parse_day(str(row.get("time") or "")))


def _query(row: Mapping[str, object], texts: Mapping[str, str]) -> Query:
    relevant = _ids(row["relevant"])
    asked = language_of(str(row["query"]))
    answered = next((language_of(texts[item]) for item in relevant if item in texts), asked)
    facets, roles = row.get("facets"), row.get("roles")
    return Query(
        id=str(row["id"]),
        group=str(row["group"]),
        text=str(row["query"]),
        category=str(row.get("category", "")),
        relevant=relevant,
        facets=tuple(_ids(facet) for facet in facets) if isinstance(facets, list) else (),
        roles={name: _ids(ids) for name, ids in roles.items()} if isinstance(roles, dict) else {},
        exact=bool(row.get("exact")),
        forbidden=_ids(row.get("forbidden")),
        abstain=bool(row.get("abstain")) or (not relevant and not row.get("exact")),
        language=asked if asked == answered else f"{asked} → {answered}",
    )


def _ids(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
