"""WordPiece as BERT uses it: lower case, without accents, words and punctuation apart, the longest known pieces first.

It gives exactly the tokens of the `tokenizers` package in half the time, without the packages that it brings along.
Models with other tokenizers still need that package. `wordpiece.txt` has its character classes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path
from typing import Any

#: Words whose pieces are remembered. Then all are forgotten, which bounds the memory for texts without words.
MAX_WORDS = 200_000


class _Ranges:
    """The characters of a table, without a set of a hundred thousand of them."""

    def __init__(self, table: str) -> None:
        pairs = [part.partition("-") for part in table.split()]
        self._pattern = re.compile(
            "[" + "".join(f"\\U{int(a, 16):08x}-\\U{int(b or a, 16):08x}" for a, _, b in pairs) + "]"
        )

    def __contains__(self, character: object) -> bool:
        return isinstance(character, str) and self._pattern.match(character) is not None


@cache
def _ranges(name: str) -> _Ranges:
    """Return a character class of `wordpiece.txt`."""
    text = Path(__file__).with_suffix(".txt").read_text("utf-8")
    found = re.search(rf"^\[{name}\]\n([^\[#]+)", text, re.MULTILINE)
    assert found is not None
    return _Ranges(found[1])


class _Cleaning(dict[int, str]):
    """Characters as they are before accents are separated: no control characters, one kind of space."""

    def __init__(self, *, clean: bool, ideographs: bool) -> None:
        super().__init__()
        self._removed: Container[str] = _ranges("removed") if clean else ()
        self._spaces: Container[str] = _ranges("spaces") if clean else ()
        self._ideographs: Container[str] = _ranges("ideographs") if ideographs else ()

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in self._removed:
            found = ""
        elif character in self._spaces:
            found = " "
        else:
            found = f" {character} " if character in self._ideographs else character
        self[code] = found
        return found


class _Spelling(dict[int, str]):
    """Characters as they are in words: without marks, in lower case, punctuation apart."""

    def __init__(self, *, marks: bool, lowercase: bool) -> None:
        super().__init__()
        self._marks: Container[str] = () if marks else _ranges("marks")
        self._punctuation = _ranges("punctuation")
        self._lowercase = lowercase

    def __missing__(self, code: int) -> str:
        character = chr(code)
        found = "" if character in self._marks else character.lower() if self._lowercase else character
        self[code] = "".join(f" {one} " if one in self._punctuation else one for one in found)
        return self[code]


class WordPiece:
    """Turns texts into the numbers of tokens."""

    def __init__(self, settings: Mapping[str, Any], max_length: int | None) -> None:
        """Read the settings of a `tokenizer.json`. Raises `Unsupported` for anything but BERT's WordPiece."""
        _check(settings)
        model, normalizer = settings["model"], settings["normalizer"]
        self._vocabulary: dict[str, int] = model["vocab"]
        self._unknown = [self._vocabulary[model["unk_token"]]]
        self._prefix: str = model["continuing_subword_prefix"]
        self._max_chars: int = model["max_input_chars_per_word"]
        self._longest = max(map(len, self._vocabulary))
        lowercase, accents = normalizer["lowercase"], normalizer["strip_accents"]
        self._separates = lowercase if accents is None else accents
        self._cleaning = _Cleaning(
            clean=normalizer["clean_text"], ideographs=normalizer["handle_chinese_chars"]
        )
        self._spelling = _Spelling(marks=not self._separates, lowercase=lowercase)
        self._marked = {token["content"]: int(token["id"]) for token in settings["added_tokens"]}
        self._marks = re.compile("(" + "|".join(map(re.escape, self._marked)) + ")") if self._marked else None
        self._before, self._after = _template(settings)
        self._max_length = max_length
        self._known: dict[str, list[int]] = {}

    def id_of(self, token: str) -> int | None:
        """Return the number of a token."""
        return self._marked.get(token, self._vocabulary.get(token))

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text between those that mark its start and end, cut to the maximum length."""
        ids = self.tokens(text)
        if self._max_length is not None:
            ids = ids[: max(0, self._max_length - len(self._before) - len(self._after))]
        return [*self._before, *ids, *self._after]

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text alone."""
        if self._marks is None or "[" not in text:
            return self._pieces(text)
        ids = list[int]()
        for part in self._marks.split(text):
            if part in self._marked:
                ids.append(self._marked[part])
            else:
                ids += self._pieces(part)
        return ids

    def _pieces(self, text: str) -> list[int]:
        text = text.translate(self._cleaning)
        if self._separates and not text.isascii():
            text = unicodedata.normalize("NFD", text)
        ids, known = list[int](), self._known
        for word in text.translate(self._spelling).split(" "):
            if word:
                pieces = known.get(word)
                ids += self._split(word) if pieces is None else pieces
        return ids

    def _split(self, word: str) -> list[int]:
        """Split a word into its longest known pieces, from its start. A word with an unknown part is unknown."""
        pieces, start = list[int](), 0
        if len(word) > self._max_chars:
            pieces, start = self._unknown, len(word)
        while start < len(word):
            prefix = self._prefix if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                found = self._vocabulary.get(prefix + word[start:end])
                if found is not None:
                    pieces.append(found)
                    start = end
                    break
            else:
                pieces, start = self._unknown, len(word)
        if len(self._known) >= MAX_WORDS:
            self._known.clear()
        self._known[word] = pieces
        return pieces


class Unsupported(Exception):
    """A tokenizer of another kind."""


def _check(settings: Mapping[str, Any]) -> None:
    kinds = [(settings.get(name) or {}).get("type") for name in ("normalizer", "pre_tokenizer", "model")]
    if kinds != ["BertNormalizer", "BertPreTokenizer", "WordPiece"]:
        raise Unsupported(f"a tokenizer of {', '.join(map(str, kinds))}")
    for token in settings.get("added_tokens", ()):
        is_plain = not any(token[name] for name in ("single_word", "lstrip", "rstrip", "normalized"))
        if not is_plain or "[" not in token["content"]:
            raise Unsupported(f"the added token {token['content']!r}")


def _template(settings: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """Return the tokens before and after a text."""
    processor = settings.get("post_processor") or {"type": "TemplateProcessing", "single": [{"Sequence": {}}]}
    if processor["type"] != "TemplateProcessing":
        raise Unsupported(f"a tokenizer with {processor['type']}")
    before, after, is_after = list[int](), list[int](), False
    for part in processor["single"]:
        if "SpecialToken" in part:
            ids = processor["special_tokens"][part["SpecialToken"]["id"]]["ids"]
            (after if is_after else before).extend(ids)
        else:
            is_after = True
    return before, after
