"""Acknowledged entries survive ``kill -9``: none is lost, none is doubled, and the derived index catches up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from memoriter.entries.collection import open_entries

KILLS = 500 if os.environ.get("MEMORITER_SOAK") else 60


def acknowledged(folder: Path, kills: int, *more: str) -> list[str]:
    command = [
        sys.executable,
        str(Path(__file__).with_name("entry_writer.py")),
        str(folder),
        str(kills),
        "7",
        *more,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.timeout(1800)
def test_acknowledged_entries_survive_kills(tmp_path: Path) -> None:
    acked = acknowledged(tmp_path, KILLS)
    assert len(acked) >= KILLS
    entries = open_entries(tmp_path)
    assert entries.check(deep=True) == []
    kept = Counter(entry.text for entry in entries.list())
    assert [text for text in acked if text not in kept] == []
    assert [text for text, count in kept.items() if count > 1] == []
    entries.update_index()
    assert entries._index.counts("").chunks == sum(kept.values())
    assert [hit.entry.text for hit in entries.search(acked[-1], limit=1).hits] == [acked[-1]]
    entries.close()


@pytest.mark.timeout(600)
def test_control_acknowledging_before_writing_loses_entries(tmp_path: Path) -> None:
    """With an early acknowledgement the same kills lose entries, so the test above can fail."""
    acked = acknowledged(tmp_path, 40, "naive")
    entries = open_entries(tmp_path)
    kept = {entry.text for entry in entries.list()}
    assert [text for text in acked if text not in kept] != []
    entries.close()
