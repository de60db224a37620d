from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from store_samples import ALICE, by_hand, document, put, unit

from memoriter.errors import StoreBroken, StoreError
from memoriter.records import Identity
from memoriter.store import Filter, Index, open_index
from memoriter.text import tokenize

ANYWHERE = Filter()


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return open_index(tmp_path)


def found(index: Index, *terms: str, where: Filter = ANYWHERE) -> list[str]:
    """Return the texts that the keyword search finds, best first."""
    tokens = [token for term in terms for token in tokenize(term) or [term]]
    rows = [match.rowid for match in index.keyword(tokens, limit=10, where=where)]
    stored = index.chunks(rows)
    return [stored[row].chunk.text for row in rows]


def test_the_frequency_of_a_common_term_is_cached_until_enough_rows_are_added(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoriter.store.keywords.COMMON_TERM_CHUNKS", 50)
    put(index, "many.md", *["zork"] * 100)
    put(index, "few.md", *["blip"] * 10)
    seen = [index.terms(["zork", "blip"])]
    put(index, "one.md", "zork blip")
    seen.append(index.terms(["zork", "blip"]))
    put(index, "more.md", *["zork blip"] * 5)
    seen.append(index.terms(["zork", "blip"]))
    index.clear()
    put(index, "new.md", "zork")
    assert [*seen, index.terms(["zork", "blip"])] == [
        {"zork": 100, "blip": 10},
        {"zork": 100, "blip": 11},
        {"zork": 106, "blip": 16},
        {"zork": 1, "blip": 0},
    ]


def test_an_unknown_engine_is_rejected_with_the_supported_names(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError,
        match=r"Unknown vector engine 'faiss'\. Available: scan, chroma, lancedb, pinecone, sqlite-vec",
    ):
        open_index(tmp_path, engine="faiss")


def test_a_missing_extension_names_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(StoreError, match=r"pip install 'sqlite-vec>=[\d.]+'"):
        open_index(tmp_path, engine="sqlite-vec")


def test_check_finds_contradictions_between_tables(tmp_path: Path, index: Index) -> None:
    put(index, "a.md", "one", "two")
    put(index, "b.md", "three")
    with by_hand(index.path) as connection:
        connection.execute("delete from files where path = 'b.md'")
        connection.execute("delete from chunks where rowid = 1")
        connection.execute("update chunks set model = 'm' where rowid = 2")
    assert index.check() == [
        "1 keyword rows have no chunk",
        "1 chunks have no file",
        "1 chunks have lost their vector",
    ]


def test_check_is_not_misled_by_the_cache_of_a_reader(tmp_path: Path, index: Index) -> None:
    for number in range(40):
        put(index, f"{number}.md", *[f"zork number{number * line}" for line in range(20)])
        index.keyword(["zork"], limit=5)
    with open_index(tmp_path) as other:
        other.keyword(["zork"], limit=5)
        index.remove([f"{number}.md" for number in range(30)])
        assert (other.check(), other.check(deep=True), index.check()) == ([], [], [])


def test_unreadable_headings_are_damage(index: Index) -> None:
    put(index, "a.md", "one")
    with by_hand(index.path) as connection:
        connection.execute("update chunks set headings = '[\"x'")
    with pytest.raises(StoreBroken, match="Chunk 1 of the index cannot be read"):
        index.chunks([1])


def test_scrub_erases_every_byte_of_removed_text(tmp_path: Path, index: Index) -> None:
    words = [f"word{number}" for number in range(500)]
    for number in range(60):
        secret = "zqsentinelqz 机密" if number == 30 else ""
        put(index, f"{number}.md", " ".join(words[number : number + 90]), f"{secret} and more")

    def copies() -> int:
        held = [place.read_bytes() for place in tmp_path.glob("index.db*")]
        return sum(data.count(b"zqsentinelqz") + data.count("机密".encode()) for data in held)

    index.close()  # only so may anybody but SQLite open the file
    seen = [copies() > 0]
    with open_index(tmp_path) as again:
        again.remove(["30.md"])
    seen.append(copies() > 0)
    with open_index(tmp_path) as again:
        assert again.scrub()
    assert [*seen, copies() > 0] == [True, True, False]  # removing alone would not do


def test_scrub_reports_when_a_reader_keeps_the_log(tmp_path: Path) -> None:
    index = open_index(tmp_path, timeout_s=0.05)
    put(index, "a.md", "one")
    with open_index(tmp_path) as other, other.snapshot():
        other.counts("")
        put(index, "b.md", "two")
        assert not index.scrub()
    assert index.scrub()


def test_the_size_includes_database_and_log(index: Index) -> None:
    put(index, "a.md", "one")
    assert index.size() == sum(
        (index.path.parent / name).stat().st_size for name in ("index.db", "index.db-wal")
    )


def test_keywords_do_not_load_numpy(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from memoriter.store import open_index\n"
        f"index = open_index(Path({str(tmp_path)!r})); index.keyword(['a'], limit=3); index.files(); index.check()\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_cache_and_chunks_name_an_identity_the_same_way(index: Index) -> None:
    vectors = {"h": unit(*range(1, 9))}
    for identity in (ALICE, Identity("p/x", "m y", 8), Identity("p", "m", 8, "short")):
        note, chunks = document(f"{identity}.md", f"text of {identity}")
        index.save(identity, {chunks[0].hash: vectors["h"]})
        index.replace(note, chunks, identity=identity)
    assert index.prune(0) == 0  # all three are in use


@pytest.mark.requirement("B2")
def test_the_tables_are_those_that_the_architecture_describes(index: Index) -> None:
    note, chunks = document("a.md", "heron")
    index.save(ALICE, {chunks[0].hash: unit(*range(1, 9))})
    index.replace(note, chunks, identity=ALICE)
    with closing(apsw.Connection(str(index.path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        tables = {row[0] for row in connection.execute("select name from sqlite_master")}
        columns = {row[1] for row in connection.execute("pragma table_info(embedding_cache)")}
        models = connection.execute("select model from chunks").fetchall()
    assert {"meta", "files", "chunks", "chunks_fts", "embedding_cache"} <= tables
    assert {"provider", "model", "provider_key", "hash"} <= columns
    assert models == [(str(ALICE),)]
