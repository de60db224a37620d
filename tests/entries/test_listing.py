"""Lists of entries: for every filter each entry appears once, in order, and the totals are right."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.entries import Draft, Entries
from memoriter.records import TRUST_LEVELS, Considered, Entry, Recall
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import Edit

NOW = 1_000_000.0
TYPES = ("fact", "skill", "workflow")
STATES = ("active", "superseded", "staged", "rejected", "expired")

TAGS = ("茶", "birds", "<script>alert(1)</script>", "a'b\"c; drop table entries")


def entry(number: int) -> Entry:
    """Return one of many entries. All combinations occur, and many entries share a sort value."""
    return Entry(
        id=str(uuid.UUID(int=number * 7919 % 1009)),
        text=f"Statement {number} about {'苍鹭' if number % 3 else 'herons'}",
        type=TYPES[number % 3],  # type: ignore[arg-type]
        importance=1.0 + number % 5,
        trust=TRUST_LEVELS[number % 3],  # type: ignore[arg-type]
        state=STATES[number % 5],  # type: ignore[arg-type]
        session=f"s{number % 4}" if number % 2 else None,
        created_at=NOW + number % 17,
        updated_at=NOW + number % 13,
        expires_at=NOW - 1 if number % 11 == 0 else None,
        tags=TAGS[: number % 5],
    )


def put(entries: Entries, records: list[Entry]) -> None:
    entries._context.store.apply([Edit("add", one) for one in records], at=NOW, by="test")


@pytest.fixture
def many(entries: Entries) -> Entries:
    put(entries, [entry(number) for number in range(120)])
    return entries


def walked(entries: Entries, limit: int, **narrowed: Any) -> tuple[list[Entry], set[int]]:
    """Return every entry of every page, and the totals of the pages."""
    found, totals, after = list[Entry](), set[int](), None
    for _ in range(500):
        page = entries.page(limit=limit, after=after, **narrowed)
        found += page.entries
        totals.add(page.total)
        assert len(page.entries) <= limit
        after = page.after
        if after is None:
            return found, totals
    raise AssertionError("the pages never end")


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "types": st.lists(st.sampled_from(TYPES), unique=True).map(tuple),
        "states": st.lists(st.sampled_from(STATES), unique=True).map(tuple),
        "trust": st.lists(st.sampled_from(TRUST_LEVELS), unique=True).map(tuple),
        "tags": st.lists(st.sampled_from(TAGS) | st.text(max_size=5), max_size=2).map(tuple),
        "min_importance": st.floats(0, 5),
        "since": st.floats(NOW - 2, NOW + 20),
        "until": st.floats(NOW - 2, NOW + 20),
        "session": st.sampled_from(["s0", "s1", "unknown"]),
    },
)


SORTS = st.sampled_from(["created", "updated", "importance", "expires"])


def sort_value(one: Entry, sort: str) -> float:
    if sort == "expires":
        return one.expires_at or 1e15
    return float(getattr(one, {"created": "created_at", "updated": "updated_at"}.get(sort, sort)))


@given(limit=st.integers(1, 150), narrowed=FILTERS, sort=SORTS, ascending=st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_pages_of_a_list_hold_every_entry_once(
    many: Entries, limit: int, narrowed: Any, sort: Any, *, ascending: bool
) -> None:
    found, totals = walked(many, limit, sort=sort, ascending=ascending, **narrowed)
    everybody = [many._context.as_of_now(one) for one in many._context.store.find(EntryFilter(states=()))]
    wanted = {one.id for one in everybody if EntryFilter(**narrowed).admits(one)}
    assert sorted(one.id for one in found) == sorted(wanted)
    assert totals == {len(wanted)}
    keys = [(sort_value(one, sort), one.id) for one in found]
    assert keys == sorted(keys, reverse=not ascending)


@given(
    limit=st.integers(1, 50),
    narrowed=FILTERS,
    sort=SORTS,
    offset=st.integers(0, 130),
    number=st.integers(0, 119),
    ascending=st.booleans(),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_page_starts_anywhere_or_contains_a_given_entry(
    many: Entries, limit: int, narrowed: Any, sort: Any, offset: int, number: int, *, ascending: bool
) -> None:
    order = {"sort": sort, "ascending": ascending, **narrowed}
    whole, _ = walked(many, 150, **order)
    page = many.page(limit=limit, offset=offset, **order)
    assert (page.offset, page.entries) == (offset, tuple(whole[offset : offset + limit]))
    named = entry(number).id
    page = many.page(limit=limit, offset=offset, around=named, **order)
    assert page.offset is not None
    assert page.entries == tuple(whole[page.offset : page.offset + limit])
    matches = any(one.id == named for one in whole)
    assert any(one.id == named for one in page.entries) if matches else page.offset == offset


def test_expired_entries_are_listed_as_expired_before_the_cleanup(many: Entries) -> None:
    over = [one for one in many._context.store.find(EntryFilter(states=())) if one.expires_at is not None]
    expired, _ = walked(many, 50, states=("expired",))
    assert {one.id for one in over if one.state == "active"} <= {one.id for one in expired}
    assert {one.state for one in expired} == {"expired"}
    counted = many.facets()
    assert counted.states["expired"] == len(expired)
    assert sum(counted.states.values()) == counted.total == 120
    assert sum(counted.types.values()) == sum(counted.trust.values()) == counted.states["active"]


def test_entries_are_counted_by_source_and_workspace(entries: Entries) -> None:
    put(
        entries,
        [
            replace(entry(0), source="import:mem0", workspace="/a", expires_at=None),
            replace(entry(5), source="import:mem0", workspace="/b"),
            replace(entry(10), source=None, workspace=None),
        ],
    )
    counted = entries.facets()
    assert (counted.sources, counted.workspaces) == ({"import:mem0": 2}, {"/a": 1, "/b": 1})
    found, totals = walked(entries, 10, source="import:mem0", workspace="/a")
    assert ([one.id for one in found], totals) == ([entry(0).id], {1})


def test_a_query_lists_by_score_and_matches_other_states_by_substring(entries: Entries) -> None:
    tea = entries.add_draft(Draft("I drink green tea", "fact", importance=5)).entry
    also = entries.add_draft(Draft("Green tea grows in Hangzhou, 杭州龙井", "fact", importance=1)).entry
    entries.add_draft(Draft("The heron nests in the marsh", "fact"))
    assert tea is not None
    assert also is not None
    put(entries, [replace(entry(2), state="staged", text="GREEN TEA is not approved yet")])
    page = entries.page(query="green tea")
    assert [one.id for one in page.entries] == [tea.id, also.id]
    assert list(page.scores.values()) == sorted(page.scores.values(), reverse=True)
    assert entries.page(query="green tea", states=("staged",)).total == 1
    assert entries.page(query="tea of the marsh", states=("staged",)).total == 0
    every, totals = walked(entries, 1, query="green tea", states=())
    assert (len(every), totals) == (3, {3})
    assert entries.page(query="龙井").entries[0].id == also.id


def test_a_query_does_not_list_entries_that_are_only_slightly_similar(
    open_memory: Callable[..., Memory],
) -> None:
    entries = open_memory(embedding__provider="local").entries
    for text in ("Coffee only before noon", "Vegetarian, and allergic to hazelnuts", "会做酸面包"):
        entries.add(text, "fact")
    for query in ("coffee", "咖啡"):
        assert [one.text for one in entries.page(query=query).entries] == ["Coffee only before noon"]


@pytest.mark.parametrize("query", ["' or 1=1 --", "%", "\0", '"', "NEAR(a b)", "{}", "x" * 8000])
def test_hostile_queries_find_nothing_and_break_nothing(many: Entries, query: str) -> None:
    page = many.page(query=query, states=())
    assert page.total == len(page.entries)


def test_two_thousand_entries_are_read_in_pages(open_in_files: Any) -> None:
    entries = open_in_files()
    records = [replace(entry(n), id=str(uuid.UUID(int=n)), created_at=NOW + n) for n in range(2_000)]
    put(entries, records)
    first = entries.page(limit=100)
    second = entries.page(limit=100, after=first.after)
    assert (len(first.entries), len(second.entries), first.total) == (100, 100, second.total)
    assert {one.id for one in first.entries}.isdisjoint(one.id for one in second.entries)


def test_the_detail_of_an_entry(entries: Entries) -> None:
    old = entries.add_draft(Draft("I live in Berlin", "fact")).entry
    assert old is not None
    new = entries.add_draft(Draft("My home is Hamburg", "fact"), replaces=old.id).entry
    assert new is not None
    found = entries.detail(new.id[:8])
    assert [one.id for one in found.supersedes] == [old.id]
    assert [one.id for one in found.related] == [old.id]
    assert [event.kind for event in found.history] == ["add"]
    assert entries.detail(old.id).entry.superseded_by == new.id


def test_a_store_of_the_first_schema_is_migrated(open_in_files: Any, tmp_path: Any) -> None:
    from memoriter.store.database import Database
    from memoriter.store.entry_rows import APPLICATION_ID, MIGRATIONS

    folder = tmp_path / "agent"
    old = Database(
        folder / "memory.db",
        application_id=APPLICATION_ID,
        migrations=MIGRATIONS[:1],
        synchronous="FULL",
        timeout_s=5,
    )
    old.reader()
    old.close()
    entries = open_in_files()
    done = entries.add_draft(Draft("I drink green tea", "fact"))
    assert [one.id for one in entries.page().entries] == [done.entry.id]
    assert entries._context.store.check(deep=True) == []


def test_the_timeline_counts_events(entries: Entries, clock: Any) -> None:
    assert entries.timeline(since=0, until=0, buckets=5) == []
    old = entries.add_draft(Draft("I live in Berlin", "fact")).entry
    entries.add_draft(Draft("My home is Hamburg", "fact"), replaces=old.id)
    middle = clock.at
    clock.at += 1000
    entries.erase(old.id)
    buckets = entries.timeline(buckets=10)
    assert [sum(counts) for counts in zip(*map(counts_of, buckets), strict=True)] == [2, 1, 1, 0]
    assert all(one.end == two.start for one, two in itertools.pairwise(buckets))
    (before,) = entries.timeline(since=0, until=middle + 1, buckets=1)
    assert counts_of(before) == (2, 1, 0, 0)


def test_the_timeline_counts_what_recalls_added_and_how_the_memory_grew(entries: Entries, clock: Any) -> None:
    start = clock.at
    tea = entries.add_draft(Draft("I drink green tea", "fact")).entry
    clock.at += 10
    entries.add_draft(Draft("I live in Berlin", "fact"))
    found = Considered("entry", tea.id, True, "relevant", 0.9, (), tea.text)
    entries._context.add_recall(Recall("r1", clock.at, "host", None, "tea", 20, 7, (found,), "tea"), [tea.id])
    entries._context.add_recall(Recall("r2", clock.at, "host", None, "tea", 20, 5, (found, found), "tea"), [])
    buckets = entries.timeline(since=start - 5, until=start + 15, buckets=2)
    assert [(one.entries, one.recalls, one.hits, one.tokens) for one in buckets] == [
        (1, 0, 0, 0),
        (2, 2, 3, 12),
    ]


def test_entries_are_listed_by_use(entries: Entries) -> None:
    often, once, never = (
        entries.add_draft(Draft(text, "fact")).entry.id
        for text in ("I drink green tea", "I live in Berlin", "The bus runs hourly")
    )
    entries.mark_used([often, once])
    entries.mark_used([often])
    assert [one.id for one in entries.page(sort="used", used=True).entries] == [often, once]
    assert [one.id for one in entries.page(used=False).entries] == [never]
    assert [one.id for one in entries.list(used=False)] == [never]


def counts_of(bucket: Any) -> tuple[int, ...]:
    return (bucket.captured, bucket.superseded, bucket.forgotten, bucket.recalls)
