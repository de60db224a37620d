"""The tokenizer of the index and of queries, and the size of texts: estimated tokens, widths, snippets.

Both use the same steps: Unicode NFKC, one form for variants of Chinese characters, normalised dates (``dates``), no
stop words, words and their parts (``words``), and overlapping pairs of Chinese, Japanese and Korean
characters. A token has at most 64 characters, no space, quote or NUL, and of ASCII punctuation only ``_ - . / : @ #
+``. The store quotes tokens and passes them to FTS5 unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from itertools import chain
from operator import add
from pathlib import Path
from typing import NamedTuple

from memoriter.text.dates import find_dates, take_dates
from memoriter.text.words import CHINESE, MAX_TOKEN, whole_word, word_tokens

TOKENIZER_VERSION = 2
"""Increased when the same text gives other tokens. The index is then rebuilt."""

#: Characters of a query that are used.
MAX_QUERY = 4096

# Han with extensions and compatibility forms, kana without the middle dot, Hangul syllables.
CJK = "々〇ぁ-ゖゝ-ゟァ-ヺー-ヿ\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003347f"
_CJK_RUN = re.compile(f"[{CJK}]+")
# Vowel signs and points that are part of a word, although Python's \w does not match them.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e00-\u0eff\u1000-\u109f"
)
PICTURES = "\u2600-\u27bf\U0001f300-\U0001faff"
_INVISIBLE = re.compile("[\u00ad\u200c\u200d\u2060\ufe00-\ufe0f\ufeff]")
_WIDE_PUNCTUATION = "，：；！？（）…～"

# Separators inside one word: user@example.com, src/text, a::b, don't, 1,000, __init__.py
_JOINER = r"(?:_*[-./:@#+]_*|_+|://|::|['’]|(?<=\d),(?=\d{3}(?!\d)))"


def _word_pattern(letters: str) -> str:
    return rf"{letters}(?:{_JOINER}{letters})*(?:\+\+|\#(?!\w))?"


_ASCII_WORD = re.compile(_word_pattern("[A-Za-z0-9]+"))
_LETTERS = rf"[^\W_{CJK}]+(?:[{_MARKS}]+[^\W_{CJK}]*)*"
_WORD = re.compile(f"[{CJK}]+|{_word_pattern(_LETTERS)}|[{PICTURES}]")


def tokenize(text: str) -> list[str]:
    """Return the tokens of a document with repetitions: words in order, then dates, then single characters.

    >>> tokenize("Moved the GitHub备份 to memory-core on 8 May")
    ['move', 'github', 'git', 'hub', '备份', 'memory-core', 'memory', 'core', '@05-08', '@05', '备', '份']
    """
    return _cut(text if text.isascii() else fold_variants(normalise(text)), characters=True)


@lru_cache(maxsize=1024)
def token_set(text: str) -> frozenset[str]:
    """Return the tokens of a text. Cached, since a search reads its best chunks several times, and the next one too."""
    return frozenset(tokenize(text))


def query_terms(text: str, limit: int = 64, *, as_written: bool = False) -> list[str]:
    """Return the distinct tokens of a query in order, or the ``limit`` most specific ones of a long query.

    Of a very long query, the start and the end are used, because that is where people put their question.
    ``as_written`` does not convert traditional Chinese, for engines that do not treat the variants as the same.
    """
    if len(text) > MAX_QUERY:
        text = f"{text[: MAX_QUERY // 2]} {text[-MAX_QUERY // 2 :]}"
    text = text if text.isascii() else normalise(text) if as_written else fold_variants(normalise(text))
    counts = Counter(_cut(text, characters=False)) or Counter(_every_word(text))
    if len(counts) <= limit:
        return list(counts)
    kept = set(sorted(counts, key=lambda term: -_worth(term, counts[term]))[:limit])
    return [term for term in counts if term in kept]


def find_words(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the start, end and tokens of each word in a text, and of each pair of Chinese characters."""
    for match in _WORD.finditer(text):
        if not _is_cjk(match[0]):
            word = unicodedata.normalize("NFKC", match[0])
            yield match.start(), match.end(), _known[word] if _WORD.fullmatch(word) else ()
            continue
        for at, pair in enumerate(_pairs(fold_variants(match[0])), match.start()):
            yield at, at + len(pair), tuple({pair, pair[0], pair[-1]})


def _cut(text: str, *, characters: bool) -> list[str]:
    """Tokenize a normalised text: words, dates, then each Chinese character once, so that 茶 finds 龙井茶 and 茶叶.

    Characters are not repeated, because that would double the index without a better ranking (measured). A query
    contains a single character only if it has no neighbour.
    """
    more: list[str] = []
    if text.isascii():
        pieces = take_dates(text, more).split()  # a word contains no space
        return [*chain.from_iterable(map(_known_pieces.__getitem__, pieces)), *more]
    text = CHINESE.sub(" ", take_dates(text, more))
    if characters:
        more += dict.fromkeys("".join(run for run in _CJK_RUN.findall(text) if len(run) > 1))
    return [*chain.from_iterable(map(_known.__getitem__, _WORD.findall(text))), *more]


def _every_word(text: str) -> list[str]:
    """Return the words of a query that consists of stop words. Without them it would have no terms."""
    return [
        token
        for word in _WORD.findall(text)
        for token in (_pairs(word) if _is_cjk(word) else (whole_word(word),))
    ]


def _worth(term: str, count: int) -> int:
    """Estimate how specific a term is. Dates, identifiers and long words are the most specific."""
    length = 12 if term[0] == "@" else min(len(term), 12) if term.isascii() else 6
    return length + 2 * min(count - 1, 3)


def normalise(text: str) -> str:
    """Apply NFKC and remove invisible characters. Full-width punctuation separates words."""
    for mark in _WIDE_PUNCTUATION:  # first, because most Chinese text is already in NFKC except for these
        text = text.replace(mark, " ")
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def _is_cjk(word: str) -> bool:
    return word[0] >= "々" and _CJK_RUN.match(word) is not None


def _pairs(run: str) -> tuple[str, ...]:
    """Return overlapping pairs of Chinese, Japanese or Korean characters. This needs no dictionary."""
    return tuple(map(add, run, run[1:])) if len(run) > 1 else (run,)


class _Known(dict[str, tuple[str, ...]]):
    """A cache of the tokens of each word. Texts repeat their words, so most are found in it."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if _is_cjk(word):
            return _pairs(word)  # as fast as a lookup
        tokens = self._tokens(word)
        if len(word) <= MAX_TOKEN:
            if len(self) >= 50_000:  # about 10 MB
                self.clear()
            self[word] = tokens
        return tokens

    def _tokens(self, word: str) -> tuple[str, ...]:
        return word_tokens(word)


class _KnownPieces(_Known):
    """The same for what is between two spaces of an ASCII text, such as "(done," or "and/or"."""

    def _tokens(self, piece: str) -> tuple[str, ...]:
        if piece.isalnum():
            return word_tokens(piece)
        return tuple(chain.from_iterable(map(_known.__getitem__, _ASCII_WORD.findall(piece))))


_known, _known_pieces = _Known(), _KnownPieces()


# ---- Chinese variants --------------------------------------------------------------------------------------------

_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa]")
_TABLE = Path(__file__).with_name("variants.txt")


def fold_variants(text: str) -> str:
    """Replace variants of Chinese characters with one form, so that 備份 and 备份 match. The length does not change.

    This works on single characters and only for tokens: 乾, 幹 and 干 become the same. Displayed text is not changed.
    Words that differ by region, such as 軟體 and 软件, stay different.

    >>> fold_variants("備份資料庫"), fold_variants("备份资料库")
    ('备份资料库', '备份资料库')
    """
    forms, others = _forms()
    return text if others.isdisjoint(text) else text.translate(forms)


def to_simplified(text: str) -> str:
    """Convert traditional to simplified Chinese, for embedding models that know little traditional Chinese.

    Characters that simplified text also uses, such as 著 or 覆, are not a sign of traditional text. A text with kana is
    Japanese and stays unchanged.

    >>> to_simplified("備份的覆蓋範圍"), to_simplified("著名的覆盖范围")
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
    """Return the form of each variant, and the set of variants. Loaded on first use, in about 2 ms."""
    lines = [line for line in _TABLE.read_text("utf-8").splitlines() if not line.startswith("#")]
    forms = {ord(other): line[0] for line in lines for other in line[1:]}
    return forms, frozenset(map(chr, forms))


_WIDE = re.compile(f"[{CJK}{PICTURES}\\u3000-\\u303f\\uff00-\\uffef]+")
_BREAK = re.compile(r"\r\n|\n|\r")


def width(text: str) -> int:
    """Return the length in quarters of a token, the unit in which chunks are measured.

    A Latin letter counts 1, a letter of another script 2, and a Chinese, Japanese or Korean character or an emoji 4.
    """
    if text.isascii():
        return len(text)
    wide = len(text) - len(_WIDE.sub("", text))
    latin = len(text.encode("ascii", "ignore"))
    return latin + 4 * wide + 2 * (len(text) - wide - latin)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text for a language model.

    >>> estimate_tokens("a backup of the database"), estimate_tokens("数据库备份")
    (6, 5)
    """
    return (width(text) + 3) // 4


def split_lines(text: str) -> list[str]:
    r"""Split a text into lines as editors count them: at \n, \r\n and \r only.

    ``str.splitlines`` also splits at form feeds and other separators that editors show inside a line.

    >>> split_lines("one\r\ntwo\rthree\x0cstill three\n")
    ['one', 'two', 'three\x0cstill three']
    """
    lines = _BREAK.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def is_boundary(text: str, at: int) -> bool:
    """Return whether the text can be cut here without dividing a word. Chinese can be cut between characters."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if is_joined(text, at):
        return False
    return not (before.isalnum() and after.isalnum()) or before >= "\u2e80" or after >= "\u2e80"


_TOKEN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./:%+#-]*[A-Za-z0-9%+#])?|\s+|.", re.DOTALL)


def shorten_title(text: str, limit: int) -> str:
    """Return the start of a title that is at most ``limit`` wide: whole words, and no word without its number.

    >>> shorten_title("把订单库迁移到 Kubernetes 16 集群", 40)
    '把订单库迁移到'
    """
    if width(text) <= limit:
        return text
    kept, used = list[str](), 0
    for token in _TOKEN.findall(text):
        used += width(token)
        if used > limit:
            return _without_loose_word(kept, token) or text[: limit // 4]
        kept.append(token)
    return text


def _without_loose_word(kept: list[str], following: str) -> str:
    """Join the words. If a number follows, its word is removed: "Kubernetes" is not "Kubernetes 16"."""
    if following[0].isdigit():
        while kept and kept[-1].isspace():
            kept.pop()
        if kept and kept[-1].isascii():
            kept.pop()
    return "".join(kept).rstrip(" ,.;:，、；：")


def is_joined(text: str, at: int) -> bool:
    """Return whether this character belongs to the one before: an accent, a vowel sign, a part of an emoji."""
    after = text[at]
    if after.isascii():
        return False
    return (
        unicodedata.category(after) in ("Mn", "Mc", "Me", "Cs")
        or after in "\u200c\u200d"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or text[at - 1] == "\u200d"
        or _halves_flag(text, at)
    )


def _halves_flag(text: str, at: int) -> bool:
    """Return whether a cut divides a flag, which consists of two regional indicators."""
    before = at
    while before > 0 and "\U0001f1e6" <= text[before - 1] <= "\U0001f1ff":
        before -= 1
    return "\U0001f1e6" <= text[at] <= "\U0001f1ff" and (at - before) % 2 == 1


def last_boundary(text: str, at: int, earliest: int) -> int:
    """Return the last boundary at or before ``at``: between words after ``earliest``, or else between characters."""
    if at >= len(text):
        return len(text)
    cut = at
    while cut > earliest and not is_boundary(text, cut):
        cut -= 1
    if not is_boundary(text, cut):
        cut = at
        while cut > earliest and is_joined(text, cut):
            cut -= 1
    return cut or at


# ---- snippets -------------------------------------------------------------------------------------------------

_SENTENCE_END = re.compile(r"\n+|[。！？；]+[”’」』）]*|[.!?]+[\"')]*(?=\s)")
_ELLIPSIS = "…"


class _Match(NamedTuple):
    start: int
    end: int
    term: str


def snippet(text: str, terms: Collection[str], max_chars: int) -> str:
    """Return at most ``max_chars`` around the terms, with "…" at the cuts. Without a match, return the start."""
    text = text.strip()
    if len(text) <= max_chars:
        return text
    room = max_chars - 2 * len(_ELLIPSIS)
    if room < 1:
        return _ELLIPSIS[: max(0, max_chars)]
    start, end = _window(text, sorted(_matches(text, frozenset(terms))), room)
    head = _ELLIPSIS if start else ""
    tail = _ELLIPSIS if end < len(text) else ""
    return f"{head}{text[start:end].strip()}{tail}"


def _matches(text: str, terms: frozenset[str]) -> Iterator[_Match]:
    for start, end, tokens in find_words(text):
        yield from (_Match(start, end, token) for token in tokens if token in terms)
    if any(term[0] == "@" for term in terms):
        for start, end, stated in find_dates(text):
            yield from (_Match(start, end, token) for token in stated if token in terms)


def _window(text: str, matches: list[_Match], room: int) -> tuple[int, int]:
    """Choose a window with the best matches in its first third, so that the text after them is visible."""
    first, last = _densest(matches, room)
    start = min(first - max(0, room - (last - first)) // 3, len(text) - room)
    start = _begin(text, start, max(first, 0)) if start > 0 else 0
    return start, last_boundary(text, start + room, max(last, start + room // 2))


def _densest(matches: list[_Match], room: int) -> tuple[int, int]:
    """Return the span within ``room`` with the most different terms, and then the most matches."""
    best, span = (0, 0), (0, 0)
    seen: Counter[str] = Counter()
    left = 0
    for right, match in enumerate(matches):
        seen[match.term] += 1
        while left < right and match.end - matches[left].start > room:
            seen[matches[left].term] -= 1
            left += 1
        worth = (sum(1 for count in seen.values() if count), right - left)
        if worth > best:
            best, span = worth, (matches[left].start, match.end)
    return span


def _begin(text: str, at: int, latest: int) -> int:
    """Return the start of a sentence, or else of a word, between ``at`` and ``latest``."""
    for sentence in _SENTENCE_END.finditer(text, max(0, at - 2), latest):
        if sentence.end() >= at:
            return sentence.end()
    while at < latest and not is_boundary(text, at):
        at += 1
    return at
