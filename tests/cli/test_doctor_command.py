"""`doctor` gives advice that helps, and `status` names skipped files."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Run


def findings(memoriter: Run, **variables: str) -> dict[str, tuple[str, str, str]]:
    shown = json.loads(memoriter("doctor", "--json", **variables).stdout)["findings"]
    return {one["name"]: (one["state"], one["text"], one["fix"]) for one in shown}


def test_skipped_files_are_named_with_the_reason(memoriter: Run, workspace: Path, note) -> None:
    note("MEMORY.md", "The heron nests in the marsh.\n")
    (workspace / "memory/link.md").symlink_to("/etc/hostname")
    state, text, fix = findings(memoriter)["skipped files"]
    assert (state, text.startswith("memory/link.md: ")) == ("note", True)
    assert "memoriter index" in fix
    shown = memoriter("status").stdout
    assert "memory/link.md: " in shown
    labels = [line.split("  ")[0] for line in shown.splitlines() if line and not line.startswith(" ")]
    assert len(labels) == len(set(labels))


def test_a_file_that_is_not_text_is_skipped_and_is_not_waiting_to_be_indexed(
    memoriter: Run, workspace: Path
) -> None:
    file = workspace / "memory" / "scan.md"
    file.write_bytes(b"\x00\x01\x02" * 100)
    memoriter("index")
    found = findings(memoriter)
    assert found["skipped files"][1] == "memory/scan.md: Not a text file: it contains NUL bytes."
    assert "freshness" not in found
    file.write_text("The heron is back.\n")
    memoriter("index")
    assert "skipped files" not in findings(memoriter)


def test_a_file_that_is_indexed_in_part_is_named(memoriter: Run, note) -> None:
    note("memory/long.md", "The heron nests in the marsh.\n" * 200_000)
    _, text, _ = findings(memoriter)["skipped files"]
    assert text == "memory/long.md: only the first 4 MiB of 5.72 MiB are indexed"


def test_a_missing_key_and_a_missing_model_get_advice(memoriter: Run) -> None:
    found = findings(
        memoriter, MEMORITER_EMBEDDING__PROVIDER="openai", MEMORITER_EXTRACTION__AUTO_EXTRACT="true"
    )
    assert found["provider"] == (
        "note",
        "embedding.provider is `openai`, but it has no API key.",
        "Run `memoriter config set embedding.openai_api_key -`, or choose another `embedding.provider`.",
    )
    assert found["extraction"][1] == "extraction.auto_extract is on, but no language model is configured."


def test_without_an_embedder_nothing_advises_to_index_and_the_reason_is_said_once(
    memoriter: Run, note
) -> None:
    note("MEMORY.md", "The heron nests in the marsh.\n")
    memoriter("index")
    openai = {"MEMORITER_EMBEDDING__PROVIDER": "openai", "OPENAI_API_KEY": ""}
    found = findings(memoriter, **openai)
    assert [name for name, (_, _, fix) in found.items() if "memoriter index" in fix] == []
    assert memoriter("status", **openai).stdout.count("no key: set OPENAI_API_KEY") == 1


def test_a_home_that_cannot_be_written_is_not_repaired_by_an_index(memoriter: Run, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/agents").write_text("a file where a folder is needed")
    assert findings(memoriter)["index"][2] == (
        f"Make {tmp_path / 'state'} writable, or choose another folder with --home."
    )
