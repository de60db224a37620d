"""The work of saving a text grows with its length only in code that is written in C."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

from memoriter import Memory


def count_calls(work: Any) -> int:
    """Return how many Python functions are called during the work."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_saving_a_large_text_calls_few_functions(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    text = "\n".join(f"Line {number} about the heron and its river." for number in range(2_500))
    with Memory.open(tmp_path, home=tmp_path / "home", overrides={"embedding.provider": "none"}) as memory:
        memory.save("Something short.")
        calls = count_calls(lambda: memory.save(text, "Herons", category="birds"))
        repeated = count_calls(lambda: memory.save(text, "Herons", category="birds"))
        saved = memory.save(text, "Herons", category="birds")
    assert (saved.already, saved.end_line - saved.start_line) == (True, 2_499)
    assert max(calls, repeated) < len(text) / 2
