"""The page about Python: every example runs, and every public name is on it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import memoriter

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text("utf-8")
EXAMPLES = re.findall(r"^#+ ([^\n]+)\n|```python\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)


def examples() -> list[tuple[str, str]]:
    """Return every example with the heading above it."""
    found, heading = list[tuple[str, str]](), ""
    for title, code in EXAMPLES:
        heading = title or heading
        if code:
            found.append((heading, code))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with notes, in which an example runs without the bundled model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORITER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMORITER_EMBEDDING__PROVIDER", "none")
    notes = tmp_path / "notes/memory"
    notes.mkdir(parents=True)
    (notes / "2026-02-08.md").write_text("# Backups\n\nWe decided to keep the backups in Porto.\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize("code", [code for _, code in examples()], ids=[heading for heading, _ in examples()])
def test_every_example_runs(folder: Path, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = compile(code, "python.md", "exec")
    # In a thread, because the main thread has a running event loop after the tests that use a browser.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(exec, program, {"__name__": "__main__"}).result()
    assert capsys.readouterr().out


def test_every_section_about_a_public_object_has_an_example() -> None:
    assert len(examples()) >= 12


@pytest.mark.parametrize("name", memoriter.__all__)
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert name == "__version__" or re.search(rf"\b{name}\b", PAGE)


@pytest.mark.parametrize("kind", [memoriter.Memory, memoriter.Notes], ids=lambda kind: kind.__name__)
def test_the_methods_that_the_page_calls_exist(kind: type) -> None:
    prefix = {"Memory": r"\bmemory\.", "Notes": r"\bmemory\.notes\."}[kind.__name__]
    called = set(re.findall(rf"{prefix}([a-z_]+)\(", PAGE))
    assert called
    assert called <= set(dir(kind)) | {"entries", "notes"}
