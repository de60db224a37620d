"""The one tokenizer of index and query: it cuts a text so that a question meets the note that answers it.

Both sides go through the same steps: Unicode NFKC, Chinese characters to one form (``variants``), dates to
one form (``dates``), stop words out (``stopwords``), words whole and by part (``words``), Chinese, Japanese
and Korean as overlapping pairs. A token holds no space, quote or NUL, at most 64 characters, and of ASCII
punctuation only ``_ - . / : @ # +``: the store quotes it and hands it to FTS5 as it is. How matches are
weighed is not decided here.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from operator import add
from pathlib import Path

from memoriter.text.dates import take_dates
from memoriter.text.stopwords import CHINESE
from memoriter.text.words import MAX_TOKEN, whole_word, word_tokens

TOKENIZER_VERSION = 2
"""Raised when the same text gives other tokens; an index made by another version is built anew."""

MAX_QUERY = 4096  #: characters of a query that are looked at

# Han with its extensions and compatibility forms, kana without its middle dot, Hangul syllables.
CJK = "々〇ぁ-ゖゝ-ゟァ-ヺー-ヿ\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003347f"
_CJK_RUN = re.compile(f"[{CJK}]+")
# Vowel signs and points that are part of a word, though Python's \w leaves them out.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff\u1000-\u109f"
)
PICTURES = "\u2600-\u27bf\U0001f300-\U0001faff"
_INVISIBLE = re.compile("[\u00ad\u200c\u200d\u2060\ufe00-\ufe0f\ufeff]")
_WIDE_PUNCTUATION = "，：；！？（）…～"

# What may stand between the parts of one word: user@example.com, src/text, a::b, don't, 1,000, __init__.py
_JOINER = r"(?:_*[-./:@#+]_*|_+|://|::|['’]|(?<=\d),(?=\d{3}(?!\d)))"


def _word_pattern(letters: str) -> str:
    return rf"{letters}(?:{_JOINER}{letters})*(?:\+\+|\#(?!\w))?"


_ASCII_WORD = re.compile(_word_pattern("[A-Za-z0-9]+"))
_LETTERS = rf"[^\W_{CJK}]+(?:[{_MARKS}]+[^\W_{CJK}]*)*"
_WORD = re.compile(f"[{CJK}]+|{_word_pattern(_LETTERS)}|[{PICTURES}]")


def tokenize(text: str) -> list[str]:
    """The tokens of a document, with repeats: words in order, then dates, then single characters.

    >>> tokenize("Moved the GitHub备份 to memory-core on 8 May")
    ['move', 'github', 'git', 'hub', '备份', 'memory-core', 'memory', 'core', '@05-08', '@05', '备', '份']
    """
    return _cut(text if text.isascii() else folded(normalised(text)), characters=True)


def query_terms(text: str, limit: int = 64, *, as_written: bool = False) -> list[str]:
    """The distinct tokens of a query in their order; of a very long one, the ``limit`` that say most.

    A query is bounded before it is cut: the beginning and the end are kept, where people put what they ask.
    ``as_written`` keeps traditional Chinese traditional, for an engine that does not know the two as one.
    """
    if len(text) > MAX_QUERY:
        text = f"{text[: MAX_QUERY // 2]} {text[-MAX_QUERY // 2 :]}"
    text = text if text.isascii() else normalised(text) if as_written else folded(normalised(text))
    counts = Counter(_cut(text, characters=False)) or Counter(_every_word(text))
    if len(counts) <= limit:
        return list(counts)
    kept = set(sorted(counts, key=lambda term: -_worth(term, counts[term]))[:limit])
    return [term for term in counts if term in kept]


def find_words(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where words stand in a text: start, end and tokens of each, of Chinese each pair and each character."""
    for match in _WORD.finditer(text):
        if not _is_cjk(match[0]):
            word = unicodedata.normalize("NFKC", match[0])
            yield match.start(), match.end(), _known[word] if _WORD.fullmatch(word) else ()
            continue
        for at, pair in enumerate(_pairs(folded(match[0])), match.start()):
            yield at, at + len(pair), tuple({pair, pair[0], pair[-1]})


def _cut(text: str, *, characters: bool) -> list[str]:
    """Of a normalised text the words, then dates, then each Chinese character once, so that 茶 finds 龙井茶 and 茶叶.

    Once, because repeats would double the index and, measured, rank no better. A query has a character of its own
    only where nothing stands beside it.
    """
    more: list[str] = []
    if text.isascii():
        words = _ASCII_WORD.findall(take_dates(text, more))
    else:
        text = CHINESE.sub(" ", take_dates(text, more))
        words = _WORD.findall(text)
        if characters:
            more += dict.fromkeys("".join(run for run in _CJK_RUN.findall(text) if len(run) > 1))
    return [*chain.from_iterable(map(_known.__getitem__, words)), *more]


def _every_word(text: str) -> list[str]:
    """The words of a query that is all stop words: better than no term at all."""
    return [
        token
        for word in _WORD.findall(text)
        for token in (_pairs(word) if _is_cjk(word) else (whole_word(word),))
    ]


def _worth(term: str, count: int) -> int:
    """How far a term narrows a search, guessed from its looks: dates, identifiers and long words do most."""
    length = 12 if term[0] == "@" else min(len(term), 12) if term.isascii() else 6
    return length + 2 * min(count - 1, 3)


def normalised(text: str) -> str:
    """NFKC, without the marks that nobody sees; wide punctuation parts words and never joins them."""
    for mark in _WIDE_PUNCTUATION:  # taken out first: most Chinese text is in NFKC already but for these
        text = text.replace(mark, " ")
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _is_cjk(word: str) -> bool:
    return word[0] >= "々" and _CJK_RUN.match(word) is not None


def _pairs(run: str) -> tuple[str, ...]:
    """A run of Chinese, Japanese or Korean as overlapping pairs, which need no dictionary."""
    return tuple(map(add, run, run[1:])) if len(run) > 1 else (run,)


class _Known(dict[str, tuple[str, ...]]):
    """The tokens of each word met so far: texts repeat their words, so most are looked up, not made."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if _is_cjk(word):
            return _pairs(word)  # as quick to make as to look up
        tokens = word_tokens(word)
        if len(word) <= MAX_TOKEN:
            if len(self) >= 50_000:  # about 10 MB
                self.clear()
            self[word] = tokens
        return tokens


_known = _Known()


# ---- Chinese variants --------------------------------------------------------------------------------------------

_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_TABLE = Path(__file__).with_name("variants.txt")


def folded(text: str) -> str:
    """The text with every character in the form under which its variants meet; as long as before.

    >>> folded("備份資料庫"), folded("备份资料库")
    ('备份资料库', '备份资料库')
    """
    forms, others = _forms()
    return text if others.isdisjoint(text) else text.translate(forms)


def simplified(text: str) -> str:
    """The text in simplified characters, if it is written in traditional ones: for a model that has read few of them.

    著 or 覆 alone, which stand in simplified text too, do not tell; and a text with kana is Japanese.

    >>> simplified("備份的覆蓋範圍"), simplified("著名的覆盖范围")
    ('备份的复盖范围', '著名的覆盖范围')
    """
    if _KANA.search(text):
        return text
    forms, others = _forms()
    found = "".join(others.intersection(text))
    in_both = found.encode("gb2312", "ignore").decode("gb2312")
    return text.translate(forms) if found != in_both else text


@cache
def _forms() -> tuple[dict[int, str], frozenset[str]]:
    """The form of each character that has another, and those characters. Read when Chinese is first met: some 2 ms."""
    lines = [line for line in _TABLE.read_text("utf-8").splitlines() if not line.startswith("#")]
    forms = {ord(other): line[0] for line in lines for other in line[1:]}
    return forms, frozenset(map(chr, forms))
