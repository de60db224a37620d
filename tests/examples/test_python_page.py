"""The page about Python: every public name and method is on it. tests/docs runs the examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import memoriter

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text("utf-8")
REFERENCE = (Path(__file__).parents[2] / "docs" / "python-reference.md").read_text("utf-8")
EXAMPLES = re.findall(r"^#+ ([^\n]+)\n|```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    """Return every example with the heading above it."""
    found, heading = list[tuple[str, str]](), ""
    for title, code in EXAMPLES:
        heading = title or heading
        if code:
            found.append((heading, code))
    return found


def test_every_section_about_a_public_object_has_an_example() -> None:
    assert len(examples()) >= 12


def test_every_public_name_is_on_the_page_or_in_the_reference() -> None:
    pages = PAGE + REFERENCE
    missing = [name for name in memoriter.__all__ if not re.search(rf"\b{name}\b", pages)]
    assert missing == ["__version__"]


@pytest.mark.parametrize("kind", [memoriter.Memory, memoriter.Notes], ids=lambda kind: kind.__name__)
def test_the_methods_that_the_page_calls_exist(kind: type) -> None:
    prefix = {"Memory": r"\bmemory\.", "Notes": r"\bmemory\.notes\."}[kind.__name__]
    called = set(re.findall(rf"{prefix}([a-z_]+)\(", PAGE))
    assert called
    assert called <= set(dir(kind)) | {"entries", "notes"}
