# ruff: noqa: E501 - a pattern that is broken in two is harder to read

"""Separate the words of a person from text that they pasted into a message: mails, pages, chat logs, quotations.

The shape of a message decides: who writes one short paragraph says it themselves. What stands in quotation marks, starts with a mark
such as a bullet, or is long, is pasted. So is a message of several lines, unless each of them is a sentence in the first person. A small model
recognises sentences and words before a colon that introduce a text, and requests to work on it, before or after it. In doubt, text counts as pasted: a statement that is missed can
be said again, while a statement of a stranger would be remembered as the owner's. Every pattern is bounded, so the time
is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memoriter.text.likelihood import likelihood
from memoriter.text.tokens import width
from memoriter.text.words import split_sentences


class Piece(NamedTuple):
    """A part of a message."""

    text: str
    pasted: bool


def split_pasted(text: str) -> list[Piece]:
    """Return the pieces of a message in their order, without empty ones.

    >>> split_pasted("I prefer tea. Please summarise this email:\\nWe always pay in cash.")
    [Piece(text='I prefer tea. Please summarise this email:', pasted=False), Piece(text='We always pay in cash.', pasted=True)]
    """
    pieces, at = list[Piece](), 0
    for start, end in _merge(_spans(text)):
        pieces += [Piece(text[at:start].strip(), False), Piece(text[start:end].strip(), True)]
        at = end
    pieces.append(Piece(text[at:].strip(), False))
    return [piece for piece in pieces if piece.text]


def own_words(text: str) -> str:
    """Return what the person wrote, without pasted text."""
    pieces = split_pasted(text)
    if not any(piece.pasted for piece in pieces):
        return text
    return "\n".join(piece.text for piece in pieces if not piece.pasted)


# ---- limits and patterns ----------------------------------------------------------------------------------------

#: Width of a message that is too long for a person's own statements: about 100 words, or 150 Chinese characters.
MAX_OWN_WIDTH = 600
MAX_OWN_PARAGRAPHS = 3
#: Longest line that can introduce pasted text.
MAX_LEAD = 200
#: From this likelihood on, a sentence introduces a text of others or asks for work on it, and words before a colon do.
OPENER, OPENING_LEAD = 0.6, 0.15
#: A sentence that is less likely a statement is a request or a question.
REQUEST = 0.1
#: Width of a quotation that is a statement and not a name or a term.
MIN_QUOTE_WIDTH = 24

_BREAK = "\n\r\v\f\x85\u2028\u2029"
_LINE = re.compile(f"[^{_BREAK}]+")
_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~|\"\"\"|''')", re.MULTILINE)
_QUOTED_LINES = re.compile(r"^[ \t]{0,8}>.*$", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z!][A-Za-z0-9-]{0,30}(?:\s[^<>]{0,300})?/?>")
#: Quotation marks of many languages. Where the first mark cannot also be the last, an open quotation reaches to the end.
_QUOTES = tuple(
    re.compile(pattern)
    for pattern in (
        *(r'"([^"]{0,4000})(?:"|\Z)', r"“([^”]{0,4000})(?:”|\Z)", r"„([^“”]{0,4000})(?:[“”]|\Z)"),
        *(r"「([^」]{0,4000})(?:」|\Z)", r"『([^』]{0,4000})(?:』|\Z)", r"«([^»]{0,4000})(?:»|\Z)"),
        *(r"»([^«]{0,4000})«", r"‹([^›]{0,4000})›", r"‘([^’]{0,4000})’", r"(?<!\w)'([^'\n]{0,4000})'(?!\w)"),
    )
)
#: A colon that introduces what follows. In a time or an address, no space follows.
_COLON = re.compile(r"[:︰﹕](?=\s|$)|：")
#: A dash or an arrow that points to what follows, between a lead and the text.
_DASH = re.compile(r"\s(?:-{1,3}|[–—|→➜⇒▶»]|/(?=\s.{0,400}\s/\s)|//|[=-]>|>{2,3}|:{2,3})\s|——")
#: The start of a line that is not speech: brackets, bullets, numbers of a list, headings, addresses, times.
_MARKED = re.compile(
    r"\s{0,8}(?:[^\w\s\"'“„‘«「『¿¡$€£¥#]|#(?=[\s#])|_{2}|\d{1,3}[.)）、](?=\s|[^\W\d])|https?://|www\."
    r"|\d{1,4}[-/.年]\d{1,2}[-/.月]\d{1,4}|\d{1,2}[:.]\d{2}(?!\d)"
    r"|[^\s\d:：]{1,24}(?: [A-ZÀ-Þ][^\s\d]{0,24})? {1,3}[\[(]?\d{1,2}:\d{2}(?!\d))"
)
_BULLET = re.compile(r"\s{0,8}(?:[-*+•·–]|\d{1,3}[.)）、])(?=\s|[^\W\d])")
#: A sentence in the first person, or one that the speaker asks to remember.
_FIRST_PERSON = re.compile(
    r"\s{0,8}(?:(?:and|also|but|so|btw|by the way|ps|oh|ok|okay|yes|well|actually|personally|usually|please|另外|还有|而且|顺便说一下|对了|其实)"
    r"(?:[,，:：]\s{0,3}|\s{1,3}|(?=[^\x00-\x7f]))){0,2}"
    r"(?:(?:I|my|mine|we|our|let['’]s|call me|remember|note that|keep in mind|don['’]t forget)\b|我|咱|本人|请记住|請記住|记住|記住|叫我)",
    re.IGNORECASE,
)
#: A line that announces facts about the speaker. "About me:" alone is a heading of pages, too.
_OWN_LEAD = re.compile(
    r"\s{0,8}(?:(?:here are |here['’]s )?(?:a few|some|several|a couple of|two|three|four|five|\d) (?:more )?(?:things|facts|details|points)(?: to (?:know|remember))? about (?:me|us)|my (?:facts|details|situation)|(?P<zh>关于我(?:自己)?|關於我(?:自己)?|我(?:自己)?的(?:基本)?(?:情况|信息|資料|资料|情況)))(?:如下)?\s?[:：]\s{0,8}",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[.!。！]\s{0,8}\Z")
_QUESTION = re.compile(r"[^.!?。！？]{1,200}[?？؟;]\s{0,8}")
#: A name after the last sentence, as letters end: "…. Cheers, Bob".
_SIGNED = re.compile(
    r"(?:[.!?]\s|[。！？])\s{0,3}[^\s.!?,]{2,20}(?: [^\s.!?,]{1,20}){0,2},\s{1,3}[A-ZÀ-Þ][^\s.!?]{1,30}(?: [A-ZÀ-Þ][^\s.!?]{0,30}){0,2}[.!]?\s{0,8}\Z"
)
#: Text that only pages and newsletters contain.
_PAGE = re.compile(r"[©®]|\ball rights reserved\b|\bunsubscribe\b|版权所有|版權所有|退订", re.IGNORECASE)


# ---- spans ----------------------------------------------------------------------------------------------------

Span = tuple[int, int]


def _merge(spans: Iterator[Span]) -> list[Span]:
    merged = list[Span]()
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _spans(text: str) -> Iterator[Span]:
    """Yield where text is pasted. The spans may overlap."""
    marked = _merge(_marked_spans(text))
    yield from marked
    rest = ["\n" if char in _BREAK else char for char in text]
    for start, end in marked:
        rest[start:end] = ["\n" if char == "\n" else " " for char in rest[start:end]]
    unmarked, is_long, at = "".join(rest), width(text) > MAX_OWN_WIDTH, 0
    yield from _blocks(unmarked, long=is_long)
    for one in () if is_long else split_sentences(unmarked):
        start = unmarked.index(one, at)
        at = start + len(one)
        if likelihood(one, "openers") >= OPENER:
            yield at, len(text)
            # What ends with a colon stays with the words before it. The request is a piece of its own, so that it is
            # not one about these words when the turn is read again without the text.
            if one[-1] not in ":：":
                yield start, start
                if not text[at:].strip() and likelihood(one, "statements") < REQUEST:
                    yield 0, start
            return


def _marked_spans(text: str) -> Iterator[Span]:
    """Yield what marks of its own enclose: code, quoted lines, markup and quotations."""
    yield from _fenced(text)
    yield from (match.span() for match in _QUOTED_LINES.finditer(text))
    tags = [match.span() for match in _TAG.finditer(text)]
    if tags:
        yield tags[0][0], tags[-1][1]
    for pattern in _QUOTES:
        for match in pattern.finditer(text):
            if width(match[1]) >= MIN_QUOTE_WIDTH:
                yield match.span()


def _fenced(text: str) -> Iterator[Span]:
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1] == opened[1]:
            yield opened.start(), fence.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(text)


def _blocks(text: str, *, long: bool) -> Iterator[Span]:
    """Yield the lines that are not the person's own sentences, and what a colon introduces."""
    lines = [match for match in _LINE.finditer(text) if match[0].strip()]
    if not long and _is_own_list([line[0] for line in lines]):
        return
    colon = next((at for line in lines if (at := _introduces(line)) is not None), None)
    if colon is not None:
        yield colon, len(text)
        lines = [line for line in lines if line.start() < colon]
    before = text[:colon]
    paragraphs = 1 + len(re.findall(rf"[{_BREAK}]\s*[{_BREAK}]", before.strip()))
    if len(lines) > 1 and all(_BULLET.match(line[0]) for line in lines[1:]):
        yield lines[1].start(), len(text)  # a line of the person, then a list
        lines = lines[:1]
    own = [line for line in lines if _FIRST_PERSON.match(line[0]) and _ENDED.search(line[0])]
    if long or paragraphs > MAX_OWN_PARAGRAPHS or _PAGE.search(text) or _SIGNED.search(before):
        own = []
    elif len(lines) == 1:
        said, at = lines[0][0], lines[0].start()
        own = [] if _MARKED.match(said) and any(map(str.isalnum, said)) else lines
        if own and not _FIRST_PERSON.match(said) and (dash := _DASH.search(said)):
            yield at + dash.end(), len(text)
    elif len(own) < len(lines) - bool(colon):
        own = []
    for line in lines:
        lead = colon is not None and line.start() < colon <= line.end() and line is lines[0]
        if line not in own and not lead and not _QUESTION.fullmatch(line[0]):
            yield line.span()


def _introduces(line: re.Match[str]) -> int | None:
    """Return the end of a colon that introduces what follows it; None if there is none."""
    for colon in _COLON.finditer(line[0][:MAX_LEAD]):
        head = re.split(r"[.!?。！？]\s*(?=\S)", line[0][: colon.start()])[-1]
        if colon.end() >= len(line[0].rstrip()) or likelihood(f"{head}:", "openers") >= OPENING_LEAD:
            return line.start() + colon.end()
    return None


def _is_own_list(lines: list[str]) -> bool:
    """Return whether a message is a list of facts that the person announces as their own, and nothing else."""
    lead = _OWN_LEAD.fullmatch(lines[0]) if len(lines) > 1 else None
    items = [
        bullet and line[bullet.end() :].strip() for line in lines[1:] for bullet in [_BULLET.match(line)]
    ]
    return lead is not None and all(item and (lead["zh"] or _FIRST_PERSON.match(item)) for item in items)
