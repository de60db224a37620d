from __future__ import annotations

import contextlib
import os
import stat
import threading
from pathlib import Path

import apsw
import pytest
from store_samples import by_hand

from memoriter.errors import SchemaTooNew, StoreBroken, StoreError, StoreLocked
from memoriter.store.connection import Migration, value
from memoriter.store.database import Database

FIRST = Migration("m001_initial", ("create table notes(id integer primary key, text text not null)",))
SECOND = Migration("m002_tags", ("alter table notes add column tag text", "create index tags on notes(tag)"))


def database(path: Path, *migrations: Migration, application_id: int = 7, timeout_s: float = 5.0) -> Database:
    return Database(
        path,
        application_id=application_id,
        migrations=migrations or (FIRST,),
        synchronous="FULL",
        timeout_s=timeout_s,
    )


def add(db: Database, text: str) -> None:
    with db.write() as connection:
        connection.execute("insert into notes(text) values(?)", (text,))


def texts(db: Database) -> list[str]:
    with db.read() as connection:
        return [row[0] for row in connection.execute("select text from notes order by id")]


def test_data_is_still_there_after_reopening(tmp_path: Path) -> None:
    with database(tmp_path / "a.db") as db:
        add(db, "one")
    with database(tmp_path / "a.db") as db:
        assert texts(db) == ["one"]


def test_the_safety_settings_are_active(tmp_path: Path) -> None:
    wanted = {
        "journal_mode": "wal",
        "synchronous": 1,  # the database flushes its log after a commit
        "fullfsync": 1,  # on macOS, out of the cache of the drive
        "secure_delete": 1,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "mmap_size": 0,
        "page_size": 8192,
        "application_id": 7,
        "user_version": 1,
    }
    with database(tmp_path / "a.db") as db, db.write() as writer:
        assert {name: value(writer, f"pragma {name}") for name in wanted} == wanted


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    with database(tmp_path / "a.db") as db:
        with pytest.raises(StoreError, match="cannot be opened for writing"), db.read() as connection:
            connection.execute("insert into notes(text) values('x')")
        assert texts(db) == []


def test_an_error_rolls_back_the_whole_transaction(tmp_path: Path) -> None:
    with database(tmp_path / "a.db") as db:
        with contextlib.suppress(ZeroDivisionError), db.write() as connection:
            connection.execute("insert into notes(text) values('x')")
            raise ZeroDivisionError
        add(db, "after")
        assert texts(db) == ["after"]


def test_a_failed_part_fails_the_transaction_even_if_its_error_is_caught(tmp_path: Path) -> None:
    def swallow() -> None:
        with db.write():
            add(db, "kept?")
            with contextlib.suppress(ZeroDivisionError), db.write() as connection:
                connection.execute("insert into notes(text) values('half')")
                raise ZeroDivisionError

    with database(tmp_path / "a.db") as db:
        with pytest.raises(StoreError, match="Nothing was written"):
            swallow()
        assert texts(db) == []


def test_nested_writes_are_one_transaction_and_read_their_changes(tmp_path: Path) -> None:
    with database(tmp_path / "a.db") as db:
        seen: list[list[str]] = []
        with db.write():
            add(db, "one")
            add(db, "two")
            other = threading.Thread(target=lambda: seen.append(texts(db)))
            other.start()
            other.join()
            seen.append(texts(db))
        assert [*seen, texts(db)] == [[], ["one", "two"], ["one", "two"]]


def test_a_snapshot_does_not_change(tmp_path: Path) -> None:
    with database(tmp_path / "a.db") as db, database(tmp_path / "a.db") as other:
        add(db, "one")
        with db.snapshot():
            before = texts(db)
            add(other, "two")
            assert (before, texts(db)) == (["one"], ["one"])
        assert texts(db) == ["one", "two"]


def test_migrations_run_once_and_in_order(tmp_path: Path) -> None:
    with database(tmp_path / "a.db") as db:
        add(db, "old")
    with database(tmp_path / "a.db", FIRST, SECOND) as db:
        with db.write() as connection:
            connection.execute("update notes set tag = 't'")
        assert texts(db) == ["old"]
    with database(tmp_path / "a.db", FIRST, SECOND) as db, db.read() as connection:
        assert connection.execute("select text, tag from notes").fetchall() == [("old", "t")]


def test_a_failed_migration_leaves_the_previous_schema(tmp_path: Path) -> None:
    broken = Migration("m002_broken", ("alter table notes add column tag text", "not SQL"))
    with database(tmp_path / "a.db") as db:
        add(db, "old")
    with pytest.raises(StoreError, match="syntax error"):
        database(tmp_path / "a.db", FIRST, broken)
    with database(tmp_path / "a.db", FIRST, SECOND) as db:
        assert texts(db) == ["old"]


def test_a_newer_schema_is_rejected_and_unchanged(tmp_path: Path) -> None:
    database(tmp_path / "a.db", FIRST, SECOND).close()
    with pytest.raises(SchemaTooNew, match="has schema 2, but this release supports 1"):
        database(tmp_path / "a.db")
    database(tmp_path / "a.db", FIRST, SECOND).close()


def test_a_database_of_another_program_is_rejected_and_unchanged(tmp_path: Path) -> None:
    with by_hand(tmp_path / "a.db") as connection:
        connection.execute("create table theirs(x)")
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(StoreBroken, match="another program"):
        database(tmp_path / "a.db")
    assert (tmp_path / "a.db").read_bytes() == before
    with pytest.raises(StoreBroken, match="another program"):
        database(tmp_path / "a.db", application_id=8)


@pytest.mark.parametrize(
    "content", [b"just some text, longer than a header " * 9, b"\0" * 4096, b"SQLite format 3\0"]
)
def test_a_file_that_is_not_a_database_is_broken(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.db").write_bytes(content)
    with pytest.raises(StoreBroken):
        database(tmp_path / "a.db")


@pytest.mark.posix("named pipes")
def test_a_folder_or_a_pipe_in_its_place_is_broken(tmp_path: Path) -> None:
    (tmp_path / "a.db").mkdir()
    os.mkfifo(tmp_path / "b.db")
    for name in ("a.db", "b.db"):
        with pytest.raises(StoreBroken, match="not a regular file"):
            database(tmp_path / name)


def test_an_interrupted_creation_is_completed(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with by_hand(tmp_path / "wal.db") as connection:
        connection.execute("pragma journal_mode = wal").fetchall()
    for name in ("empty.db", "wal.db"):
        with database(tmp_path / name) as db:
            add(db, "one")
            assert texts(db) == ["one"]


def test_a_lock_held_too_long_is_reported(tmp_path: Path) -> None:
    with database(tmp_path / "a.db", timeout_s=0.05) as db, by_hand(tmp_path / "a.db") as other:
        other.execute("begin immediate")
        with pytest.raises(StoreLocked, match="Another process has locked"):
            add(db, "never")
        other.execute("rollback")
        add(db, "now")
        assert texts(db) == ["now"]


def test_a_write_waits_for_another_thread_until_the_timeout(tmp_path: Path) -> None:
    with database(tmp_path / "a.db", timeout_s=0.05) as db:
        caught: list[Exception] = []

        def blocked() -> None:
            try:
                add(db, "never")
            except StoreLocked as error:
                caught.append(error)

        with db.write():
            other = threading.Thread(target=blocked)
            other.start()
            other.join()
        assert [str(error) for error in caught] == [
            f"Another thread has been writing {db.path} for 0.05 s. Try again."
        ]


@pytest.mark.posix("an open file is deleted")
def test_readers_and_writers_create_a_deleted_file_again(tmp_path: Path) -> None:
    with database(tmp_path / "a.db") as db:
        add(db, "lost")
        for suffix in ("", "-wal", "-shm"):
            (tmp_path / f"a.db{suffix}").unlink()
        assert texts(db) == []
        (tmp_path / "a.db").rename(tmp_path / "moved.db")
        add(db, "new")
        assert texts(db) == ["new"]


@pytest.mark.posix("an open file is deleted")
def test_a_replaced_file_is_noticed(tmp_path: Path) -> None:
    with database(tmp_path / "b.db") as other:
        add(other, "other")
    with database(tmp_path / "a.db") as db:
        add(db, "mine")
        for suffix in ("-wal", "-shm"):  # SQLite would use an old log for the new file
            (tmp_path / f"a.db{suffix}").unlink()
        (tmp_path / "b.db").replace(tmp_path / "a.db")
        assert texts(db) == ["other"]


@pytest.mark.posix("files have no modes")
def test_everything_is_private_under_any_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with database(tmp_path / "new" / "home" / "a.db") as db:
            add(db, "one")
            found = {
                str(place.relative_to(tmp_path)): stat.S_IMODE(place.stat().st_mode)
                for place in tmp_path.rglob("*")
            }
    finally:
        os.umask(before)
    assert found == {
        "new": 0o700,
        "new/home": 0o700,
        "new/home/a.db": 0o600,
        "new/home/a.db-wal": 0o600,
        "new/home/a.db-shm": 0o600,
        "new/home/a.db.lock": 0o600,
    }


@pytest.mark.posix("files have no modes")
def test_a_file_that_others_can_read_becomes_private(tmp_path: Path) -> None:
    database(tmp_path / "a.db").close()
    (tmp_path / "a.db").chmod(0o644)
    database(tmp_path / "a.db").close()
    assert stat.S_IMODE((tmp_path / "a.db").stat().st_mode) == 0o600


def test_a_closed_database_raises_in_every_thread(tmp_path: Path) -> None:
    db = database(tmp_path / "a.db")
    told: list[str] = []
    closed = threading.Event()

    def other() -> None:
        texts(db)
        started.set()
        closed.wait()
        try:
            texts(db)
        except StoreError as error:
            told.append(str(error))

    started = threading.Event()
    thread = threading.Thread(target=other)
    thread.start()
    started.wait()
    db.close()
    closed.set()
    thread.join()
    with pytest.raises(StoreError, match="is closed"):
        add(db, "x")
    assert told == [f"{db.path} is closed."]


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Cannot create"):
        database(tmp_path / "file" / "a.db")


def test_check_finds_a_damaged_full_text_index(tmp_path: Path) -> None:
    schema = Migration("m001", ("create virtual table words using fts5(text)",))
    with database(tmp_path / "a.db", schema) as db:
        with db.write() as connection:
            connection.executemany(
                "insert into words(text) values(?)", [(f"word{n} more",) for n in range(200)]
            )
        assert (db.check(), db.check(deep=True)) == ([], [])
        with by_hand(tmp_path / "a.db") as connection:
            connection.execute("delete from words_data where id > 10")
        assert db.check(deep=True) != []
        assert db.check() != []


def test_a_log_that_others_read_is_not_emptied_and_others_write_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.store.database.PURGE_S", 1.0, raising=False)
    path = tmp_path / "a.db"
    with database(path) as reader, database(path, timeout_s=60) as purger, database(path) as writer:
        add(writer, "one")
        emptied: list[bool] = []
        with reader.snapshot() as connection:
            connection.execute("select text from notes").fetchall()
            add(writer, "two")
            thread = threading.Thread(target=lambda: emptied.append(purger.purge()))
            thread.start()
            while not emptied:
                with writer.write():
                    pass
            thread.join()
        assert emptied == [False]
        assert purger.purge()
        assert texts(reader) == ["one", "two"]


def test_a_text_with_a_lone_surrogate_is_rejected(tmp_path: Path) -> None:
    with database(tmp_path / "a.db") as db, pytest.raises(StoreError, match="lone surrogate"):
        add(db, "bad \udc80")


def test_a_connection_inherited_by_a_fork_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database(tmp_path / "a.db") as db:
        add(db, "one")
        parents = db.reader()
        monkeypatch.setattr(os, "getpid", lambda: -1)  # what a child sees
        add(db, "two")
        assert (db.reader() is parents, texts(db)) == (False, ["one", "two"])
        monkeypatch.undo()
        assert isinstance(parents, apsw.Connection)
        parents.execute("select 1")  # left open for the parent


@pytest.mark.parametrize("statement", range(4))
def test_another_process_may_create_the_database_at_any_moment_of_opening(
    tmp_path: Path, statement: int
) -> None:
    path = tmp_path / "a.db"
    left = [statement]

    def create_before_the_statement(connection: apsw.Connection) -> None:
        def trace(*_: object) -> bool:
            left[0] -= 1
            if left[0] == -1:
                database(path).close()
            return True

        connection.exec_trace = trace

    opened = Database(
        path,
        application_id=7,
        migrations=(FIRST,),
        synchronous="FULL",
        timeout_s=5.0,
        on_connect=create_before_the_statement,
    )
    add(opened, "one")
    assert texts(opened) == ["one"]
    opened.close()
