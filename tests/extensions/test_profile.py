"""The profile: in Python, in the brief, and in files of the workspace."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.extensions.profile.files import BEGIN, END, Kept, refresh

ENGLISH = {
    "about": "I live in Munich",
    "preferences": "I prefer tabs over spaces",
    "people": "My sister Ana is a nurse",
    "projects": "We use Postgres for the ledger",
    "plans": "I will speak at the harbour meeting on 2099-05-06",
}
CHINESE = {
    "about": "我住在慕尼黑",
    "preferences": "我喜欢用制表符缩进",
    "people": "我的妹妹安娜是护士",
    "projects": "我们用 Postgres 存账本",
    "plans": "我要在2099年5月6日参加港口会议",
}


def at(day: str) -> float:
    return datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC).timestamp()


@pytest.fixture
def memory(open_memory: Any) -> Memory:
    memory: Memory = open_memory(profile__files=True)
    return memory


@pytest.mark.parametrize(("said", "heading"), [(ENGLISH, "## About the owner"), (CHINESE, "## 关于我")])
def test_a_profile_has_an_exact_statement_in_each_section(memory: Memory, said: Any, heading: str) -> None:
    ids = {text: memory.remember(text).entry.id for text in said.values()}  # type: ignore[union-attr]
    profile = memory.profile()
    assert {line.section: (line.text, line.citation) for line in profile.lines} == {
        section: (text, f"entry:{ids[text]}") for section, text in said.items()
    }
    today = memory.entries.get(ids[said["about"]]).day
    assert profile.text.startswith(
        f"{heading}\n- {said['about']} ({today}, entry:{ids[said['about']][:8]})\n\n## "
    )
    assert profile.tokens <= 400
    project = [line.text for line in memory.profile(project=True).lines]
    assert project == [said["projects"]]
    assert f"{said['plans']} ({today}, for 2099-05-06, entry:" in profile.text


def test_only_the_newest_in_force_is_in_a_profile(memory: Memory) -> None:
    memory.remember("I live in Berlin")
    memory.remember("I no longer live in Berlin")
    memory.remember("I live by the harbour of the strangers", trust="untrusted")
    memory.remember("I own the relayed house", trust="relayed")
    memory.remember("I have two cats", trust="agent")
    past = [{"text": "I am going to Singapore in July", "created_at": at("2025-05-02")}]
    memory.entries.import_(json.dumps(past))
    lines = [(line.text, line.whose) for line in memory.profile().lines]
    assert lines == [("I no longer live in Berlin", "owner"), ("I have two cats", "agent")]
    assert "I have two cats" in memory.profile().text.splitlines()[-1]


def test_a_memory_without_entries_has_an_empty_profile_and_gets_no_database(memory: Memory) -> None:
    assert (memory.profile().lines, memory.profile().text) == ((), "")
    assert not (memory.settings.agent_folder / "memory.db").exists()


def test_the_brief_starts_with_the_profile(memory: Memory) -> None:
    for text in ENGLISH.values():
        memory.remember(text)
    memory.entries.import_(
        json.dumps([{"text": "I am going to Singapore in July", "created_at": at("2025-05-02")}])
    )
    lines = memory.brief("the ledger").lines
    assert {line.text for line in lines} == {*ENGLISH.values()}
    assert all(line.date for line in lines)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=80), max_size=12),
    tokens=st.integers(1, 120),
)
def test_a_profile_never_exceeds_its_tokens(memory: Memory, texts: list[str], tokens: int) -> None:
    rows = [{"text": f"I say {text}"} for text in texts]
    memory.entries.import_(json.dumps(rows)) if rows else None
    profile = memory.profile(tokens=tokens)
    assert profile.tokens <= tokens
    assert profile == memory.profile(tokens=tokens)


# ---- files --------------------------------------------------------------------------------------------------------


def test_the_files_are_written_only_if_the_owner_wants_them(open_memory: Any, workspace: Path) -> None:
    memory: Memory = open_memory()
    memory.remember(ENGLISH["about"])
    assert refresh(memory) == []
    assert not (workspace / "USER.md").exists()


def test_edits_between_the_marks_become_statements(memory: Memory, workspace: Path) -> None:
    old = memory.remember("I live in Munich").entry
    memory.remember("The agent guesses that I like tea", trust="agent")
    assert old is not None
    user = workspace / "USER.md"
    user.write_text("# Me\n\nMy own notes.\n", "utf-8")
    assert refresh(memory) == [Kept("USER.md", changed=True), Kept("PROJECT.md")]
    line = f"- I live in Munich ({old.day}, entry:{old.id[:8]})"
    block = f"{BEGIN}\n\n## About the owner\n{line}\n\n{END}\n"
    assert user.read_text("utf-8") == f"# Me\n\nMy own notes.\n\n{block}"
    assert refresh(memory) == [Kept("USER.md"), Kept("PROJECT.md")]

    edited = (
        user.read_text("utf-8").replace("Munich", "Graz").replace(f"\n\n{END}", f"\n- 我对花生过敏\n\n{END}")
    )
    user.write_text(edited, "utf-8")
    kept = refresh(memory)
    assert kept[0] == Kept("USER.md", changed=True, learned=("I live in Graz", "我对花生过敏"))
    assert memory.entries.get(old.id).state == "superseded"
    new = {entry.text: (entry.trust, entry.source) for entry in memory.entries.list(trust=["owner"])}
    assert new == {"I live in Graz": ("owner", "profile"), "我对花生过敏": ("owner", "profile")}
    assert user.read_text("utf-8").startswith("# Me\n\nMy own notes.\n\n")
    assert [line.text for line in memory.profile().lines if line.whose == "owner"] == [
        "我对花生过敏",
        "I live in Graz",
    ]


def test_a_plan_is_written_with_its_days_and_not_learned_again(memory: Memory, workspace: Path) -> None:
    memory.remember("The launch of the harbour site is planned for 2099-07", "project_context")
    assert [one.changed for one in refresh(memory)] == [True, True]
    assert ", for 2099-07, entry:" in (workspace / "PROJECT.md").read_text("utf-8")
    assert refresh(memory) == [Kept("USER.md"), Kept("PROJECT.md")]
    assert len(memory.entries.list()) == 1


def test_a_line_whose_entry_was_erased_does_not_come_back(memory: Memory, workspace: Path) -> None:
    entry = memory.remember("I live in Munich").entry
    assert entry is not None
    refresh(memory)
    memory.erase(entry.id)
    assert refresh(memory)[0] == Kept("USER.md", changed=True)
    assert "Munich" not in (workspace / "USER.md").read_text("utf-8")


def test_a_file_that_cannot_be_understood_is_left_as_it_is(memory: Memory, workspace: Path) -> None:
    memory.remember("I live in Munich")
    user = workspace / "USER.md"
    for content in (
        f"{BEGIN}\n- I like tea\n".encode(),
        b"\xff\xfe not UTF-8",
        f"{BEGIN}\n- {'x' * 3000}\n{END}".encode(),
    ):
        user.write_bytes(content)
        kept = refresh(memory)[0]
        assert not kept.changed
        assert (kept.problem or "").endswith("The file was not changed.")
        assert user.read_bytes() == content


_PLAIN = st.text(st.characters(codec="utf-8"), max_size=60).filter(lambda text: "memoriter: " not in text)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=_PLAIN, after=_PLAIN)
def test_bytes_outside_the_marks_never_change(
    memory: Memory, workspace: Path, before: str, after: str
) -> None:
    memory.remember("I live in Munich")
    user = workspace / "USER.md"
    user.write_bytes(f"{before}{BEGIN}\n- I live in Graz\n{END}{after}".encode())
    refresh(memory)
    found = user.read_bytes()
    start, end = found.index(BEGIN.encode()), found.rindex(END.encode()) + len(END.encode())
    assert (found[:start], found[end:]) == (before.encode(), after.encode())
    user.write_bytes(before.encode())
    refresh(memory)
    assert user.read_bytes().startswith(before.encode())
