"""Invisible characters are drawn as marks in texts, tables, logs and JSON."""

from __future__ import annotations

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter import logs
from memoriter.invisible import escape_json, invisible, reveal
from memoriter.server.http.observe import JsonFormatter

SPOOF = "Refunds up to \u202e0005\u202c euros need no approval \u200b\u2063at all"
DRAWN = "Refunds up to ⟦RLO⟧0005⟦PDF⟧ euros need no approval ⟦ZWSP U+2063⟧at all"

ANY_INVISIBLE = st.sampled_from(
    [*map(chr, (0xAD, 0x61C, *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xE0041))]
)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        (SPOOF, DRAWN),
        ("\u202egnp.md", "⟦RLO⟧gnp.md"),
        ("pay\U000e0070\U000e0061", "pay⟦U+E0070 U+E0061⟧"),
        ("a" + "\u200b" * 900, "a⟦ZWSP ZWSP ZWSP ZWSP +896⟧"),
        ("👨‍👩‍👧 likes ❤️ and 1️⃣", "👨‍👩‍👧 likes ❤️ and 1️⃣"),
        ("می‌خواهم", "می‌خواهم"),
        ("数据库备份", "数据库备份"),
    ],
)
def test_invisible_characters_become_marks_and_letters_stay(text: str, drawn: str) -> None:
    assert reveal(text) == drawn


@given(st.text(), ANY_INVISIBLE, st.text())
def test_no_text_hides_a_character(before: str, hidden: str, after: str) -> None:
    drawn = reveal(before + hidden + after)
    assert hidden not in drawn
    assert invisible(drawn) == []
    assert invisible(before + hidden + after)


@given(st.text())
def test_escaped_json_means_the_same(text: str) -> None:
    written = escape_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(written) == text
    assert invisible(written) == []


def test_log_lines_draw_invisible_characters() -> None:
    stream = io.StringIO()
    logs.setup("warning", stream)
    try:
        logs.get("notes").warning("%s is unreadable", "\u202egnp.md")
    finally:
        logs.setup("warning")
    assert stream.getvalue() == "WARNING memoriter.notes: ⟦RLO⟧gnp.md is unreadable\n"
    record = logging.LogRecord("memoriter.notes", 30, "", 0, "%s is unreadable", ("\u202egnp.md",), None)
    line = JsonFormatter().format(record)
    assert "\\u202egnp.md is unreadable" in line
    assert json.loads(line)["message"] == "\u202egnp.md is unreadable"
