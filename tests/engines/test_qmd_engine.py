"""The qmd engine over the stand-in: the same files, the true lines, the limits, and errors in words."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest
from standin import StandIn

from memoriter.engines.qmd import Exports, QmdEngine, QmdSettings, Schedule
from memoriter.engines.qmd.command import Row
from memoriter.engines.qmd.hits import lines_now
from memoriter.errors import EngineBusy, EngineError, NotFound, PathRefused
from memoriter.notes.workspace import Workspace
from memoriter.records import Answer, Query
from memoriter.sessions.scope import Scope, ScopeCheck, ScopeRule
from memoriter.sessions.transcripts import Transcripts


def places(answer: Answer) -> list[str | None]:
    return [hit.citation for hit in answer.hits]


def test_hits_have_the_workspaces_paths_and_true_lines(note, open_qmd) -> None:
    note("MEMORY.md", "# Facts\n\none\ntwo\nthe heron stands here\nfour\nfive\nsix\n")
    note("memory/a b/鹭.md", "heron 鹭\n")
    answer = open_qmd().search(Query("heron"))
    assert (answer.provider, answer.model, answer.fallback, answer.degraded) == ("qmd", "bm25", False, None)
    assert places(answer) == ["MEMORY.md#L4-L7", "memory/a b/鹭.md#L1-L1"]
    assert answer.hits[0].snippet == "two\nthe heron stands here\nfour\nfive"
    part = answer.hits[0].explain.parts[0]
    assert (part.name, part.contribution) == ("qmd", answer.hits[0].score)


def test_a_note_is_trusted_as_far_as_its_front_matter_says(note, open_qmd) -> None:
    note("memory/mine.md", "the heron of mine\n")
    note("memory/agent.md", '---\ntrust: "agent"\n---\n\nthe heron of an agent\n')
    note("memory/mail.md", "---\ntrust: untrusted\n---\n\nthe heron of a stranger\n")
    assert {hit.path: hit.trust for hit in open_qmd().search(Query("heron")).hits} == {
        "memory/mine.md": "owner",
        "memory/agent.md": "agent",
        "memory/mail.md": "untrusted",
    }


def test_an_edit_is_found_at_once_and_what_is_gone_is_not(note, open_qmd, workspace) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    assert places(engine.search(Query("heron"))) == ["memory/a.md#L1-L1"]
    note("memory/b.md", "stork and heron\n")
    (workspace / "memory/a.md").unlink()
    assert places(engine.search(Query("heron"))) == ["memory/b.md#L1-L1"]


def test_nothing_changed_means_that_qmd_is_asked_nothing_but_the_query(note, open_qmd, standin) -> None:
    note("memory/a.md", "heron\n")
    os.utime(note("memory/b.md", "stork\n"), ns=(0, 0))
    os.utime(note("memory/a.md", "heron\n"), ns=(0, 0))
    first = open_qmd()
    first.search(Query("heron"))
    first.search(Query("heron"))
    again = open_qmd()
    again.search(Query("heron"))
    assert [call[0] for call in standin.calls()] == [
        "--version", "update", "search", "search", "search",
    ]  # fmt: skip


def test_lines_that_moved_since_the_update_are_found_where_they_stand_now() -> None:
    lines = ["new", "lines", "above", "one", "two", "three", "four"]
    row = Row("memory", "a.md", 1.0, 1, ("one", "two", "thr..."))
    assert lines_now(lines, row) == (4, 6)
    assert lines_now(["one", "two", "three"], row) == (1, 3)
    assert lines_now(["quite", "other"], Row("memory", "a.md", 1.0, 9, ("x", "y"))) == (2, 2)
    assert lines_now(["a", "x", "b", "x"], Row("memory", "a.md", 1.0, 4, ("x", ""))) == (4, 4)


def test_a_question_whose_words_are_not_all_there_is_still_answered(note, open_qmd, standin) -> None:
    note("memory/a.md", "The backup runs every night.\n")
    answer = open_qmd().search(Query("when does the backup run on weekdays?"))
    assert places(answer) == ["memory/a.md#L1-L1"]
    assert [call[0] for call in standin.calls()[-2:]] == ["search", "query"]
    assert standin.calls()[-1][-1].startswith("lex: ")


@pytest.mark.parametrize("query", ["", "   ", "--", "\0"])
def test_an_empty_query_finds_nothing_and_starts_nothing(note, open_qmd, standin, query: str) -> None:
    note("memory/a.md", "heron\n")
    assert open_qmd().search(Query(query)).hits == ()
    assert standin.calls("search") == []


def test_limits_on_results_and_snippets(note, open_qmd) -> None:
    for number in range(9):
        note(f"memory/{number}.md", "heron " * 200)
    engine = open_qmd(max_results=3, max_snippet_chars=50)
    answer = engine.search(Query("heron"))
    assert [len(hit.snippet) <= 50 for hit in answer.hits] == [True] * 3
    assert len(engine.search(Query("heron", max_results=5)).hits) == 5
    assert engine.search(Query("heron", max_results=0)).hits == ()


def test_a_keyword_hit_is_never_dropped_by_a_threshold(note, open_qmd) -> None:
    for number in range(5):
        note(f"memory/{number}.md", "heron\n")
    assert len(open_qmd().search(Query("heron", min_score=0.9)).hits) == 5


def test_filters_by_source_and_path(note, open_qmd) -> None:
    note("MEMORY.md", "heron\n")
    note("memory/work/a.md", "heron\n")
    engine = open_qmd()
    assert places(engine.search(Query("heron", path_prefix="memory/work/"))) == ["memory/work/a.md#L1-L1"]
    assert engine.search(Query("heron", source="sessions")).hits == ()
    assert len(engine.search(Query("heron", source="memory")).hits) == 2


def test_extra_paths_are_collections_of_their_own(note, open_qmd, tmp_path, workspace) -> None:
    folder, file = tmp_path / "elsewhere", tmp_path / "one [file].md"
    folder.mkdir()
    (folder / "x.md").write_text("heron\n")
    file.write_text("heron\n")
    note("MEMORY.md", "heron\n")
    engine = open_qmd(extra_paths=(folder, file))
    assert sorted(places(engine.search(Query("heron")))) == [
        f"{folder}/x.md#L1-L1",
        f"{file}#L1-L1",
        "MEMORY.md#L1-L1",
    ]
    config = json.loads((engine.qmd.config / "index.yml").read_text())
    assert config["collections"]["extra-2"] == {"path": str(tmp_path), "pattern": "one \\[file\\].md"}


def test_what_the_workspace_does_not_show_is_not_shown(note, open_qmd, workspace, tmp_path) -> None:
    """qmd's idea of what belongs to a folder may be wider than ours."""
    note("memory/.secret.md", "heron\n")
    note("memory/a.md", "heron\n")
    secret = tmp_path / "secret.md"
    secret.write_text("heron of the neighbours\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    (workspace / "memory/a.md").unlink()
    (workspace / "memory/a.md").symlink_to(secret)
    engine.upkeep.forget()
    assert engine.search(Query("heron")).hits == ()
    for path in ("../secret.md", "/etc/passwd", ".secret.md"):
        rows = [Row("memory", path, 1.0, 1, ("x",)), Row("nope", "a.md", 1.0, 1, ("x",))]
        assert list(engine._pages(rows, engine._files())) == []


def test_reading_is_our_own_and_safe(note, open_qmd, standin) -> None:
    note("memory/a.md", "one\ntwo\nthree\n")
    engine = open_qmd()
    standin.fault("exit1")
    assert engine.read_file("memory/a.md", 2, 1).text == "two"
    with pytest.raises(PathRefused):
        engine.read_file("../secret.md")
    with pytest.raises(NotFound):
        engine.read_file("memory/none.md")


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("garbage", "qmd's answer is not JSON"),
        ("bytes", "printed what is not UTF-8"),
        ("object", "qmd's answer is not"),
        ("rows", "a result of an unknown form"),
        ("flood", "printed more than 2,097,152 bytes"),
        ("exit1", "qmd search ended with status 1: Error: SQLITE_CONSTRAINT_PRIMARYKEY"),
        ("exit134", "ended with status 134"),
        ("vanish", "cannot be started: No such file or directory"),
    ],
)
def test_each_fault_is_an_engine_error_in_words(note, open_qmd, standin, fault: str, sentence: str) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    standin.fault(fault if fault == "vanish" else f"{fault} on search")
    with pytest.raises(EngineError, match=sentence):
        engine.search(Query("heron"))


@pytest.mark.parametrize("fault", ["hang", "deaf"])
def test_a_program_that_hangs_is_ended_in_time(note, open_qmd, standin, fault: str) -> None:
    note("memory/a.md", "heron\n")
    open_qmd().search(Query("heron"))
    standin.fault(f"{fault} on search")
    engine = open_qmd(timeout_s=0.8)
    started = time.monotonic()
    with pytest.raises(EngineError, match="did not finish within 0"):
        engine.search(Query("heron"))
    assert time.monotonic() - started < 5
    assert standin.left_behind() == []


def test_warnings_before_the_answer_do_no_harm(note, open_qmd, standin) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    standin.fault("noise on search")
    assert places(engine.search(Query("heron"))) == ["memory/a.md#L1-L1"]


def test_a_program_that_cannot_start_is_found_at_creation(open_qmd, standin) -> None:
    standin.fault("exit1")
    with pytest.raises(EngineError, match="qmd --version ended with status 1"):
        open_qmd()
    standin.repair()
    assert open_qmd().version == "qmd 2.8.3 (stand-in)"
    with pytest.raises(EngineError, match="does not exist"):
        open_qmd(command="/nowhere/qmd")


def test_a_folder_that_cannot_be_used_is_found_at_creation(open_qmd, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="cannot be used: "):
        open_qmd(folder=tmp_path / "file" / "qmd")


def test_a_failing_update_is_said_and_the_old_index_still_answers(note, open_qmd, standin) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    standin.fault("exit1 on update")
    note("memory/b.md", "stork\n")
    answer = engine.search(Query("heron"))
    assert places(answer) == ["memory/a.md#L1-L1"]
    assert answer.degraded == (
        "qmd could not take in what changed on disk: "
        "qmd update ended with status 1: Error: SQLITE_CONSTRAINT_PRIMARYKEY."
    )
    held = engine.search(Query("heron")).degraded
    assert held is not None
    assert held.startswith("qmd's last update failed and is tried again later: ")
    assert engine.status().details["upkeep"] == (
        "qmd update ended with status 1: Error: SQLITE_CONSTRAINT_PRIMARYKEY."
    )


def test_a_first_update_that_fails_is_a_failure_and_one_that_takes_long_is_not(
    note, open_qmd, standin
) -> None:
    note("memory/a.md", "heron\n")
    standin.fault("exit1 on update")
    with pytest.raises(EngineError) as failed:
        open_qmd().search(Query("heron"))
    assert not isinstance(failed.value, EngineBusy)
    standin.fault("hang on update")
    engine = open_qmd(Schedule(wait_s=0.3, debounce_s=0))
    with pytest.raises(EngineBusy, match="still building its first index"):
        engine.search(Query("heron"))
    engine.close()
    assert standin.left_behind() == []


def test_a_vanished_workspace_does_not_empty_the_index(note, open_qmd, workspace, standin) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    workspace.rename(workspace.with_name("away"))
    assert "is not there" in (engine.search(Query("heron")).degraded or "")
    assert len(standin.calls("update")) == 1


def test_a_session_outside_the_scope_gets_nothing_and_qmd_is_not_started(
    note, workspace, standin, tmp_path
) -> None:
    note("memory/a.md", "heron\n")
    settings = QmdSettings(tmp_path / "qmd", workspace, command=str(standin.command))
    guard = ScopeCheck(Scope((ScopeRule("allow", chat_type="direct"),)))
    engine = QmdEngine.create(settings, Workspace(workspace), guard=guard)
    before = len(standin.calls())
    answer = engine.search(Query("heron", session_key="agent:main:telegram:group:42"))
    assert answer == Answer((), provider="qmd", model="bm25", citations=False)
    assert len(standin.calls()) == before
    engine.close()


def test_a_group_that_is_allowed_is_not_shown_places(note, workspace, standin, tmp_path) -> None:
    note("memory/a.md", "heron\n")
    settings = QmdSettings(tmp_path / "qmd", workspace, command=str(standin.command), timeout_s=20)
    engine = QmdEngine.create(settings, Workspace(workspace), guard=ScopeCheck(Scope((), "allow")))
    answer = engine.search(Query("heron", session_key="agent:main:telegram:group:42"))
    assert (answer.citations, places(answer)) == (False, [None])
    engine.close()


# ---- sync, status, vectors ----------------------------------------------------------------------------------------


def test_a_sync_reports_and_force_builds_anew(note, open_qmd) -> None:
    note("MEMORY.md", "one\n")
    note("memory/a.md", "two\n")
    note("memory/dist/b.md", "three\n")
    engine = open_qmd()
    report = engine.sync()
    assert (report.files, report.changed, report.unchanged, report.degraded) == (3, 3, 0, None)
    assert [problem.path for problem in report.problems] == ["memory/dist/b.md"]
    assert engine.sync().unchanged == 3
    forced = engine.sync(force=True)
    assert (forced.changed, forced.rebuilt) == (3, True)


def test_a_failing_sync_is_told_in_the_report(note, open_qmd, standin) -> None:
    note("MEMORY.md", "one\n")
    engine = open_qmd()
    standin.fault("exit1 on update")
    assert "ended with status 1" in (engine.sync().degraded or "")


def test_status_says_what_qmd_is_and_holds(note, open_qmd, workspace) -> None:
    note("MEMORY.md", "heron\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    status = engine.status(deep=True)
    assert (status.backend, status.workspace, status.files, status.provider) == (
        "qmd",
        str(workspace),
        1,
        "qmd",
    )
    assert status.details["qmd"] == "qmd 2.8.3 (stand-in)"
    assert (status.details["store"], status.details["embedding"]) == ("ok", "ok")
    assert status.last_sync is not None
    assert status.index_bytes > 0
    assert engine.probe_vector() is None


def test_what_qmd_keeps_is_for_the_owner_alone(note, open_qmd) -> None:
    note("MEMORY.md", "heron\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    assert stat.S_IMODE(engine.settings.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", ["query", "vsearch"])
def test_a_mode_without_its_model_searches_by_keyword_and_says_so(note, open_qmd, standin, mode) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd(search_mode=mode, models_folder=None)
    answer = engine.search(Query("heron"))
    assert (answer.model, places(answer)) == ("bm25", ["memory/a.md#L1-L1"])
    assert answer.degraded == engine.probe_vector() == engine.probe_embedding() == engine.status().degraded
    assert f"no embedding model for `{mode}`" in (answer.degraded or "")
    assert standin.calls("embed") == []


def test_with_a_model_qmd_embeds_and_both_legs_are_asked(note, open_qmd, standin, tmp_path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / "embed.gguf").write_text("")
    note("memory/a.md", "heron\n")
    engine = open_qmd(search_mode="query", models_folder=models)
    answer = engine.search(Query("heron"))
    assert (answer.degraded, places(answer)) == (None, ["memory/a.md#L1-L1"])
    assert standin.calls("query")[-1][-1] == "lex: heron\nvec: heron"
    for thread in list(engine.upkeep._threads):
        thread.join(20)
    assert len(standin.calls("embed")) == 1
    named = open_qmd(search_mode="query", embed_model=str(models / "embed.gguf"), folder=tmp_path / "other")
    named.search(Query("heron"))
    config = json.loads((named.qmd.config / "index.yml").read_text())
    assert config["models"] == {"embed": str(models / "embed.gguf")}


def test_the_threshold_holds_for_nearness(note, open_qmd, tmp_path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / "embed.gguf").write_text("")
    for number in range(4):
        note(f"memory/{number}.md", "heron\n")
    engine = open_qmd(search_mode="vsearch", models_folder=models)
    assert [hit.score for hit in engine.search(Query("heron", min_score=0.4)).hits] == [1.0, 0.5]


# ---- sessions -----------------------------------------------------------------------------------------------------


def test_sessions_are_exported_and_found_at_the_transcripts_own_lines(
    note, workspace, standin, tmp_path
) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    turns = [
        {"role": "user", "content": "Where do the herons\nnest this year?"},
        {"role": "tool", "content": "noise"},
        {"role": "assistant", "content": "In the marsh."},
    ]
    (sessions / "one.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    note("MEMORY.md", "nothing\n")
    exports = Exports(Transcripts([sessions]), tmp_path / "qmd" / "sessions")
    settings = QmdSettings(
        tmp_path / "qmd",
        workspace,
        command=str(standin.command),
        timeout_s=20,
        schedule=Schedule(debounce_s=0, wait_s=10),
    )
    engine = QmdEngine.create(settings, Workspace(workspace), exports=exports)
    hit = engine.search(Query("marsh")).hits[0]
    assert (hit.path, hit.source, hit.trust) == ("sessions/one.jsonl", "sessions", "agent")
    assert (hit.start_line, hit.end_line) == (2, 3)
    assert hit.snippet == "Assistant: In the marsh."
    first = engine.search(Query("herons nest")).hits[0]
    assert "User: Where do the herons nest this year?" in first.snippet
    assert engine.search(Query("marsh", source="memory")).hits == ()
    assert "marsh" in engine.read_file("sessions/one.jsonl").text
    (sessions / "one.jsonl").unlink()
    assert engine.search(Query("marsh")).hits == ()
    assert list(exports.folder.glob("*.md")) == []
    engine.close()


def test_the_version_is_asked_once_for_each_program(open_qmd, standin: StandIn) -> None:
    open_qmd()
    open_qmd()
    assert len(standin.calls("--version")) == 1
    os.utime(standin.command, ns=(0, 0))
    open_qmd()
    assert len(standin.calls("--version")) == 2


def test_the_folder_is_the_agents_own(open_qmd, standin: StandIn, tmp_path: Path) -> None:
    open_qmd(folder=tmp_path / "agents" / "a" / "qmd")
    open_qmd(folder=tmp_path / "agents" / "b" / "qmd")
    caches = {environment["XDG_CACHE_HOME"] for environment in standin.environments()}
    assert caches == {str(tmp_path / f"agents/{agent}/qmd/cache") for agent in "ab"}


@pytest.mark.parametrize(
    "query", ["x" * 1_000_000, "word " * 10_000, "\ud800", "a\0b", "heron " + "🪶" * 9000]
)
def test_any_query_is_answered(note, open_qmd, query: str) -> None:
    note("memory/a.md", "heron\n")
    assert open_qmd().search(Query(query)).provider == "qmd"
