"""A lost, damaged or diverged file of truth is reported or followed. It is never replaced silently."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw
import pytest

from memoriter import MemoriterError, Memory, StoreBroken, StoreError
from memoriter.extensions.backup.creating import create
from memoriter.extensions.langgraph.items import items_of
from memoriter.extensions.langgraph.items.store import Put
from memoriter.records import Selection
from memoriter.sessions.transcripts import Transcripts
from memoriter.store import checksums
from memoriter.testing import HashEmbedder
from memoriter.tools.doctor import check_memory


def opened(home: Path) -> Memory:
    return Memory.open(home.parent, home=home, embedder=HashEmbedder(), overrides={"search.rerank": False})


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a closed home with twenty entries."""
    home = tmp_path_factory.mktemp("sound") / "home"
    with opened(home) as memory:
        for number in range(20):
            memory.remember(f"Project heron{number} deploys with quartz{number}.", "fact")
    shutil.rmtree(home / "agents/main/workspaces")
    return home


@pytest.fixture
def home(sound: Path, tmp_path: Path) -> Path:
    """Return a closed home with twenty entries and the index of a workspace."""
    shutil.copytree(sound, tmp_path / "home")
    (tmp_path / "MEMORY.md").write_text("The heron stands in the water.\n")
    opened(tmp_path / "home").close()
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


@pytest.mark.parametrize("size", [1, 2, 99])
@pytest.mark.parametrize("name", ["memory.db", "items.db"])
def test_a_database_of_a_few_bytes_is_reported_and_not_replaced(home: Path, name: str, size: int) -> None:
    file = home / "agents/main" / name
    file.unlink(missing_ok=True)
    file.write_bytes(b"S" * size)
    with opened(home) as memory:
        wrong = {
            finding.name: finding.text
            for finding in check_memory(memory, memory.status())
            if finding.state == "wrong"
        }
        area = "entries" if name == "memory.db" else "items"
        assert wrong == {area: f"{file} is damaged: it has only {size} bytes."}
    assert file.read_bytes() == b"S" * size


@pytest.mark.posix("named pipes")
@pytest.mark.parametrize("name", ["memory.db", "items.db"])
def test_a_pipe_in_place_of_a_database_is_reported(home: Path, name: str) -> None:
    file = home / "agents/main" / name
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    with opened(home) as memory:
        wrong = [
            finding.text for finding in check_memory(memory, memory.status()) if finding.state == "wrong"
        ]
        assert wrong == [f"{file} is not a regular file. Move it away."]


@pytest.mark.posix("named pipes")
@pytest.mark.parametrize("pattern", ["workspaces/*/index.db", "entries/index.db", "entries/index.db-wal"])
def test_a_pipe_in_place_of_an_index_is_replaced_without_opening_it(home: Path, pattern: str) -> None:
    folder = next((home / "agents/main").glob(pattern.rpartition("/")[0]))
    file = folder / pattern.rpartition("/")[2]
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    with opened(home) as memory:
        assert "MEMORY.md" in [hit.path for hit in memory.search("heron stands in the water").hits]
        assert [hit.entry.text for hit in memory.entries.search("quartz7").hits][:1] == [
            "Project heron7 deploys with quartz7."
        ]
    assert not file.is_fifo()


@contextmanager
def full_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every write fail, as on a disk without free space."""
    resource = pytest.importorskip("resource", reason="not on Windows: limits of a process")

    limit, full = resource.getrlimit(resource.RLIMIT_FSIZE), shutil.disk_usage(home)._replace(free=0)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: full)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limit[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_a_write_to_a_full_disk_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(home) as memory:
        memory.entries.list()
        with full_disk(home, monkeypatch), pytest.raises(StoreError) as refused:
            memory.remember("The office moved to Lyon.")
        file = home / "agents/main/memory.db"
        assert str(refused.value) == f"Cannot write {file}: the disk is full."
        assert memory.remember("The office moved to Lyon.").action == "added"


def test_doctor_on_a_full_disk_does_not_advise_to_restore_a_sound_database(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of another process has to be read, and SQLite cannot make the file that this needs."""
    copy = tmp_path / "copy"
    with opened(home) as memory:
        memory.remember("The office moved to Lyon.")
        shutil.copytree(home, copy, ignore=shutil.ignore_patterns("*-shm"))
    with opened(copy) as memory:
        status = memory.status()
        with full_disk(copy, monkeypatch):
            wrong = [finding for finding in check_memory(memory, status) if finding.state == "wrong"]
    file = copy / "agents/main/entries/index.db"
    assert [(finding.name, finding.text, finding.fix) for finding in wrong] == [
        ("entries", f"Cannot write {file}: the disk is full.", "Free some disk space.")
    ]


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
        [entry] = (
            entry for entry in memory.entries.list() if "quartz8." in entry.text and "n7" in entry.text
        )
        assert memory.entries._context.store.check(deep=True) == [
            f"1 row is damaged in the table entries: {entry.id}.",
            "1 row is damaged in the table events: 8.",
        ]
        wrong = [
            finding for finding in check_memory(memory, memory.status(deep=True)) if finding.state == "wrong"
        ]
        assert [finding.name for finding in wrong] == ["entries"]
    with pytest.raises(StoreBroken, match=r"memory\.db is damaged: 1 row is damaged in the table entries"):
        create(opened(home).settings, home / "backup.zip")
    assert file.read_bytes() == data.replace(b"deploys with quartz7.", b"deploys with quartz8.")


@pytest.mark.parametrize("table", ["entries", "events", "recalls", "recalled", "tombstones", "meta"])
def test_a_change_of_any_value_past_the_program_is_reported_and_a_change_by_it_is_not(
    home: Path, table: str
) -> None:
    with opened(home) as memory:
        memory.recall("which project deploys with quartz3?")
        memory.entries.update(memory.entries.list()[0].id, text="The office moved to Lyon.")
        memory.erase(memory.entries.list()[5].id)
        memory.entries.undo(memory.entries.list()[3].id)
        memory.entries.cleanup()
        assert memory.entries._context.store.check(deep=True) == []
    file = home / "agents/main/memory.db"
    connection = apsw.Connection(str(file))
    for (trigger,) in connection.execute("select name from sqlite_schema where type = 'trigger'").fetchall():
        connection.execute(f"drop trigger {trigger}")
    columns = [
        row[1]
        for row in connection.execute(f"pragma table_info({table})")
        if row[1] not in (*checksums.COUNTERS, "checksum")
    ]
    connection.close()
    for column in columns:
        connection = apsw.Connection(str(file))
        connection.execute("savepoint damage")
        other = f"iif(typeof({column}) = 'text', {column} || '1', {column} * 2 + 999)"
        connection.execute(f"update {table} set {column} = {other} where {column} is not null")
        changed = connection.changes()
        assert bool(checksums.damaged_rows(connection)) == bool(changed), column
        connection.execute("rollback to damage")
        connection.close()


# ---- items ------------------------------------------------------------------------------------------------------


def put(home: Path, *keys: str) -> None:
    with opened(home) as memory:
        for key in keys:
            items_of(memory).put([Put(("d",), key, {"text": f"the {key} is ripe"}, (f"the {key} is ripe",))])


def found_items(memory: Memory, query: str) -> list[tuple[str, bool]]:
    """Return the keys of items for a query, and whether the index found each."""
    hits = items_of(memory).search(("d",), query, limit=9)
    return [(hit.item.key, hit.score is not None) for hit in hits]


@pytest.mark.parametrize("state", ["empty", "missing"])
def test_a_lost_database_of_items_is_reported_and_not_replaced(home: Path, state: str) -> None:
    put(home, "apple", "plum")
    file = home / "agents/main/items.db"
    file.unlink()
    if state == "empty":
        file.touch()
    with opened(home) as memory:
        with pytest.raises(StoreBroken, match=f"is {state}, although its index knows 2 texts"):
            items_of(memory)
        wrong = [finding for finding in check_memory(memory, memory.status()) if finding.state == "wrong"]
        assert [finding.name for finding in wrong] == ["items"]
    assert (file.exists(), file.exists() and file.stat().st_size) == (state == "empty", 0)


def test_the_index_follows_a_diverged_copy_of_the_items(home: Path, tmp_path: Path) -> None:
    put(home, "apple")
    shutil.copytree(home, tmp_path / "copy")
    put(home, "plum")
    put(tmp_path / "copy", "cherry")
    shutil.copy(tmp_path / "copy/agents/main/items.db", home / "agents/main/items.db")
    with opened(home) as memory:
        assert found_items(memory, "cherry")[0] == ("cherry", True)


def test_a_flipped_letter_in_an_item_is_reported(home: Path) -> None:
    put(home, "apple", "plum")
    file = home / "agents/main/items.db"
    data = file.read_bytes()
    file.write_bytes(data.replace(b"the plum is ripe", b"the plum is ripf"))
    with opened(home) as memory:
        [damage] = items_of(memory).check(deep=True)
        assert damage.startswith("1 row is damaged in the table items: ")
        wrong = [
            finding for finding in check_memory(memory, memory.status(deep=True)) if finding.state == "wrong"
        ]
        assert [(finding.name, finding.text) for finding in wrong] == [("items", damage)]


# ---- transcripts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [bytes(200), b"\xff\xd8" * 90, b"no record, no line break"])
def test_a_transcript_that_is_overwritten_is_reported_and_not_changed(home: Path, content: bytes) -> None:
    with opened(home) as memory:
        memory.transcript_writer("s1").add([{"role": "user", "content": "The invoices are in drawer 4."}])
        assert memory.sync().problems == ()
    [file] = (home / "agents/main/sessions").rglob("*.jsonl")
    file.write_bytes(content)
    with opened(home) as memory:
        [problem] = memory.sync().problems
        assert (problem.path, problem.reason) == (f"sessions/{file.name}", "1 damaged line was left out")
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "content"),
    [("agents/main/sessions/s1.jsonl", b"\xff\xd8\n"), ("../memory/2026-02-08.md", "发票".encode()[:-1])],
)
def test_damage_is_reported_until_the_file_is_fixed(home: Path, name: str, content: bytes) -> None:
    """The first search after the damage indexes the file. A later sync that verifies must still report it."""
    file = home / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (1_800_000_000, 1_800_000_000))
    with opened(home) as memory:
        memory.search("heron")
        assert [problem.path for problem in memory.sync(verify=True).problems] == [_indexed_name(name)]
        file.write_text("")
        assert memory.sync(verify=True).problems == ()


def _indexed_name(name: str) -> str:
    return name.removeprefix("agents/main/").removeprefix("../")


def test_the_beginning_of_a_record_is_not_damage(home: Path) -> None:
    with opened(home) as memory:
        memory.transcript_writer("s1").add([{"role": "user", "content": "发票在第四个抽屉里。"}])
    [file] = (home / "agents/main/sessions").rglob("*.jsonl")
    whole = file.read_bytes()
    source = Transcripts([file.parent])
    for end in range(len(whole)):
        file.write_bytes(whole + whole[:end])
        [found] = source.scan().files
        assert [document.note for document in source.read(found)] == [None], whole[:end]


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
            lambda: memory.entries._context.store.check(deep=True),
            lambda: memory.recall("quartz3"),
            memory.entries.recalls,
            lambda: memory.remember("The office moved to Lyon."),
            lambda: memory.erase(Selection(query="Project heron3 deploys with quartz3.")),
            memory.entries.cleanup,
        ):
            with suppress(MemoriterError):
                work()
        memory.search("heron")
    assert file.stat().st_size >= len(data) - 8192 * 4
