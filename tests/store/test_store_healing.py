from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path

import pytest
from store_samples import ALICE, by_hand, put, put_vector, units

from memoriter.errors import StoreBroken, StoreError
from memoriter.files.platform import CAN_REPLACE_OPEN_FILES
from memoriter.store import SqliteIndex, open_index


def fill(index: SqliteIndex) -> None:
    """Fill an index so that each table has its own pages."""
    with index.transaction():
        for number, vector in enumerate(units(60, 8)):
            put_vector(index, f"memory/{number}.md", vector, ALICE)
            put(index, f"notes/{number}.md", " ".join(f"word{number * at}" for at in range(150)))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a closed index with a few hundred pages."""
    folder = tmp_path_factory.mktemp("sound")
    with open_index(folder) as index:
        fill(index)
        assert index.check(deep=True) == []
    assert not (folder / "index.db-wal").exists()
    return folder


@pytest.fixture
def folder(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "copy")
    return tmp_path / "copy"


def works(index: SqliteIndex) -> bool:
    """Return whether the index stores a document and finds it."""
    put(index, "fresh.md", "freshly written")
    fresh = index.keyword(["fresh"], limit=5) + index.keyword(["written"], limit=5)
    return len(fresh) > 0 and index.check(deep=True) == []


def names(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.iterdir() if "replaced" in place.name)


def test_a_sound_index_is_not_healed(folder: Path) -> None:
    with open_index(folder) as index:
        assert (index.healed, index.counts("").files, names(folder)) == (None, 120, [])


def test_a_missing_index_is_created(tmp_path: Path) -> None:
    with open_index(tmp_path / "new") as index:
        assert (index.healed, index.counts("").files, works(index)) == (None, 0, True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"these are my notes, not a database\n" * 40, "file is not a database"),
        (b"\x00" * 5000, "file is not a database"),
        (b"SQLite format 3\x00" + b"\xff" * 4000, "is damaged"),
    ],
)
def test_a_file_that_is_not_a_database_is_deleted(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "index.db").write_bytes(content)
    with open_index(tmp_path) as index:
        assert index.healed is not None
        assert reason in index.healed
        assert works(index)
    assert names(tmp_path) == []


def test_an_empty_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "index.db").touch()
    with open_index(tmp_path) as index:
        assert (index.healed, works(index)) == (f"{index.path} is empty.", True)


def test_what_a_process_left_that_was_killed_while_it_created_an_index_is_removed(tmp_path: Path) -> None:
    for name in ("index.db.new", "index.db.new-wal"):
        (tmp_path / name).write_bytes(b"half a header")
    with open_index(tmp_path) as index:
        assert (index.healed, works(index)) == (None, True)
    assert names(tmp_path) == []


def test_a_database_of_another_program_is_renamed_unchanged(tmp_path: Path) -> None:
    with by_hand(tmp_path / "index.db") as connection:
        connection.execute("create table theirs(x)")
        connection.execute("insert into theirs values('precious')")
    with open_index(tmp_path) as index:
        assert (
            index.healed
            == f"{index.path} is a database of another program. The file was renamed to index.db.replaced-1."
        )
        assert works(index)
    with by_hand(tmp_path / "index.db.replaced-1") as connection:
        assert connection.execute("select x from theirs").fetchall() == [("precious",)]


def test_an_index_of_a_newer_release_is_replaced(folder: Path) -> None:
    with by_hand(folder / "index.db") as connection:
        connection.execute("pragma user_version = 99")
    with open_index(folder) as index:
        assert index.healed is not None
        assert "has schema 99, but this release supports" in index.healed
        assert works(index)


def test_a_folder_in_its_place_is_renamed(tmp_path: Path) -> None:
    (tmp_path / "index.db").mkdir()
    with open_index(tmp_path) as index:
        assert (works(index), names(tmp_path)) == (True, ["index.db.replaced-1"])


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_folder_in_the_place_of_a_side_file_is_renamed(folder: Path, suffix: str) -> None:
    (folder / f"index.db{suffix}").mkdir()
    with open_index(folder) as index:
        assert (works(index), names(folder)) == (True, [f"index.db{suffix}.replaced-1"])


def test_a_file_in_the_place_of_the_folder_is_renamed(tmp_path: Path) -> None:
    (tmp_path / "entries").write_text("mine")
    with open_index(tmp_path / "entries") as index:
        assert works(index)
    assert (tmp_path / "entries.replaced-1").read_text() == "mine"


def test_an_index_with_a_damaged_header_is_not_taken_for_another_program(folder: Path) -> None:
    with by_hand(folder / "index.db") as connection:
        connection.execute("pragma application_id = 7")
    with open_index(folder) as index:
        assert index.healed == f"The header of {index.path} is damaged."
        assert (works(index), names(folder)) == (True, [])


def test_a_replaced_index_leaves_no_copy_of_its_text(folder: Path) -> None:
    with open_index(folder) as index:
        put(index, "a.md", "only in the log: zzsecretzz")
        index.heal("broken")
        works(index)
    assert [file.name for file in folder.rglob("*") if b"zzsecretzz" in file.read_bytes()] == []


def damage_is_met(folder: Path) -> str:
    """Open, use and check a damaged index. Return how the damage was noticed."""
    with open_index(folder) as index:
        if index.healed:
            return "at once" if works(index) else "not healed"
        try:
            index.files()
            index.keyword(["word9", "word3"], limit=20)
            index.chunks(range(200))
            index.nearest(units(1, 8)[0], ALICE, limit=20)
            put(index, "memory/1.md", "changed")
            found = index.check(deep=True)
        except StoreBroken as error:
            found = [str(error)]
        if not found:
            return "harmless"
        index.heal(found[0])
        return "in use" if works(index) and index.healed else "not healed"


@pytest.mark.parametrize("part", [0.0005, 0.003, 0.01, 0.1, 0.3, 0.5, 0.77, 0.9, 0.999])
def test_a_truncated_index_heals(folder: Path, part: float) -> None:
    with (folder / "index.db").open("r+b") as file:
        size = file.seek(0, 2)
        file.truncate(int(size * part))
    assert damage_is_met(folder) in {"at once", "in use"}


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bytes_are_noticed_and_healed(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray((folder / "index.db").read_bytes())
    for _ in range(chance.choice([1, 8, 64])):
        start = chance.randrange(len(data))
        for at in range(start, min(start + chance.choice([1, 16, 512]), len(data))):
            data[at] ^= chance.randrange(1, 256)
    (folder / "index.db").write_bytes(data)
    assert damage_is_met(folder) in {"at once", "in use", "harmless"}


def test_most_of_those_flips_are_noticed(sound: Path, tmp_path: Path) -> None:
    """The control of the test above: 512 damaged bytes in the middle of a page are noticed."""
    chance = random.Random(1)
    met = []
    for number in range(10):
        folder = tmp_path / str(number)
        shutil.copytree(sound, folder)
        data = bytearray((folder / "index.db").read_bytes())
        start = 8192 * chance.randrange(len(data) // 8192)
        data[start : start + 512] = bytes(512)  # a page without its header
        (folder / "index.db").write_bytes(data)
        met.append(damage_is_met(folder))
    assert met.count("harmless") <= 1
    assert "not healed" not in met


def test_damage_to_an_open_index_heals_for_all_its_threads(folder: Path) -> None:
    index = open_index(folder)
    seen: list[int] = []
    healed = threading.Event()
    ready = threading.Event()

    def other() -> None:
        seen.append(index.counts("").files)
        ready.set()
        healed.wait()
        seen.append(index.counts("").files)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait()
    index.heal("the disk has a bad day")
    put(index, "a.md", "one")
    healed.set()
    thread.join()
    assert index.healed == "the disk has a bad day"
    assert (seen, index.check(deep=True)) == ([120, 1], [])
    index.close()


@pytest.mark.posix("an open file is deleted")
def test_a_healed_index_is_not_replaced_by_the_next_thread_or_process(folder: Path) -> None:
    with open_index(folder) as first, open_index(folder) as second:
        assert second.counts("").files == 120  # it has seen the file that is found broken
        first.heal("broken")
        put(first, "a.md", "one")
        second.heal("broken")
        assert (second.healed, list(second.files())) == ("broken", ["a.md"])


@pytest.mark.skipif(CAN_REPLACE_OPEN_FILES, reason="only Windows keeps files that are open")
def test_on_windows_an_index_heals_when_other_programs_have_closed_it(folder: Path) -> None:
    with open_index(folder) as index:
        with open_index(folder) as other:
            assert other.counts("").files == 120
            with pytest.raises(StoreError, match="is damaged and cannot be replaced"):
                index.heal("broken")
        index.heal("broken")
        assert (index.healed, works(index)) == ("broken", True)


@pytest.mark.posix("an open file is deleted")
def test_an_index_deleted_while_in_use_is_created_again(folder: Path) -> None:
    with open_index(folder) as index:
        index.counts("")
        for place in folder.glob("index.db*"):
            place.unlink()
        assert (index.counts("").files, works(index)) == (0, True)


def test_side_files_of_a_replaced_index_are_not_used(folder: Path) -> None:
    with open_index(folder) as index:
        index.heal("broken")
        assert index.nearest(units(1, 8)[0], ALICE, limit=5) == []
