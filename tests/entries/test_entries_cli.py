from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoriter import Memory
from memoriter.cli.app import app
from memoriter.errors import MemoriterError
from memoriter.files import platform
from memoriter.tools.toolbox import Toolbox

Run = Callable[..., str]


@pytest.fixture
def run(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in a separate home, with keywords only, and return its output."""
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")

    def run_(*words: str, fails: bool = False) -> str:
        (tmp_path / "home").mkdir(exist_ok=True)
        line = ["--workspace", str(workspace), "--home", str(tmp_path / "home"), *words]
        done = CliRunner().invoke(app, line, catch_exceptions=True)
        if fails:
            assert isinstance(done.exception, MemoriterError | SystemExit), done.output
            return str(done.exception)
        assert done.exit_code == 0, (done.output, done.exception)
        return done.stdout

    return run_


def imported(run: Run, file: Path) -> tuple[int, int, int]:
    """Import a file and return the numbers of added, known and refused entries."""
    report = json.loads(run("import", str(file), "--json"))
    assert len(report["entries"]) == report["added"]
    return report["added"], report["already"], report["refused"]


def test_tags_are_separated_by_commas_or_given_several_times(run: Run, workspace: Path) -> None:
    words = ("--tags", "boat, pier", "--tags", "harbour")
    added = json.loads(run("add", "The boat is moored at pier 7", *words, "--json"))["entry"]
    assert added["tags"] == ["boat", "pier", "harbour"]
    assert "1 entry" in run("list", "--tags", "boat", "--tags", "harbour")
    assert "No entries" in run("list", "--tags", "boat", "--tags", "car")
    run("save", "The boat was painted.", *words)
    (log,) = (workspace / "memory").glob("????-??-??.md")
    assert "Tags: boat, pier, harbour" in log.read_text(encoding="utf-8")


@pytest.mark.requirement("D11")
def test_entries_are_added_listed_undone_and_exported(run: Run, tmp_path: Path) -> None:
    added = json.loads(
        run(
            "add",
            "我偏好用 TypeScript",
            "--type",
            "user_preference",
            "--importance",
            "5",
            "--tags",
            "前端,ts",
            "--json",
        )
    )
    assert added["action"] == "added"
    added = added["entry"]
    assert uuid.UUID(added["id"])
    assert (added["tags"], added["expiresAt"]) == (["前端", "ts"], None)
    run("add", "Standup is at nine", "--type", "workflow")
    assert "★★★★★" in run("list", "--type", "user_preference")
    assert [e["text"] for e in json.loads(run("list", "--json"))["entries"]] == [
        "Standup is at nine",
        "我偏好用 TypeScript",
    ]
    assert [e["kind"] for e in json.loads(run("history", added["id"][:8], "--json"))["history"]] == ["add"]
    run("undo")
    assert [e["id"] for e in json.loads(run("list", "--json"))["entries"]] == [added["id"]]

    file = tmp_path / "entries.jsonl"
    assert json.loads(run("export", "--output", str(file), "--json"))["total"] == 1
    assert platform.is_private(file)
    run("undo", added["id"])
    assert json.loads(run("list", "--json"))["entries"] == []
    assert imported(run, file) == (1, 0, 0)
    assert imported(run, file) == (0, 1, 0)
    assert [e["id"] for e in json.loads(run("list", "--json"))["entries"]] == [added["id"]]


def test_errors_are_one_sentence(run: Run, tmp_path: Path) -> None:
    assert "no type 'mood'" in run("add", "I am well", "--type", "mood", fails=True)
    assert "no entry" in run("history", "ffffffff", fails=True)
    (tmp_path / "bad.jsonl").write_text("nonsense")
    assert "Nothing was imported. Line 1: not valid JSON." in run(
        "import", str(tmp_path / "bad.jsonl"), fails=True
    )


def test_a_wrong_id_in_an_export_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "entries.jsonl"
    file.write_text(json.dumps({"entry": {"id": "seven", "text": "Tea at four"}}))
    message = run("import", str(file), fails=True)
    assert message.startswith(
        "Nothing was imported. Line 1: 'seven' is not an id. An id looks like 6ba7b811-"
    )


@pytest.mark.requirement("D11")
def test_forgetting_cleaning_up_searching_and_asking_why(run: Run, tmp_path: Path) -> None:
    tea = json.loads(run("add", "I drink green tea in the morning", "--type", "fact", "--json"))["entry"]
    run("add", "I drink black coffee in the evening", "--type", "fact")
    found = json.loads(run("search", "green tea", "--source", "entries", "--json"))
    assert [hit["citation"] for hit in found["results"]] == [f"entry:{tea['id']}"]
    stats = json.loads(run("stats", "--json"))
    assert (stats["entries"]["total"], stats["entries"]["by_type"]) == (2, {"fact": 2})
    unclear = json.loads(run("forget", "--query", "I drink", "--dry-run", "--json"))
    assert (unclear["forgotten"], len(unclear["candidates"])) == ([], 2)
    dry = json.loads(run("forget", tea["id"][:8], "--dry-run", "--json"))
    assert (dry["forgotten"], dry["dryRun"]) == ([tea["id"]], True)
    done = json.loads(run("forget", tea["id"][:8], "--yes", "--json"))
    assert done["forgotten"] == [tea["id"]]
    assert done["covered"]
    assert done["notCovered"]
    assert len(json.loads(run("list", "--json"))["entries"]) == 1
    assert len(json.loads(run("forget", "--since", "2020-01-01", "--yes", "--json"))["forgotten"]) == 1
    assert json.loads(run("cleanup", "--json")) == {
        "expired": 0,
        "purged": 0,
        "restored": 0,
        "clock": None,
    }
    assert "no recall" in run("why", "abc", fails=True)


def test_json_output_is_not_consent_to_forget(run: Run) -> None:
    tea = json.loads(run("add", "I drink green tea in the morning", "--type", "fact", "--json"))["entry"]
    assert run("forget", tea["id"], "--json", fails=True) == "2"
    assert run("forget", "--query", "I drink green tea in the morning", "--json", fails=True) == "2"
    assert [entry["id"] for entry in json.loads(run("list", "--json"))["entries"]] == [tea["id"]]
    assert run("forget", "--query", "unheard of", "--yes", "--json", fails=True) == "1"
    assert run("forget", "--query", "unheard of", "--yes", fails=True) == "1"
    assert json.loads(run("forget", tea["id"], "--yes", "--json"))["forgotten"] == [tea["id"]]
    assert json.loads(run("list", "--json"))["entries"] == []


def test_a_binary_file_is_refused_with_a_message(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "latin.jsonl"
    file.write_bytes(b'["caf\xe9"]')
    for more in ([], ["--json"]):
        sentence = f"{file} is not UTF-8 text (byte 5). Nothing was imported."
        assert run("import", str(file), *more, fails=True) == sentence


def test_stats_are_for_people_to_read(run: Run) -> None:
    entry = json.loads(run("add", "I drink green tea in the morning", "--type", "fact", "--json"))["entry"]
    some = run("stats")
    assert "fact: 1" in some
    assert f"{datetime.fromtimestamp(entry['createdAt']).astimezone():%Y-%m-%d %H:%M}" in some
    run("forget", entry["id"], "--yes")
    none = run("stats")
    assert "–" in none
    assert "None" not in none
    assert "{" not in some + none


def test_stats_count_files_when_entries_cannot_be_read(run: Run, tmp_path: Path) -> None:
    run("add", "I drink green tea in the morning", "--type", "fact")
    for file in (tmp_path / "home").rglob("memory.db*"):
        file.write_bytes(b"no database " * 1000)
    counted = json.loads(run("stats", "--json"))
    assert (counted["file_count"], "entries" in counted) == (0, False)
    assert counted["degraded"]
    assert "files " in run("stats")


@pytest.mark.requirement("X12")
@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (
            {"results": [{"id": "m1", "memory": "Likes tea", "created_at": "2025-03-01T10:00:00-07:00"}]},
            ["Likes tea"],
        ),
        (
            [{"id": "c1", "mapping": {"a": {"message": {"id": "x", "recipient": "bio", "create_time": 1.7e9,
              "content": {"parts": ["User lives in Ghent.\nUser likes jam."]}}},
              "b": {"message": {"id": "y", "recipient": "all", "content": {"parts": ["Sure!"]}}}}}],
            ["User likes jam.", "User lives in Ghent."],
        ),
        ([{"content": "偏好 Rust", "type": "user_preference", "importance": 5}, "plain"], ["plain", "偏好 Rust"]),
    ],
)  # fmt: skip
def test_memories_of_other_programs_are_imported_once(
    run: Run, tmp_path: Path, content: object, texts: list[str]
) -> None:
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    assert imported(run, file) == (len(texts), 0, 0)
    assert imported(run, file) == (0, len(texts), 0)
    assert sorted(entry["text"] for entry in json.loads(run("list", "--json"))["entries"]) == texts


def test_a_foreign_file_with_an_invalid_entry_is_refused_as_a_whole(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps([{"text": "fine"}, {"vibe": 1}]))
    assert "Entry 2: it has no text." in run("import", str(file), fails=True)
    assert json.loads(run("list", "--json"))["entries"] == []


def test_what_undo_removed_is_listed_until_it_is_forgotten(run: Run) -> None:
    id_ = json.loads(run("add", "The vault is green", "--json"))["entry"]["id"]
    run("undo")
    [entry] = json.loads(run("list", "--undone", "--json"))["entries"]
    assert entry["text"] == "The vault is green"
    assert run("list", "--undone").endswith(" · undone\n")
    run("forget", id_, "--now", "--yes")
    assert json.loads(run("list", "--undone", "--json"))["entries"] == []


def test_all_staged_entries_can_be_listed_and_rejected(run: Run, workspace: Path, tmp_path: Path) -> None:
    overrides = {"entries.approval": "agent", "embedding.provider": "none"}
    with Memory.open(workspace, home=tmp_path / "home", overrides=overrides) as memory:
        for number in range(5):
            Toolbox(memory).call("memory_store", {"text": f"Tea number {number} is served at {number}"})
    assert len(json.loads(run("staged", "--json"))["entries"]) == 5
    assert len(json.loads(run("reject", "--all", "--json"))["rejected"]) == 5


def test_staged_entries_are_listed_approved_rejected_and_restored(
    run: Run, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORITER_ENTRIES__APPROVAL", "agent")
    with Memory.open(workspace, home=tmp_path / "home") as memory:
        for text in ("Tea is served at four", "The vault is green", "金库是绿色的"):
            assert Toolbox(memory).call("memory_store", {"text": text})["action"] == "staged"
    waiting = {entry["text"]: entry["id"] for entry in json.loads(run("staged", "--json"))["entries"]}
    assert len(waiting) == 3
    assert "staged (agent)" in run("staged")
    assert json.loads(run("list", "--json"))["entries"] == []
    (done,) = json.loads(run("approve", waiting["Tea is served at four"][:8], "--json"))["approved"]
    assert (done["action"], done["memory"]["text"]) == ("added", "Tea is served at four")
    (gone,) = json.loads(run("reject", waiting["The vault is green"], "--json"))["rejected"]
    run("undo", gone)
    assert "Added" in run("approve", "--all")
    assert json.loads(run("staged", "--json")) == {"entries": [], "notes": []}
    assert (run("approve", "--all"), run("reject", "--all")) == ("Nothing waits for your approval.\n",) * 2
    assert json.loads(run("approve", "--all", "--json")) == {"approved": []}
    assert json.loads(run("reject", "--all", "--json")) == {"rejected": []}
    assert len(json.loads(run("list", "--json"))["entries"]) == 3
    assert "is active" in run("approve", done["memory"]["id"], fails=True)
    assert run("approve", fails=True) == "2"
    assert run("reject", done["memory"]["id"], "--all", fails=True) == "2"


def test_empty_lists_and_single_entries_are_described_by_sentences(run: Run) -> None:
    assert run("staged") == "Nothing waits for your approval.\n"
    assert run("forget", "--source", "openclaw", "--yes", fails=True) == (
        "No entry comes from the source 'openclaw'. Sources of entries: none."
    )
    entry = json.loads(run("add", "I drink green tea in the morning", "--json"))["entry"]
    assert run("undo").strip().endswith("I drink green tea in the morning")
    assert run("redo").strip().endswith("I drink green tea in the morning")
    forgotten = run("forget", entry["id"], "--yes")
    assert forgotten.startswith(f"Forgot 1 entry: {entry['id'][:8]}\n")


def test_add_and_list_show_when_an_entry_expires(run: Run) -> None:
    assert "fact  ★★★☆☆  never expires" in run("add", "I am allergic to penicillin")
    assert "expires 2027-03-31" in run("add", "I teach at Oakwood School", "--expires", "2027-03-31")
    days = json.loads(run("add", "The lease runs out soon", "--expires", "90", "--json"))["entry"]
    assert 89 < (days["expiresAt"] - days["createdAt"]) / 86_400 < 91
    listed = run("list")
    assert listed.count("never expires") == 1
    assert "expires 2027-03-31" in listed
    run("add", "I teach nowhere", "--expires", "soon", fails=True)


def test_the_history_shows_the_words_of_a_repetition(run: Run) -> None:
    first = json.loads(run("add", "Every Monday we eat pizza", "--json"))["entry"]
    again = json.loads(run("add", "We eat pizza every Monday", "--json"))
    assert (again["entry"]["id"], again["action"]) == (first["id"], "repeated")
    events = json.loads(run("history", first["id"], "--json"))["history"]
    assert [event["said"] for event in events] == [None, "We eat pizza every Monday"]
    assert "said: We eat" in " ".join(run("history", first["id"]).split())
