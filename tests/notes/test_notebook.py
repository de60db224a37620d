"""`memory_save`: to the log of the day, or to a note of a category (E3, E4)."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from memoriter.errors import WriteError
from memoriter.notes.notebook import Notebook, slug
from memoriter.records import Saved, Trust

NOW = datetime(2026, 2, 8, 10, 32, tzinfo=timezone(timedelta(hours=8)))


@pytest.fixture
def notebook(workspace: Path) -> Notebook:
    return Notebook(workspace, now=lambda: NOW)


@pytest.mark.requirement("E4")
def test_without_a_category_a_text_goes_to_the_log_of_the_day(notebook: Notebook, workspace: Path) -> None:
    first = notebook.save("用户喜欢使用 TypeScript 开发", "用户偏好", ["preference", "tech"])
    second = notebook.save("Backups run at three.\nEvery night.")
    assert first == Saved("memory/2026-02-08.md", 3, 7)
    assert second.citation == "memory/2026-02-08.md#L9-L12"
    assert (workspace / first.path).read_text(encoding="utf-8") == (
        "# 2026-02-08\n\n## 10:32 用户偏好\n\n用户喜欢使用 TypeScript 开发\n\nTags: preference, tech\n"
        "\n## 10:32\n\nBackups run at three.\nEvery night.\n"
    )


@pytest.mark.requirement("E4")
def test_with_a_category_a_text_goes_to_a_note_that_grows(notebook: Notebook, workspace: Path) -> None:
    notebook.save("Ship in March.", "Project goals", ["q1"], category="Project")
    saved = notebook.save("Ship in April.", "Project goals", category="project")
    assert saved.citation == "memory/project/project-goals.md#L11-L13"
    assert (workspace / saved.path).read_text(encoding="utf-8") == (
        '---\ntitle: "Project goals"\ntags: ["q1"]\ncreated: "2026-02-08"\n---\n\n# Project goals\n\nShip in March.\n'
        "\n## 2026-02-08 10:32\n\nShip in April.\n"
    )


def test_an_agent_writes_to_a_separate_log(notebook: Notebook, workspace: Path) -> None:
    mine = notebook.save("Anna prefers tea.", "Anna")
    agents = notebook.save("Anna prefers tea.", "Anna", trust="agent")
    assert (mine.path, agents.path) == ("memory/2026-02-08.md", "memory/2026-02-08-agent.md")
    assert (workspace / agents.path).read_text(encoding="utf-8") == (
        '---\ntrust: "agent"\n---\n\n# 2026-02-08\n\n## 10:32 Anna\n\nAnna prefers tea.\n'
    )
    assert notebook.save("Anna prefers tea.", trust="agent").already
    assert notebook.save("Bo prefers milk.", trust="agent").path == agents.path


def test_words_of_the_owner_are_not_added_to_a_log_of_an_agent(notebook: Notebook, workspace: Path) -> None:
    taken = "---\ntrust: agent\n---\n\nmy day\n"
    (workspace / "memory/2026-02-08.md").write_text(taken, encoding="utf-8")
    saved = notebook.save("The safe's code is with Anna.")
    assert saved.path == "memory/2026-02-08-owner.md"
    assert notebook.save("Bo has the key.").path == saved.path
    assert (workspace / "memory/2026-02-08.md").read_text(encoding="utf-8") == taken


def test_an_agent_does_not_add_to_a_log_that_lost_its_trust_field(
    notebook: Notebook, workspace: Path
) -> None:
    first = notebook.save("Anna prefers tea.", trust="agent")
    (workspace / first.path).write_text("Anna prefers tea.\n", encoding="utf-8")
    assert notebook.save("Bo prefers milk.", trust="agent").path == "memory/2026-02-08-agent-2.md"
    assert (workspace / first.path).read_text(encoding="utf-8") == "Anna prefers tea.\n"


def test_notes_of_people_and_agents_are_separate(notebook: Notebook, workspace: Path) -> None:
    def save(text: str, title: str, trust: Trust) -> str:
        return notebook.save(text, title, category="project", trust=trust).path

    assert save("Ship in March.", "Goals", "owner") == "memory/project/goals.md"
    assert save("Ship in April.", "Goals", "agent") == "memory/project/goals-agent.md"
    assert save("Ship in May.", "Goals", "agent") == "memory/project/goals-agent.md"
    assert save("Use Postgres.", "Tools", "agent") == "memory/project/tools.md"
    assert save("Use SQLite.", "Tools", "agent") == "memory/project/tools.md"
    assert save("Use DuckDB.", "Tools", "owner") == "memory/project/tools-owner.md"
    assert (workspace / "memory/project/tools.md").read_text(encoding="utf-8") == (
        '---\ntitle: "Tools"\ncreated: "2026-02-08"\ntrust: "agent"\n---\n\n# Tools\n\nUse Postgres.\n'
        "\n## 2026-02-08 10:32\n\nUse SQLite.\n"
    )


def test_a_tag_that_names_a_folder_is_the_category(notebook: Notebook, workspace: Path) -> None:
    (workspace / "memory/技术").mkdir()
    assert notebook.save("用 Postgres", "数据库选型", ["决定", "技术"]).path == "memory/技术/数据库选型.md"


def test_saving_the_same_text_twice_writes_it_once(notebook: Notebook, workspace: Path) -> None:
    first = notebook.save("Anna prefers tea.", "Anna")
    again = notebook.save("Anna prefers tea.", "Anna again")
    assert (again.already, again.start_line) == (True, 5)
    assert (workspace / first.path).read_text(encoding="utf-8").count("Anna prefers tea.") == 1


def test_secrets_and_private_spans_are_removed_and_reported(notebook: Notebook, workspace: Path) -> None:
    saved = notebook.save(
        "Deploy key ghp_" + "a1" * 18 + "<private>PIN 4711</private>", "Key <private>x</private>"
    )
    text = (workspace / saved.path).read_text(encoding="utf-8")
    assert "[redacted github token]" in text
    assert "4711" not in text
    assert saved.note == "Left out: private spans and secrets."
    with pytest.raises(WriteError, match="Nothing to save"):
        notebook.save("<private>all of it</private>")


@pytest.mark.parametrize("broken", [chr(0xDCFF), chr(0xD83D)], ids=ascii)
def test_a_lone_surrogate_is_written_as_a_question_mark(
    notebook: Notebook, workspace: Path, broken: str
) -> None:
    logged = notebook.save(f"tea {broken}", f"Anna {broken}", [f"people {broken}"])
    assert (workspace / logged.path).read_text(encoding="utf-8") == (
        "# 2026-02-08\n\n## 10:32 Anna ?\n\ntea ?\n\nTags: people ?\n"
    )
    item = notebook.save(f"tea {broken}", f"Anna {broken}", category=f"people {broken}")
    assert item.path == "memory/people/anna.md"
    assert notebook.save("The next one.").path == logged.path


@pytest.mark.parametrize("category", ["../../etc", "/etc", "..", "a/../../b", ".hidden"])
def test_no_category_or_title_leads_out_of_the_memory_folder(
    notebook: Notebook, workspace: Path, category: str
) -> None:
    saved = notebook.save("x", "../../" + category, category=category)
    assert (workspace / saved.path).resolve().is_relative_to(workspace / "memory")
    assert not any(part.startswith(".") for part in Path(saved.path).parts)


def test_a_folder_that_links_out_of_the_workspace_is_refused(
    notebook: Notebook, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "memory/away").symlink_to(tmp_path)
    with pytest.raises(WriteError, match="leads out of the workspace"):
        notebook.save("x", category="away")


def test_a_folder_that_links_to_itself_is_refused(notebook: Notebook, workspace: Path) -> None:
    (workspace / "memory/loop").symlink_to(workspace / "memory/loop")
    with pytest.raises(WriteError, match="was not written"):
        notebook.save("x", category="loop")


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Backups: nightly, at 03:00!", "backups-nightly-at-03-00"),
        ("数据库备份：每晚三点", "数据库备份-每晚三点"),
        ("Ｆｕｌｌ width", "full-width"),
        ("🚀", "note"),
        ("a" * 100, "a" * 40),
        ("one two three four five six seven eight nine ten", "one-two-three-four-five-six-seven-eight"),
        ("été à Zürich", "été-à-zürich"),
        ("我们" * 18 + "升级到12345", "我们" * 18 + "升级到"),
        ("1" * 100, "1" * 40),
    ],
)
def test_slugs_are_readable(title: str, name: str) -> None:
    assert slug(title) == name
