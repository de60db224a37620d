"""Blocks that hosts and memories add to messages, and annotations at the ends of lines."""

from __future__ import annotations

import pytest

from memoriter.text.blocks import without_annotations, without_blocks


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <system-reminder>x</system-reminder> b", "a  b"),
        ("a <System-Reminder kind='x'>x</SYSTEM-reminder> b", "a  b"),
        ("a <relevant-memories>x</relevant-memories> b", "a  b"),
        ("a <relevant_memories>x", "a "),
        ("a <system-reminder>x</system-reminder> b <memory-context>c <system-reminder>", "a  b "),
        ("a <system-reminder> b", "a <system-reminder> b"),
        ("a <system-reminder> b <system-reminder> c", "a <system-reminder> b <system-reminder> c"),
        ("a </system-reminder> b", "a </system-reminder> b"),
        ("a </system-reminder> b <system-reminder> c", "a </system-reminder> b <system-reminder> c"),
        ("a <system-reminder>x</command-name>y</system-reminder> b", "a  b"),
        ("a <system-reminder>x<command-name>y</system-reminder> b</command-name>", "a  b</command-name>"),
        ("a <bash-input>x</bash-input><bash-stdout>y</bash-stdout> b", "a  b"),
        ("a <bash-input> b <bash-stdout>y</bash-stdout> c", "a <bash-input> b  c"),
        ("a </memory-context> b <memory-context> c", "a </memory-context> b "),
    ],
)
def test_blocks_of_hosts_and_memories_are_removed(text: str, kept: str) -> None:
    assert without_blocks(text) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("fact  \n<!-- memoriter: x -->\n", "fact  \n\n"),
        ("fact <!-- importance: 3 -->  \n", "fact\n"),
        ("fact <!-- importance: 3 -->", "fact"),
        ("a --> b  \r\n", "a --> b  \r\n"),
        ("fact " + "<!-- trigger: x -->" * 8 + "\n", "fact\n"),
        ("fact " + "<!-- trigger: x -->" * 9 + "\n", "fact <!-- trigger: x -->\n"),
        ("<!-- openclaw-x --> fact <!-- project: y -->\n", "<!-- openclaw-x --> fact\n"),
        ("fact <!-- mine --> <!-- openclaw: x -->\n", "fact <!-- mine -->\n"),
    ],
)
def test_annotations_are_removed_from_the_ends_of_lines(text: str, kept: str) -> None:
    assert without_annotations(text) == kept


def test_a_text_without_annotations_stays_as_it_is() -> None:
    assert without_annotations("First line \nsecond line\n") == "First line \nsecond line\n"
