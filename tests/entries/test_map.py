"""The map: stable, similar entries near each other, stored, and deleted when an entry is forgotten."""

from __future__ import annotations

import itertools
import json
import stat
import threading
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.soak.bytescan import holders
from memoriter.entries import Draft, Entries
from memoriter.entries.map import MapBuilder, project
from memoriter.records import Entry
from memoriter.store import entry_rows
from memoriter.store.entry_store import Edit

TEXTS = [f"{what} number {n}" for what in ("Herons nest in marshes", "我喜欢喝绿茶") for n in range(6)]


@pytest.fixture
def filled(entries: Entries) -> Entries:
    records = [Entry(str(uuid.UUID(int=n)), text, created_at=1.0) for n, text in enumerate(TEXTS)]
    entries._store.apply([Edit("add", one) for one in records], at=1.0, by="test")
    return entries


def places(entries: Entries) -> dict[str, tuple[float, float]]:
    return {point.entry.id: (point.x, point.y) for point in entries.map().points}


def test_similar_entries_are_near_each_other(filled: Entries) -> None:
    drawn = filled.map()
    assert (len(drawn.points), drawn.total, drawn.method, drawn.degraded) == (12, 12, "pca", None)
    assert max(abs(value) for point in drawn.points for value in (point.x, point.y)) == pytest.approx(1)
    herons = [point.x for point in drawn.points if "Herons" in point.entry.text]
    tea = [point.x for point in drawn.points if "绿茶" in point.entry.text]
    assert max(herons) < min(tea) or max(tea) < min(herons)


def test_the_map_is_stored_and_rebuilt_when_missing_outdated_or_damaged(filled: Entries, open_: Any) -> None:
    path = filled._maps.path
    first = places(filled)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = json.loads(path.read_text())
    kept["places"] = {id_: [0.5, 0.5] for id_ in kept["places"]}
    path.write_text(json.dumps(kept))
    assert set(places(open_()).values()) == {(0.5, 0.5)}  # it was read, not built again
    for torn in ("", "{", "[]", '{"of": 1}', '{"of": null, "places": 7}'):
        path.write_text(torn)
        assert places(filled) == first
    filled.add_draft(Draft("Something new"))
    assert len(places(filled)) == 13


def test_a_smaller_map_is_a_part_of_the_whole_one(filled: Entries) -> None:
    whole = places(filled)
    some = filled.map(5)
    assert len(some.points) == 5
    assert {point.entry.id: (point.x, point.y) for point in some.points}.items() <= whole.items()


def test_a_stored_map_reads_only_the_entries_it_shows(
    filled: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    places(filled)
    read, entry_of = list[object](), entry_rows.entry_of
    monkeypatch.setattr(entry_rows, "entry_of", lambda row: read.append(row) or entry_of(row))
    drawn = filled.map(5)
    assert (len(drawn.points), drawn.total, len(read)) == (5, len(TEXTS), 5)


def test_without_an_embedder_there_is_no_map_but_a_message(tmp_path: Path) -> None:
    from memoriter.entries.opening import open_entries

    entries = open_entries(tmp_path / "other")
    try:
        entries.add_draft(Draft("I drink tea"))
        drawn = entries.map()
        assert drawn.points == ()
        assert drawn.degraded == "The map needs an embedder: entries have no vectors."
    finally:
        entries.close()


def test_the_map_shows_the_entries_that_could_be_embedded_in_time(entries: Entries) -> None:
    records = [Entry(str(uuid.UUID(int=n)), f"Statement number {n}", created_at=1.0) for n in range(150)]
    entries._store.apply([Edit("add", one) for one in records], at=1.0, by="test")
    seconds = itertools.count(0.0, 1.5)
    pictures = MapBuilder(entries._store, entries._follower, lambda: 2.0, elapsed=lambda: next(seconds))
    drawn = [pictures.build() for _ in range(4)]
    assert [(len(one.points), one.total, one.degraded) for one in drawn] == [
        (64, 150, "86 entries have no vector yet and are not shown."),
        (128, 150, "22 entries have no vector yet and are not shown."),
        (150, 150, None),
        (150, 150, None),
    ]
    assert drawn[3].points == drawn[2].points
    assert entries._follower.index.count_without(entries._follower.model) == 0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_map_of_few_entries(entries: Entries, count: int) -> None:
    for text in ("I drink tea", "The heron nests", "Berlin is a city")[:count]:
        entries.add_draft(Draft(text))
    assert len(places(entries)) == count


def test_only_active_entries_are_on_the_map(filled: Entries) -> None:
    gone = TEXTS.index("我喜欢喝绿茶 number 3")
    filled.supersede(str(uuid.UUID(int=gone)), "我喜欢喝咖啡")
    assert str(uuid.UUID(int=gone)) not in places(filled)


def test_a_forgotten_entry_is_removed_from_the_map(filled: Entries, tmp_path: Path) -> None:
    places(filled)
    victim = str(uuid.UUID(int=0))
    assert any(name.endswith("map.json") for name in holders(tmp_path / "agent", victim))
    filled.erase(victim)
    assert not filled._maps.path.exists()
    assert victim not in places(filled)
    assert all("map" not in name for name in holders(tmp_path / "agent", victim))


def test_a_map_built_during_a_forget_is_not_stored(
    filled: Entries, open_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing, forgotten = threading.Event(), threading.Event()
    keep = filled._maps._store

    def late(seq: int, found: Any) -> None:
        drawing.set()
        assert forgotten.wait(120)
        keep(seq, found)

    monkeypatch.setattr(filled._maps, "_store", late)
    thread = threading.Thread(target=filled.map)
    thread.start()
    assert drawing.wait(120)
    open_().erase(str(uuid.UUID(int=0)))
    forgotten.set()
    thread.join(120)
    assert [path.name for path in filled._maps.path.parent.glob("map*")] == []


def test_completing_an_interrupted_erasure_deletes_the_map(
    filled: Entries, open_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    places(filled)
    monkeypatch.setattr(filled._eraser, "complete", lambda _: ())
    filled.erase(str(uuid.UUID(int=0)))
    assert filled._maps.path.exists()
    filled.close()
    open_()
    assert not filled._maps.path.exists()


@pytest.mark.parametrize("shape", [(40, 8), (8, 40), (600, 520)])
def test_the_axes_are_the_principal_ones(shape: tuple[int, int]) -> None:
    spread = np.full(shape[1], 0.01)
    spread[3], spread[5] = 10, 4
    rows = (np.random.default_rng(7).normal(size=shape) * spread).astype(np.float32)
    found = project(rows)
    for place, column in ((0, 3), (1, 5)):
        wanted = rows[:, column] - rows[:, column].mean()
        other = rows[:, 8 - column] - rows[:, 8 - column].mean()
        apart = wanted - other * (wanted @ other) / (other @ other) if place else wanted
        assert np.corrcoef(found[:, place], apart)[0, 1] > 0.9
    assert np.array_equal(found, project(rows))


def test_equal_vectors_are_in_the_middle() -> None:
    assert not project(np.ones((5, 8), dtype=np.float32)).any()
