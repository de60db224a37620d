"""Entries in the formats of other programs, and back again without loss."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memoriter
from memoriter import Memory
from memoriter.extensions.importing import import_export
from memoriter.extensions.passport import formats


def opened(folder: Path) -> Memory:
    folder.mkdir()
    return memoriter.open(folder, home=folder / "home", overrides={"embedding.provider": "none"})


#: Texts that look like the marks of a format, or that a format could change.
ODD = (
    "家人：👩‍👩‍👧‍👦 喜欢 🍜，每周五去「老地方」吃饭。",
    "---\ntitle: no front matter\n---\nbody",
    "# A heading\n\n- item one\n- item two\n\n```py\nprint('x')\n```",
    '<!-- memoriter: {"id": 1} --> is not a mark',
    "Same beginning of a statement that goes on and on and on and on, version one",
    "Same beginning of a statement that goes on and on and on and on, version two",
    'L\'été à Genève coûte cher: 50 % "plus" \\ backslash | pipe',
    "长" * 600,
    "Ｆｕｌｌ　ｗｉｄｔｈ and ﬁ",
    "The plan is due on 2026-12-24 at 18:00+01:00",
    "مرحبا بالعالم",
)


@pytest.fixture
def lines(tmp_path: Path) -> list[str]:
    """The export of a memory with every kind of entry: refined, superseded, tagged, staged, in Chinese, with marks."""
    with opened(tmp_path / "first") as memory:
        memory.remember("I live in Berlin.")
        memory.remember("I moved to Munich.")
        memory.remember("I like tea --> a lot -- and [links](x).", "user_preference", tags=("Drink", "home"))
        memory.remember("我对青霉素过敏。", importance=5.0)
        memory.entries.add("The build runs\nevery night.", trust="agent", session="s-1")
        for number, text in enumerate(ODD):
            tags = ("a,b", "标签", "🏷️ label")[: number % 4]
            memory.entries.add(text, tags=tags, importance=1.0 + number % 5, category=f"kind {number}")
        memory.forget(memory.entries.list()[0].id)
        return list(memory.entries.export(states=()))


def again(source: Path, folder: Path) -> list[str]:
    with opened(folder) as memory:
        import_export(memory, source)
        return list(memory.entries.export(states=()))


@pytest.mark.parametrize("form", ["mem0", "markdown", "okf"])
def test_an_export_comes_back_with_the_same_digest(form: str, lines: list[str], tmp_path: Path) -> None:
    source = tmp_path / "export"
    if form == "okf":
        for name, text in formats.to_okf(lines):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text, encoding="utf-8")
    else:
        source = source.with_suffix(".json" if form == "mem0" else ".md")
        source.write_text(getattr(formats, f"to_{form}")(lines), encoding="utf-8")
    assert formats.digest(again(source, tmp_path / "second")) == formats.digest(lines)


def test_a_changed_word_changes_the_digest(lines: list[str]) -> None:
    assert formats.digest([line.replace("Munich", "Lisbon") for line in lines]) != formats.digest(lines)


def test_a_concept_of_another_program_becomes_a_note(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "tables").mkdir(parents=True)
    (bundle / "index.md").write_text("# Index\n")
    (bundle / "tables" / "orders.md").write_text(
        "---\ntype: table\ntitle: Orders\n---\n\nOne row for each order.\n"
    )
    with opened(tmp_path / "home") as memory:
        report = import_export(memory, bundle)
        assert [step.target.name for step in report.steps] == ["orders.md"]
        assert "One row for each order." in memory.search("one row order").hits[0].snippet


def test_mem0_reads_what_was_exported_for_it(lines: list[str]) -> None:
    exported = json.loads(formats.to_mem0(lines))["results"]
    assert {"id", "memory", "hash", "metadata", "created_at", "updated_at", "categories"} == set(exported[0])
    assert "I moved to Munich." in [one["memory"] for one in exported]
