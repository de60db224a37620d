"""A lost, damaged or diverged memory.db is reported or followed. It is never replaced silently."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from memoriter import MemoriterError, Memory, StoreBroken
from memoriter.testing import HashEmbedder
from memoriter.tools.doctor import check_memory


def opened(home: Path) -> Memory:
    return Memory.open(home.parent, home=home, embedder=HashEmbedder(), overrides={"search.rerank": False})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a closed home with twenty entries."""
    (tmp_path / "MEMORY.md").write_text("The heron stands in the water.\n")
    with opened(tmp_path / "home") as memory:
        for number in range(20):
            memory.remember(f"Project heron{number} deploys with quartz{number}.", "fact")
    return tmp_path / "home"


@pytest.mark.parametrize("state", ["empty", "missing"])
def test_a_lost_database_is_reported_and_not_replaced(home: Path, state: str) -> None:
    file = home / "agents/main/memory.db"
    file.unlink()
    if state == "empty":
        file.touch()
    with opened(home) as memory:
        with pytest.raises(StoreBroken, match=f"is {state}, although its index knows 20 entries"):
            memory.remember("The office moved to Lyon.")
        answer = memory.search("heron")
        assert [hit.path for hit in answer.hits] == ["MEMORY.md"]
        assert answer.degraded is not None
        assert answer.degraded.startswith(f"Without entries: {file} is {state}")
        wrong = [finding for finding in check_memory(memory, memory.status()) if finding.state == "wrong"]
        assert [finding.name for finding in wrong] == ["entries"]
    assert (file.exists(), file.exists() and file.stat().st_size) == (state == "empty", 0)


def test_the_index_follows_a_diverged_copy_of_the_database(home: Path, tmp_path: Path) -> None:
    """Both copies have the same number of changes after the copy was made, and different entries."""
    shutil.copytree(home, tmp_path / "copy")
    with opened(home) as memory:
        memory.remember("The office moved to Lyon.", "fact")
    with opened(tmp_path / "copy") as memory:
        memory.remember("The garden has a walnut tree.", "fact")
    shutil.copy(tmp_path / "copy/agents/main/memory.db", home / "agents/main/memory.db")
    with opened(home) as memory:
        assert [hit.entry.text for hit in memory.entries.search("walnut", limit=1).hits] == [
            "The garden has a walnut tree."
        ]
        texts = {hit.entry.text for hit in memory.entries.search("Lyon office moved", limit=30).hits}
        assert "The office moved to Lyon." not in texts


def test_a_flipped_letter_in_a_text_is_reported_by_a_deep_check(home: Path) -> None:
    file = home / "agents/main/memory.db"
    data = file.read_bytes()
    assert data.count(b"deploys with quartz7.") >= 2  # the entry and its event
    file.write_bytes(data.replace(b"deploys with quartz7.", b"deploys with quartz8."))
    with opened(home) as memory:
        [damage] = memory.entries.check(deep=True)
        assert damage.startswith("The text of the entry ")


@pytest.mark.parametrize("seed", range(25))
def test_any_damage_to_the_database_is_an_error_of_this_package(home: Path, seed: int) -> None:
    chance = random.Random(seed)
    file = home / "agents/main/memory.db"
    data = bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 4, 30])):
        at = chance.randrange(len(data))
        width = chance.choice([1, 64, 4096])
        data[at : at + width] = chance.choice([bytes, chance.randbytes])(len(data[at : at + width]))
    file.write_bytes(data)
    with opened(home) as memory, suppress(StoreBroken):  # entries that cannot be opened raise at every use
        for work in (
            memory.entries.list,
            lambda: memory.entries.page(query="quartz3"),
            lambda: memory.entries.search("quartz3"),
            memory.entries.stats,
            memory.entries.timeline,
            lambda: [memory.entries.history(entry.id) for entry in memory.entries.list()],
            lambda: list(memory.entries.export()),
            lambda: memory.entries.check(deep=True),
            lambda: memory.recall("quartz3"),
            memory.entries.recalls,
            lambda: memory.remember("The office moved to Lyon."),
            lambda: memory.forget(query="Project heron3 deploys with quartz3."),
            memory.entries.cleanup,
        ):
            with suppress(MemoriterError):
                work()
        memory.search("heron")
    assert file.stat().st_size >= len(data) - 8192 * 4
