"""Import of Claude Code's transcripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_claude_code import ClaudeCode

from memoriter.extensions.claude_code.transcripts import import_claude_code


@pytest.mark.requirement("X12")
def test_transcripts_are_imported_before_claude_code_deletes_them(
    claude: ClaudeCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    projects = tmp_path / "claude" / "projects" / "-home-me-work"
    projects.mkdir(parents=True)
    said = claude.say("Which queue do we use for mail?", "NATS, since March.")
    said.rename(projects / said.name)
    (projects / "agent-1.jsonl").write_text("{}\n")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    with claude.memory() as memory:
        for action in ("new", "same"):
            report = import_claude_code(memory)
            assert [(step.source.name, step.action) for step in report.steps] == [(said.name, action)]
        (projects / said.name).unlink()
        (hit,) = memory.search("queue for mail", source="sessions", max_results=1).hits
        assert hit.path == f"sessions/claude-code/-home-me-work/{said.name}"
    command = ["import", "claude-code", str(tmp_path / "claude"), "--dry-run"]
    done = claude.run(command, b"", claude.environment, claude.project)
    assert done.output.decode().splitlines()[0] == (
        f"Claude Code in {tmp_path / 'claude'}, agent main (dry run: nothing is changed)"
    )


def test_transcripts_in_a_linked_folder_are_not_imported(claude: ClaudeCode, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    claude.say("Another user's secret.").rename(outside / "secret.jsonl")
    projects = tmp_path / "claude" / "projects"
    projects.mkdir(parents=True)
    (projects / "-linked").symlink_to(outside)
    with claude.memory() as memory:
        assert import_claude_code(memory, tmp_path / "claude").steps == ()
