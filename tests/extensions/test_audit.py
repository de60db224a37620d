"""`memoriter audit`: what it finds in a home from another product, and that each command fixes its finding."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from memoriter import Memory
from memoriter.cli import execute
from memoriter.records import Entry
from memoriter.testing import HashEmbedder

Run = Callable[..., str]

#: A home of another product: statements with and without days, and what such products keep besides.
STATEMENTS = [
    {"memory": "I live in Berlin", "created_at": "2025-01-01T00:00:00Z"},
    {"memory": "I live in Munich", "created_at": "2026-01-01T00:00:00Z"},
    {"memory": "The standup is at nine"},
    {"memory": "The standup is at ten"},
    {"memory": "The bridge is closed in May", "created_at": "2025-01-01T00:00:00Z"},
    {"memory": "In May the bridge is closed", "created_at": "2026-01-01T00:00:00Z"},
    {"memory": "hello there"},
    {"memory": "谢谢"},
    {"memory": "<div>Loading</div>"},
    {"memory": "What time is the demo?"},
    {"memory": "and then the:"},
    {"memory": "The stork nests on the water tower"},
]


@pytest.fixture
def run(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    monkeypatch.setenv("MEMORITER_SEARCH__RERANK", "false")

    def run_(*words: str) -> str:
        assert execute([f"--workspace={workspace}", f"--home={tmp_path / 'home'}", *words]) == 0
        return capsys.readouterr().out

    return run_


def import_all(run: Run, folder: Path, data: str) -> None:
    file = folder / "export.json"
    file.write_text(data, encoding="utf-8")
    run("import", str(file))


def findings(run: Run) -> list[tuple[str, tuple[str, ...]]]:
    return [(one["kind"], tuple(one["texts"])) for one in json.loads(run("audit", "--json"))["findings"]]


def test_an_imported_home_is_audited_and_its_commands_fix_what_it_finds(run: Run, tmp_path: Path) -> None:
    import_all(run, tmp_path, json.dumps(STATEMENTS))
    before = run("list", "--all", "--json")
    assert findings(run) == [
        ("contradiction", ("I live in Berlin", "I live in Munich")),
        ("contradiction", ("The standup is at nine", "The standup is at ten")),
        ("duplicate", ("The bridge is closed in May", "In May the bridge is closed")),
        ("junk", ("hello there",)),
        ("junk", ("谢谢",)),
        ("junk", ("<div>Loading</div>",)),
        ("junk", ("What time is the demo?",)),
        ("junk", ("and then the:",)),
    ]
    assert run("list", "--all", "--json") == before, "an audit changes nothing"
    printed = run("audit")
    assert "contradiction (2)" in printed
    assert "both state where a person lives → memoriter tidy" in printed

    for one in json.loads(run("audit", "--json"))["findings"]:
        command = shlex.split(one["fix"])[1:]
        run(*command, *(["--yes"] if command[0] == "forget" else []))
    run("tidy")  # the first run changed two entries
    assert findings(run) == []
    assert run("audit") == "Nothing to do. Entries: 4.\n"
    assert [one["text"] for one in json.loads(run("list", "--json"))["entries"]] == [
        "The bridge is closed in May",
        "The stork nests on the water tower",
        "The standup is at ten",
        "I live in Munich",
    ]


def test_secrets_of_older_releases_expired_and_unused_entries_are_found(
    run: Run, workspace: Path, tmp_path: Path
) -> None:
    """An older release knew fewer kinds of secrets. They are written past the checks of this one."""
    key = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    with Memory.open(workspace, home=tmp_path / "home", embedder=HashEmbedder()) as memory:
        memory.remember("The token is kept in the vault", "fact")
    from memoriter.store.entry_store import Edit, EntryStore, open_file

    with EntryStore(open_file(tmp_path / "home/agents/main/memory.db")) as store:
        old = {"created_at": 1e9, "updated_at": 1e9, "valid_from": 1e9}
        entries = [
            Entry("00000001-0000-4000-8000-000000000000", f"Push with {key}", **old),
            Entry("00000002-0000-4000-8000-000000000000", "The fair is in town", expires_at=2e9 - 9e8, **old),
            Entry(
                "00000003-0000-4000-8000-000000000000", "The fuse is behind the clock", expires_at=9e9, **old
            ),
        ]
        store.apply([Edit("add", entry) for entry in entries], at=1e9, by="capture")
    found = json.loads(run("audit", "--json"))["findings"]
    assert [(one["kind"], one["texts"], one["fix"]) for one in found] == [
        (
            "secret",
            ["Push with [redacted github token]"],
            f"memoriter forget {entries[0].id} --now",
        ),
        ("expired", ["The fair is in town"], f"memoriter forget {entries[1].id} --now"),
        ("unused", ["The fuse is behind the clock"], f"memoriter forget {entries[2].id}"),
    ]
    assert key not in run("audit")
    for one in found:
        run(*shlex.split(one["fix"])[1:], "--yes")
    assert findings(run) == []


def test_a_contradiction_from_outside_is_never_fixed_by_forgetting_the_owners_words(
    run: Run, workspace: Path, tmp_path: Path
) -> None:
    with Memory.open(workspace, home=tmp_path / "home", overrides={"search.rerank": False}) as memory:
        memory.entries.add("I live in Berlin")
        outside = memory.entries.add("I live in Oslo", trust="untrusted").entry
    assert outside is not None
    (found,) = json.loads(run("audit", "--json"))["findings"]
    assert (found["kind"], found["fix"]) == ("contradiction", f"memoriter forget {outside.id}")


def test_an_audit_of_a_new_home_finds_nothing(run: Run) -> None:
    assert run("audit") == "Nothing to do. Entries: 0.\n"
    assert json.loads(run("audit", "--json")) == {"entries": 0, "findings": [], "degraded": None}
