"""Entries, their ledger and items behave alike on SQLite and on Postgres. tests/entries runs on both in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from memoriter.entries import Draft, Entries
from memoriter.entries.collection import connect_entries
from memoriter.entries.search import build_filter
from memoriter.errors import EditConflict, NotFound
from memoriter.extensions.langgraph.items.store import ItemStore, Put
from memoriter.records import Considered, Part, Recall
from memoriter.store import open_index
from memoriter.store.entry_lists import PageRequest
from memoriter.store.entry_store import EntryStore, open_file
from memoriter.store.item_schema import open_items_file
from memoriter.store.protocol import Transactions
from memoriter.testing import HashEmbedder

Open = Callable[[str], Transactions]


@pytest.fixture(params=["sqlite", "postgres"])
def open_database(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a function that opens the database of entries or items, on each store in turn."""
    if request.param == "sqlite":
        return lambda area: (open_file if area == "entries" else open_items_file)(tmp_path / f"{area}.db")
    open_ = request.getfixturevalue("postgres_database")
    return lambda area: open_("main", area=area)


@pytest.fixture
def clock() -> Iterator[float]:
    return iter(float(number) for number in range(1_000, 1_000_000))


@pytest.fixture
def entries(open_database: Open, tmp_path: Path, clock: Iterator[float]) -> Iterator[Entries]:
    index = open_index(tmp_path / "index")
    opened = connect_entries(
        lambda: open_database("entries"), index, HashEmbedder(), clock=lambda: next(clock)
    )
    yield opened
    opened.close()


def test_a_life_of_entries(entries: Entries, open_database: Open) -> None:
    tea = entries.add("Alice drinks green tea in the morning", "preference", tags=("drinks", "morning")).entry
    repeated = entries.add("Alice drinks green tea in the morning")
    coffee = entries.add("The office machine makes coffee", "fact", session="s1", importance=4).entry
    assert tea is not None
    assert coffee is not None
    assert (repeated.action, repeated.entry and repeated.entry.repetitions) == ("repeated", 2)
    changed = entries.update(coffee.id, text="The office machine makes espresso", tags=("office",))
    with pytest.raises(EditConflict):
        entries.update(coffee.id, text="Other", if_seq=coffee.seq)
    assert [event.kind for event in entries.history(coffee.id)] == ["add", "update"]
    assert entries.history(coffee.id)[-1].before == coffee
    entries.undo(coffee.id)
    assert entries.get(coffee.id[:8]).text == coffee.text
    assert [hit.entry.id for hit in entries.search("espresso coffee machine", limit=1).hits] == [coffee.id]
    assert [entry.id for entry in entries.list(sort="importance")] == [coffee.id, tea.id]
    assert [entry.id for entry in entries.list(tags=("morning",))] == [tea.id]
    page = entries.page(query="green tea", limit=1)
    assert (page.total, [entry.id for entry in page.entries]) == (1, [tea.id])
    facets = entries.facets()
    assert (facets.total, facets.tags, facets.states) == (2, {"drinks": 1, "morning": 1}, {"active": 2})
    stats = entries.stats()
    assert (stats.total, stats.average_importance) == (2, (tea.importance + coffee.importance) / 2)
    assert sum(bucket.captured for bucket in entries.timeline(buckets=4)) == 2
    receipt = entries.erase(coffee.id)
    assert receipt.forgotten == (coffee.id,)
    assert changed.text not in repr(entries.history(coffee.id))
    assert entries.add_draft(Draft(coffee.text, "fact", on_purpose=False)).action == "refused"
    with pytest.raises(NotFound):
        entries.get(coffee.id)
    store = EntryStore(open_database("entries"))
    assert (store.unfinished(), store.check(deep=True), store.seq()) == ([], [], 6)
    assert store.changed_since(5) == [coffee.id]


def test_pages_of_a_long_list_are_alike(entries: Entries) -> None:
    for number in range(12):
        entries.add(f"Fact {number} about lake{number} and hill{number}", "fact", importance=1 + number % 5)
    seen, after = [], None
    for _ in range(4):
        page = entries.page(sort="importance", limit=5, after=after)
        seen += [entry.text.split()[1] for entry in page.entries]
        after = page.after
        if after is None:
            break
    assert len(seen) == len(set(seen)) == 12
    listed = entries.list(sort="importance")
    assert [entry.importance for entry in listed] == sorted((e.importance for e in listed), reverse=True)


def recall(number: int, refs: tuple[str, ...] = ()) -> Recall:
    considered = tuple(
        Considered(
            "entry", ref, position == 0, "fits", 0.5, (Part("vector", 0.5, 1.0, 0.5),), f"text of {ref}"
        )
        for position, ref in enumerate(refs)
    )
    return Recall(
        f"r{number:03}", float(number), "tools", "s1", "what does alice drink", 100, 25, considered, "block"
    )


def test_the_ledger(entries: Entries, open_database: Open) -> None:
    tea = entries.add("Alice drinks green tea", "preference").entry
    assert tea is not None
    ledger = EntryStore(open_database("entries")).ledger
    for number in range(20):
        ledger.write(recall(number, (tea.id, "other")), [tea.id], max_recalls=16)
    page = ledger.page(ledger_filter(entry=tea.id), limit=2)
    assert (page.total, [head.id for head in page.recalls], page.after) == (
        16,
        ["r019", "r018"],
        (18.0, "r018"),
    )
    assert ledger.get("r019") == recall(19, (tea.id, "other"))
    assert entries.get(tea.id).access_count == 20
    assert ledger.prune(19.0) == 15
    entries.erase(tea.id)
    cleared = ledger.get("r019")
    assert (cleared.query, cleared.block, cleared.considered[0].text) == ("", "", "")


def ledger_filter(**fields: Any) -> Any:
    from memoriter.store.ledger import RecallFilter

    return RecallFilter(**fields)


def test_retention_observes_time_and_waiting_entries(entries: Entries, open_database: Open) -> None:
    tea = entries.add("Alice drinks green tea", "preference", expires_at=10_000.0).entry
    assert tea is not None
    retention = EntryStore(open_database("entries")).retention
    first = retention.observe(1_000_000.0)
    retention.record(("active",), first)
    assert retention.due(("active",), first) == [tea.id]
    assert retention.observe(1_000_100.0) == first + 100
    retention.record(("staged",), first)
    assert retention.due(("active",), first) == []


def test_items(open_database: Open) -> None:
    store = ItemStore(open_database("items"))
    store.put(Put(("users", "ada"), "tea", {"likes": True, "cups": 3}, ("tea",)), at=1.0)
    store.put(Put(("users", "ada", "old"), "café", {"likes": None}), at=2.0)
    store.put(Put(("users-b",), "x", {"cups": 1}, ttl_s=5.0), at=3.0)
    tea = store.get(("users", "ada"), "tea", now=4.0)
    assert tea is not None
    assert (tea.value, tea.texts, tea.created_at, tea.expires_at) == (
        {"likes": True, "cups": 3},
        ("tea",),
        1.0,
        None,
    )
    assert sorted(store.namespaces(now=4.0)) == [("users", "ada"), ("users", "ada", "old"), ("users-b",)]
    under = store.ids_under(("users", "ada"), now=4.0)
    assert len(under) == 2
    assert under[-1] == tea.id
    values = store.values_under((), now=4.0)
    assert (tea.id, 3) in [(item_id, value.get("cups")) for item_id, value in values]
    store.put(Put(("users", "ada"), "tea", {"likes": False}, ("tea",)), at=5.0)
    again = store.get(("users", "ada"), "tea", now=6.0)
    assert again == replace(tea, value={"likes": False}, updated_at=5.0)
    assert [item.key for item in store.expired(now=100.0)] == ["x"]
    assert (store.seq(), list(store.changed_since(3))) == (4, [tea.id])
    store.delete(tea)
    store.mark_for_erasure(tea, ["0" * 64])
    assert store.finish(store.unfinished(), store.seq())
    assert (store.unfinished(), tea.id in store.changed_since(0), store.seq()) == ([], False, 5)


def test_a_filter_means_the_same_in_sql_and_in_python(entries: Entries, open_database: Open) -> None:
    entries.add("Alice drinks green tea", "preference", tags=("drinks",), session="s1", source="chat")
    entries.add("The office has three rooms", "fact", trust="agent", importance=2.0)
    entries.add("Deploy with make release", "decision", session="s2", importance=5.0)
    store = EntryStore(open_database("entries"))
    everything = store.find(build_filter({"states": ()}))
    for filters in (
        {"tags": ("drinks",)},
        {"types": ("fact",)},
        {"trust": ("owner",)},
        {"session": "s2"},
        {"within": ("s1",)},
        {"min_importance": 3.0},
        {"since": everything[1].created_at},
        {"until": everything[1].created_at},
        {"source": "chat"},
    ):
        where = build_filter(filters)  # type: ignore[arg-type]
        assert store.find(where) == [entry for entry in everything if where.admits(entry)]
        rows = store.page(PageRequest(where, now=0.0, sort="updated"))
        assert [asdict(entry) for entry in rows.entries] == [asdict(e) for e in everything if where.admits(e)]
