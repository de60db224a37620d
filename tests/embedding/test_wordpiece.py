"""Our WordPiece gives the tokens of the `tokenizers` package, with which the bundled models were trained."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

from memoriter.embedding.local import open_tokenizer
from memoriter.embedding.lookup import bundled_model
from memoriter.embedding.wordpiece import WordPiece
from memoriter.errors import EmbedderUnavailable

ROOT = Path(__file__).parents[2]
MAX_LENGTH = 48


def bundled() -> Path:
    folder = bundled_model()
    assert folder is not None
    return folder / "tokenizer.json"


@cache
def ours() -> WordPiece:
    return WordPiece(json.loads(bundled().read_text("utf-8")), MAX_LENGTH)


@cache
def theirs() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer.from_file(str(bundled()))
    tokenizer.enable_truncation(MAX_LENGTH)
    return tokenizer


# Which characters exist depends on the version of Unicode, so those that this Python does not know are left out.
texts = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=40)
#: Words with what is special: accents, marks apart, control characters, punctuation, Chinese, tokens with a meaning.
hard = st.lists(
    st.sampled_from(
        ["Über", "naïve", "e\u0301", "ΣΑΣ", "İ", "한국어", "\u200d", "\x00", "\ufffd", "\u3000", "[SEP]", "[", "]",
         "，",
         "ℝ", "中文", "豈", "\u0344", "\u302e\u302f", "don't", "a" * 101, "x-y_z", "１２", "😀", "\u1734", "\u166d"]
    )
).map("".join)  # fmt: skip


@given(st.one_of(texts, hard, st.tuples(hard, texts, hard).map("".join)))
@example("")
@example("[CLS][MASK] a[SEP")
def test_every_text_has_the_same_tokens(text: str) -> None:
    assert ours().encode(text) == theirs().encode(text).ids
    whole = theirs().encode(text, add_special_tokens=False).ids
    assert ours().tokens(text)[: len(whole)] == whole


def test_every_character_has_the_same_tokens() -> None:
    known = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    odd = [
        character
        for character in known
        if unicodedata.category(character) not in ("Cn", "Co", "Lo")
        and ours().tokens(f"a{character}b") != theirs().encode(f"a{character}b", add_special_tokens=False).ids
    ]
    assert odd == []


def test_the_pages_and_notes_of_this_repository_have_the_same_tokens() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "lab" / "evals").rglob("corpus.jsonl"),
    ]
    lines = {line for page in pages for line in page.read_text("utf-8").splitlines()}
    assert len(lines) > 1000
    assert [line for line in lines if ours().encode(line) != theirs().encode(line).ids] == []


def test_numbers_of_tokens_and_other_lengths(tmp_path: Path) -> None:
    assert ours().id_of("[SEP]") == theirs().token_to_id("[SEP]")
    assert ours().id_of("no such token") is None
    whole = WordPiece(json.loads(bundled().read_text("utf-8")), None)
    text = "one two three " * 40
    assert whole.encode(text) == [2, *whole.tokens(text), 3]
    assert len(ours().encode(text)) == MAX_LENGTH


def test_another_tokenizer_runs_through_the_package(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    other = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    other.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    other.save(str(path))
    opened = open_tokenizer(path, 2)
    assert not isinstance(opened, WordPiece)
    assert (opened.encode("a b c"), opened.tokens("c"), opened.id_of("b"), opened.id_of("c")) == (
        [0, 1],
        [2],
        1,
        None,
    )
    path.write_text("{}")
    with pytest.raises(EmbedderUnavailable, match="is not a tokenizer"):
        open_tokenizer(path)
    path.write_text("{")
    with pytest.raises(EmbedderUnavailable, match="is not a tokenizer"):
        open_tokenizer(path)
