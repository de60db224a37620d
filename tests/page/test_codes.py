"""The page has an English and a Chinese text for every code that the gateway sends."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import memoriter
from memoriter.errors import MemoriterError
from memoriter.sentences import SENTENCES, codes, join, pack, sentence, unpack

WORDS_FILE = Path(memoriter.__file__).parent / "server/web/static/words.js"
#: Codes of tools and of the gateway that are not the code of an error class.
OTHER_CODES = {
    "unknown_tool",
    "session_refused",
    "internal_error",
    "io_error",
    "unknown_agent",
    "busy",
    "timeout",
}


def words() -> dict[str, list[str]]:
    text = WORDS_FILE.read_text("utf-8")
    table: dict[str, list[str]] = json.loads(text[text.index("{\n") : text.rindex("}") + 1])
    return table


def error_classes(base: type[MemoriterError] = MemoriterError) -> Iterator[type[MemoriterError]]:
    yield base
    for child in base.__subclasses__():
        if child.__module__ == "memoriter.errors":
            yield from error_classes(child)


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)(?:!r)?\}", text))


@pytest.mark.parametrize(
    "code", sorted({*SENTENCES, *OTHER_CODES, *(error.code for error in error_classes())})
)
def test_every_code_has_an_english_and_a_chinese_text(code: str) -> None:
    english, chinese = words()[f"code.{code}"]
    assert english
    assert re.search(r"[\u4e00-\u9fff]", chinese) or english == chinese


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_the_texts_of_a_code_have_the_same_arguments_as_the_sentence(code: str) -> None:
    for text in words()[f"code.{code}"]:
        assert placeholders(text) == placeholders(SENTENCES[code])


def test_every_code_on_the_page_exists() -> None:
    known = {*SENTENCES, *OTHER_CODES, *(error.code for error in error_classes())}
    gateway = {"rate_limited", "too_large", "too_many_streams"}
    shown = {key.removeprefix("code.").removesuffix(".one") for key in words() if key.startswith("code.")}
    assert shown - known - gateway == set()


def test_every_error_class_has_a_code_of_its_own() -> None:
    named = [error.code for error in error_classes()]
    assert len(named) == len(set(named))


def test_a_sentence_is_a_string_that_knows_its_code() -> None:
    weak = sentence("recall.weak", confidence=0.12, threshold=0.3)
    assert weak == "not relevant enough: confidence 0.12 is below 0.3"
    assert codes({"considered": [{"reason": weak, "ref": "a.md"}]}) == {
        weak: {"code": "recall.weak", "details": {"confidence": 0.12, "threshold": 0.3}}
    }


def test_a_sentence_in_a_sentence_keeps_its_code() -> None:
    missing = sentence("embedder.missing", why=sentence("embedder.none"))
    assert missing == "keyword search only: keyword search only, as configured"
    assert missing.details["why"]["code"] == "embedder.none"
    both = join("A problem.", None, sentence("map.missing", n=2))
    assert both == "A problem. 2 entries have no vector yet and are not shown."
    assert codes(both)[str(both)]["details"]["parts"][0] == "A problem."


def test_a_sentence_survives_a_database() -> None:
    undo = sentence("history.undo", kind="update", seq=7)
    stored = unpack(pack(undo))
    assert (stored, codes(stored)) == (undo, codes(undo))
    assert unpack(pack("Plain text.")) == "Plain text."
