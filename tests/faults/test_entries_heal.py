"""A damaged index of entries is built again at every way in, and memory.db is never touched by that."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.records import Selection
from memoriter.testing import HashEmbedder

COUNT = 30


def text_of(number: int) -> str:
    return f"Project heron{number} deploys with quartz{number * 7} on host vega{number}."


def opened(home: Path) -> Memory:
    return Memory.open(home.parent, home=home, embedder=HashEmbedder(), overrides={"search.rerank": False})


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a closed home with some entries, indexed."""
    home = tmp_path_factory.mktemp("sound") / "home"
    with opened(home) as memory:
        for number in range(COUNT):
            memory.remember(text_of(number), "fact")
    return home


@pytest.fixture
def home(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "home")
    return tmp_path / "home"


def zero_page(home: Path, page: int) -> None:
    with (home / "agents/main/entries/index.db").open("r+b") as file:
        file.seek(8192 * page)
        file.write(bytes(8192))


def found(memory: Memory, number: int) -> bool:
    hits = memory.search(f"quartz{number * 7}").hits
    return any(hit.snippet == text_of(number) for hit in hits)


def forget(memory: Memory) -> object:
    return memory.erase(Selection(query=text_of(3))).forgotten


WAYS: dict[str, Callable[[Memory], object]] = {
    "search": lambda memory: found(memory, 5),
    "recall": lambda memory: memory.recall(text_of(5)),
    "add": lambda memory: memory.remember("The office moved to Lyon."),
    "forget": forget,
    "list": lambda memory: memory.entries.list(),
    "page": lambda memory: memory.entries.page(query="quartz35"),
    "pending": lambda memory: memory.entries._context.count_pending(),
    "sync": lambda memory: memory.sync(verify=True),
    "probe": lambda memory: memory.entries._context.probe_vector(),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_works_on_a_damaged_index_of_entries(way: str, home: Path) -> None:
    pages = (home / "agents/main/entries/index.db").stat().st_size // 8192
    for page in range(1, pages, 3):
        zero_page(home, page)
    with opened(home) as memory:
        WAYS[way](memory)
        assert [number for number in range(10, COUNT) if not found(memory, number)] == []


def answers(memory: Memory) -> list[list[tuple[str, float]]]:
    """Return answers that contain every entry, with scores from keywords and from vectors."""
    found = [memory.entries.search(query, limit=COUNT) for query in ("deploys with heron", "quartz host")]
    return [[(hit.entry.text, round(hit.similarity, 6)) for hit in one.hits] for one in found]


@pytest.fixture(scope="module")
def sound_answers(sound: Path) -> list[list[tuple[str, float]]]:
    with opened(sound) as memory:
        return answers(memory)


@pytest.mark.parametrize("missing", [1, 3000, 8191])
def test_an_index_that_ends_within_its_last_page_heals(
    missing: int, home: Path, sound_answers: list[list[tuple[str, float]]]
) -> None:
    file = home / "agents/main/entries/index.db"
    file.write_bytes(file.read_bytes()[:-missing])
    with opened(home) as memory:
        assert answers(memory) == sound_answers


def test_one_changed_bit_in_any_page_changes_no_answer(
    home: Path, sound_answers: list[list[tuple[str, float]]]
) -> None:
    chance, file = random.Random(1), home / "agents/main/entries/index.db"
    sound = file.read_bytes()
    for page in range(len(sound) // 8192):
        data = bytearray(sound)
        data[8192 * page + chance.randrange(8192)] ^= 1 << chance.randrange(8)
        file.write_bytes(data)
        with opened(home) as memory:
            assert answers(memory) == sound_answers, page


@pytest.mark.parametrize("seed", range(6))
def test_random_damage_heals_at_the_next_sync(seed: int, home: Path) -> None:
    chance = random.Random(seed)
    file = home / "agents/main/entries/index.db"
    data = bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 8, 64])):
        at = chance.randrange(len(data))
        data[at : at + chance.choice([1, 16, 512])] = chance.randbytes(1)
    file.write_bytes(data[: chance.choice([len(data), len(data) // 2, len(data)])])
    with opened(home) as memory:
        found(memory, chance.randrange(COUNT))
        memory.sync(verify=True)
        assert [number for number in range(COUNT) if not found(memory, number)] == []


def test_an_interrupted_erasure_does_not_lock_the_entries_behind_a_damaged_index(home: Path) -> None:
    with opened(home) as memory:
        kept = len(memory.entries.list())
    for page in range(1, (home / "agents/main/entries/index.db").stat().st_size // 8192):
        zero_page(home, page)
    with opened(home) as memory:
        receipt = memory.erase(Selection(query=text_of(8)))
        assert len(receipt.forgotten) == 1
        assert len(memory.entries.list()) == kept - 1
        assert not found(memory, 8)
    with opened(home) as memory:
        assert found(memory, 9)


def test_a_forced_sync_builds_the_index_of_entries_again(home: Path) -> None:
    with opened(home) as memory:
        memory.sync(force=True)
        assert found(memory, 5)
