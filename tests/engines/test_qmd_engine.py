"""The qmd engine over the fake program: files, line numbers, limits and errors."""

from __future__ import annotations

import json
import os
import stat

import pytest

from memoriter.errors import EngineBusy, EngineError, NotFound, PathRefused
from memoriter.extensions.qmd.command import Row
from memoriter.extensions.qmd.engine import QmdEngine, QmdSettings
from memoriter.extensions.qmd.hits import current_lines
from memoriter.extensions.qmd.updater import UpdateSchedule
from memoriter.notes.workspace import Workspace
from memoriter.records import Answer, Query
from memoriter.sessions.scope import Scope, ScopeCheck, ScopeRule


def places(answer: Answer) -> list[str | None]:
    return [hit.citation for hit in answer.hits]


def test_hits_have_workspace_paths_and_current_lines(note, open_qmd) -> None:
    note("MEMORY.md", "# Facts\n\none\ntwo\nthe heron stands here\nfour\nfive\nsix\n")
    note("memory/a b/鹭.md", "heron 鹭\n")
    answer = open_qmd().search(Query("heron"))
    assert (answer.provider, answer.model, answer.fallback, answer.degraded) == ("qmd", "bm25", False, None)
    assert places(answer) == ["MEMORY.md#L4-L7", "memory/a b/鹭.md#L1-L1"]
    assert answer.hits[0].snippet == "two\nthe heron stands here\nfour\nfive"
    part = answer.hits[0].explain.parts[0]
    assert (part.name, part.contribution) == ("qmd", answer.hits[0].score)


def test_front_matter_decides_the_trust_of_a_note(note, open_qmd) -> None:
    note("memory/mine.md", "the heron of mine\n")
    note("memory/agent.md", '---\ntrust: "agent"\n---\n\nthe heron of an agent\n')
    note("memory/mail.md", "---\ntrust: untrusted\n---\n\nthe heron of a stranger\n")
    assert {hit.path: hit.trust for hit in open_qmd().search(Query("heron")).hits} == {
        "memory/mine.md": "owner",
        "memory/agent.md": "agent",
        "memory/mail.md": "untrusted",
    }


def test_edits_are_found_immediately_and_deleted_text_is_not(note, open_qmd, workspace) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    assert places(engine.search(Query("heron"))) == ["memory/a.md#L1-L1"]
    note("memory/b.md", "stork and heron\n")
    (workspace / "memory/a.md").unlink()
    assert places(engine.search(Query("heron"))) == ["memory/b.md#L1-L1"]


def test_without_changes_qmd_only_searches(note, open_qmd, standin) -> None:
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


def test_lines_that_moved_since_the_update_have_current_numbers() -> None:
    lines = ["new", "lines", "above", "one", "two", "three", "four"]
    row = Row("memory", "a.md", 1.0, 1, ("one", "two", "thr..."))
    assert current_lines(lines, row) == (4, 6)
    assert current_lines(["one", "two", "three"], row) == (1, 3)
    assert current_lines(["quite", "other"], Row("memory", "a.md", 1.0, 9, ("x", "y"))) == (2, 2)
    assert current_lines(["a", "x", "b", "x"], Row("memory", "a.md", 1.0, 4, ("x", ""))) == (4, 4)


def test_a_question_is_answered_although_some_words_are_absent(note, open_qmd, standin) -> None:
    note("memory/a.md", "The backup runs every night.\n")
    answer = open_qmd().search(Query("when does the backup run on weekdays?"))
    assert places(answer) == ["memory/a.md#L1-L1"]
    assert [call[0] for call in standin.calls()[-2:]] == ["search", "query"]
    assert standin.calls()[-1][-1].startswith("lex: ")


@pytest.mark.parametrize("query", ["", "   ", "--", "\0"])
def test_an_empty_query_finds_nothing_and_starts_no_program(note, open_qmd, standin, query: str) -> None:
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


def test_a_threshold_never_drops_keyword_hits(note, open_qmd) -> None:
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


def test_each_extra_path_is_a_collection(note, open_qmd, tmp_path, workspace) -> None:
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


def test_files_outside_the_workspace_are_never_hits(note, open_qmd, workspace, tmp_path) -> None:
    """qmd may list more files of a folder than the workspace does."""
    note("memory/.secret.md", "heron\n")
    note("memory/a.md", "heron\n")
    secret = tmp_path / "secret.md"
    secret.write_text("heron of the neighbours\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    (workspace / "memory/a.md").unlink()
    (workspace / "memory/a.md").symlink_to(secret)
    engine.updater.forget()
    assert engine.search(Query("heron")).hits == ()
    for path in ("../secret.md", "/etc/passwd", ".secret.md"):
        rows = [Row("memory", path, 1.0, 1, ("x",)), Row("nope", "a.md", 1.0, 1, ("x",))]
        assert list(engine._pages(rows, engine._files())) == []


@pytest.mark.requirement("A4")
def test_reading_is_safe_and_does_not_start_qmd(note, open_qmd, standin) -> None:
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
        ("garbage", "The output of qmd is not JSON"),
        ("bytes", "is not UTF-8"),
        ("object", "The output of qmd is not"),
        ("rows", "A result of qmd has an unknown form"),
        ("flood", "printed more than 2,097,152 bytes"),
        ("exit1", "qmd search ended with status 1: Error: SQLITE_CONSTRAINT_PRIMARYKEY"),
        ("exit134", "ended with status 134"),
        ("vanish", "Cannot start qmd: No such file or directory"),
    ],
)
def test_each_fault_is_an_engine_error(note, open_qmd, standin, fault: str, sentence: str) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    standin.fault(fault if fault == "vanish" else f"{fault} on search")
    with pytest.raises(EngineError, match=sentence):
        engine.search(Query("heron"))


@pytest.mark.parametrize("fault", ["hang", "deaf"])
def test_a_program_that_hangs_is_killed_in_time(note, open_qmd, standin, fault: str) -> None:
    note("memory/a.md", "heron\n")
    open_qmd().search(Query("heron"))
    standin.fault(f"{fault} on search")
    engine = open_qmd(timeout_s=0.8)
    with pytest.raises(EngineError, match="did not finish within 0"):
        engine.search(Query("heron"))
    assert standin.leftover_processes() == []


def test_warnings_before_the_answer_are_ignored(note, open_qmd, standin) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    standin.fault("noise on search")
    assert places(engine.search(Query("heron"))) == ["memory/a.md#L1-L1"]


def test_a_program_that_cannot_start_is_reported_at_creation(open_qmd, standin) -> None:
    standin.fault("exit1")
    with pytest.raises(EngineError, match="qmd --version ended with status 1"):
        open_qmd()
    standin.repair()
    assert open_qmd().version == "qmd 2.8.3 (stand-in)"
    with pytest.raises(EngineError, match="does not exist"):
        open_qmd(command="/nowhere/qmd")


def test_an_unusable_folder_is_reported_at_creation(open_qmd, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="Cannot use the folder of qmd"):
        open_qmd(folder=tmp_path / "file" / "qmd")


def test_after_a_failed_update_the_old_index_answers_and_the_answer_says_so(note, open_qmd, standin) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    standin.fault("exit1 on update")
    note("memory/b.md", "stork\n")
    answer = engine.search(Query("heron"))
    assert places(answer) == ["memory/a.md#L1-L1"]
    assert answer.degraded == (
        "qmd could not index recent changes: "
        "qmd update ended with status 1: Error: SQLITE_CONSTRAINT_PRIMARYKEY."
    )
    degraded = engine.search(Query("heron")).degraded
    assert degraded is not None
    assert degraded.startswith("The last update of qmd failed and will be retried: ")
    assert engine.status().details["upkeep"] == (
        "qmd update ended with status 1: Error: SQLITE_CONSTRAINT_PRIMARYKEY."
    )


def test_a_failed_first_update_is_an_error_and_a_slow_one_is_busy(note, open_qmd, standin) -> None:
    note("memory/a.md", "heron\n")
    standin.fault("exit1 on update")
    with pytest.raises(EngineError) as failed:
        open_qmd().search(Query("heron"))
    assert not isinstance(failed.value, EngineBusy)
    standin.fault("hang on update")
    engine = open_qmd(UpdateSchedule(wait_s=0.3, debounce_s=0))
    with pytest.raises(EngineBusy, match="still building its first index"):
        engine.search(Query("heron"))
    engine.close()
    assert standin.leftover_processes() == []


def test_a_vanished_workspace_does_not_empty_the_index(note, open_qmd, workspace, standin) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    workspace.rename(workspace.with_name("away"))
    assert "does not exist" in (engine.search(Query("heron")).degraded or "")
    assert len(standin.calls("update")) == 1


def test_a_session_outside_the_scope_gets_no_hits_and_starts_no_program(
    note, workspace, standin, tmp_path
) -> None:
    note("memory/a.md", "heron\n")
    settings = QmdSettings(tmp_path / "qmd", workspace, command=str(standin.command))
    scope = ScopeCheck(Scope((ScopeRule("allow", chat_type="direct"),)))
    engine = QmdEngine(settings, Workspace(workspace), scope=scope)
    before = len(standin.calls())
    answer = engine.search(Query("heron", session="agent:main:telegram:group:42"))
    assert answer == Answer((), provider="qmd", model="bm25", citations=False)
    assert len(standin.calls()) == before
    engine.close()


def test_an_allowed_group_gets_no_citations(note, workspace, standin, tmp_path) -> None:
    note("memory/a.md", "heron\n")
    settings = QmdSettings(tmp_path / "qmd", workspace, command=str(standin.command), timeout_s=20)
    engine = QmdEngine(settings, Workspace(workspace), scope=ScopeCheck(Scope((), "allow")))
    answer = engine.search(Query("heron", session="agent:main:telegram:group:42"))
    assert (answer.citations, places(answer)) == (False, [None])
    engine.close()


# ---- sync, status, vectors ----------------------------------------------------------------------------------------


def test_sync_reports_counts_and_force_rebuilds(note, open_qmd) -> None:
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


def test_a_failed_sync_is_reported(note, open_qmd, standin) -> None:
    note("MEMORY.md", "one\n")
    engine = open_qmd()
    standin.fault("exit1 on update")
    assert "ended with status 1" in (engine.sync().degraded or "")


@pytest.mark.requirement("A4")
def test_status_describes_qmd_and_its_index(note, open_qmd, workspace) -> None:
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


def test_a_check_follows_the_first_update(note, open_qmd, standin) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd()
    assert engine.probe_vector() is None
    assert [call[0] for call in standin.calls()] == ["--version", "update", "search"]


def test_a_check_waits_a_limited_time_for_the_first_update(note, open_qmd, standin) -> None:
    note("memory/a.md", "heron\n")
    standin.fault("hang on update")
    engine = open_qmd(command_timeout_s=0.1)
    assert engine.probe_vector() == (
        "qmd is still building its first index. Run `memoriter index` to wait for it."
    )
    assert standin.calls("search") == []


def test_qmd_rewrites_its_configuration_only_at_its_first_start(
    note, open_qmd, standin, workspace, tmp_path
) -> None:
    """Another qmd that reads the file meanwhile finds no collections."""
    note("memory/a.md", "heron\n")
    open_qmd().search(Query("heron"))
    again = open_qmd()
    note("memory/b.md", "heron\n")
    assert places(again.search(Query("heron"))) == ["memory/a.md#L1-L1", "memory/b.md#L1-L1"]
    (tmp_path / "extra").mkdir()
    open_qmd(extra_paths=(tmp_path / "extra",)).search(Query("heron"))
    assert standin.rewritten() == 1


def test_qmds_own_model_returns_when_the_setting_is_removed(note, open_qmd) -> None:
    note("memory/a.md", "heron\n")
    models = []
    for embed_model in (None, "mine.gguf", None):
        engine = open_qmd(embed_model=embed_model)
        engine.search(Query("heron"))
        models.append(json.loads((engine.qmd.config / "index.yml").read_text())["models"]["embed"])
    assert models == ["hf:embed", "mine.gguf", "hf:embed"]


def test_collections_that_another_process_added_and_removed(note, open_qmd, workspace) -> None:
    (workspace / "MEMORY.md").write_text("stork\n")
    one, other = open_qmd(), open_qmd()
    assert one.search(Query("heron")).hits == ()
    note("memory/a.md", "heron\n")
    for engine in (one, other):
        assert places(engine.search(Query("heron"))) == ["memory/a.md#L1-L1"]
    (workspace / "memory/a.md").unlink()
    (workspace / "memory").rmdir()
    for engine in (one, other):
        assert engine.search(Query("heron")).hits == ()


def test_only_the_owner_can_read_the_files_of_qmd(note, open_qmd) -> None:
    note("MEMORY.md", "heron\n")
    engine = open_qmd()
    engine.search(Query("heron"))
    assert stat.S_IMODE(engine.settings.folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", ["query", "vsearch"])
def test_without_a_model_the_mode_falls_back_to_keywords_and_says_so(note, open_qmd, standin, mode) -> None:
    note("memory/a.md", "heron\n")
    engine = open_qmd(search_mode=mode, models_folder=None)
    answer = engine.search(Query("heron"))
    assert (answer.model, places(answer)) == ("bm25", ["memory/a.md#L1-L1"])
    assert answer.degraded == engine.probe_vector() == engine.probe_embedding() == engine.status().degraded
    assert f"no embedding model for `{mode}`" in (answer.degraded or "")
    assert standin.calls("embed") == []


def test_with_a_model_qmd_embeds_and_searches_both_legs(note, open_qmd, standin, tmp_path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / "embed.gguf").write_text("")
    note("memory/a.md", "heron\n")
    engine = open_qmd(search_mode="query", models_folder=models)
    answer = engine.search(Query("heron"))
    assert (answer.degraded, places(answer)) == (None, ["memory/a.md#L1-L1"])
    assert standin.calls("query")[-1][-1] == "lex: heron\nvec: heron"
    engine.updater.wait_for_embedding(20)
    assert len(standin.calls("embed")) == 1
    named = open_qmd(search_mode="query", embed_model=str(models / "embed.gguf"), folder=tmp_path / "other")
    named.search(Query("heron"))
    config = json.loads((named.qmd.config / "index.yml").read_text())
    assert config["models"]["embed"] == str(models / "embed.gguf")


def test_the_threshold_applies_to_similarities(note, open_qmd, tmp_path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / "embed.gguf").write_text("")
    for number in range(4):
        note(f"memory/{number}.md", "heron\n")
    engine = open_qmd(search_mode="vsearch", models_folder=models)
    assert [hit.score for hit in engine.search(Query("heron", min_score=0.4)).hits] == [1.0, 0.5]
