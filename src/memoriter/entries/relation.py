"""Relations between two statements: the same, a refinement, a contradiction, or different.

A wrong merge loses a statement, while a duplicate only costs space. Similar meaning is therefore never enough: words
decide what may be merged, and the cosine decides what must not. ``evals/merge.py`` measures the thresholds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from memoriter.sentences import sentence
from memoriter.text.words import normal_form, stem

_PIECE = re.compile(r"[a-z0-9][a-z0-9_.@+#'’:/-]*[a-z0-9+#]|[a-z0-9]|[\u3400-\u9fff]|[^\W_]+")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: Words that carry no content: pronouns, politeness, function words.
_GLUE = _set(
    """i i'm i’m im am me my mine we we're our ours us the a an this that these those it its it's he his
    her is are was were be been being do does did have has had of to in on at for with as by from and so
    just please remember note that will would can really very much also too all own some any there here
    name named called call 's"""
)
_GLUE_ZH = frozenset(
    "我你您的了是在和与與跟就都也很请請把被吧呢啊哦呀嘛么這这那个個们們得地着著之于以所做去来來叫名"
)

_DENIALS = re.compile(
    r"\b(?:no longer|not|never|don'?t|doesn'?t|didn'?t|won'?t|isn'?t|aren'?t|can'?t|cannot|stopped|quit)\b"
    r"|不再|不要|不用|不想|不会|不會|不能|不是|不喜|不吃|不喝|不学|不學|不[\u3400-\u9fff]|别再|別再|别用|別用|没有|沒有|停止|戒了|从不|從不"
)
_DENIAL_WORDS = _set(
    """no not never don't dont doesn't didn't won't isn't aren't can't cannot stopped stop quit longer
    anymore more always any"""
)
_DENIAL_CHARS = frozenset("不再别別没沒要停止戒永远遠一直总總")

_CHANGES = re.compile(
    r"\b(?:no longer|any ?more|now|moved|relocated|switched|changed|migrated|instead of|replaced|joined|left|"
    r"as of today|from now on|these days)\b"
    r"|改用|改成|改为|改為|改到|换成|換成|换到|換到|换了|換了|搬到|搬去|搬家|迁到|遷到|迁移|遷移|跳槽|转到|轉到|不再|现在|現在|目前|以后|以後|取代"
)
_CHANGE_WORDS = _set(
    """now moved move switched switch changed change migrated migrate instead replaced days"""
)
_CHANGE_PHRASES = re.compile(
    r"改用|改成|改为|改為|改到|换成|換成|换到|換到|换了|換了|搬到了?|搬去|迁到了?|遷到了?|迁移到|遷移到|跳槽到|转到|轉到|不再|现在|現在|目前"
)

_COMPARES = re.compile(r"\b(?:over|than|rather|instead of|from)\b|比|胜过|勝過|而不是|从|從")
_NUMBERS = re.compile(r"[0-9]|^[一二三四五六七八九十百千万两兩零半]+$")
_NUMBER_WORDS = _set(
    """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
    first second third fourth fifth sixth"""
)
_DAYS = _set(
    """monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
    fridays saturdays sundays january february march april may june july august september october
    november december"""
)
_NUMERALS = frozenset("0123456789一二三四五六七八九十百千万萬两兩零半日点點号號月年天周週秒分刻.:,-/")

_KIN_EN = (
    "mother|father|mom|mum|dad|brother|sister|son|daughter|wife|husband|partner|friend|boss|manager|colleague|"
    "neighbour|neighbor|dog|cat|uncle|aunt|cousin|grandmother|grandfather|girlfriend|boyfriend|child|kids?|"
    "team|company|dentist|doctor|teacher|landlord|roommate|assistant"
)
_KIN_ZH = (
    "妈妈|媽媽|爸爸|母亲|母親|父亲|父親|哥哥|姐姐|弟弟|妹妹|儿子|兒子|女儿|女兒|妻子|老婆|太太|丈夫|老公|朋友|同事|老板|老闆|"
    "经理|經理|邻居|鄰居|狗|猫|貓|爷爷|爺爺|奶奶|外公|外婆|叔叔|阿姨|室友|女朋友|男朋友|孩子|牙医|牙醫|医生|醫生|老师|老師|助理"
)
_SUBJECT = re.compile(rf"\b(?:my|our)\s+(?:\w+\s+)?({_KIN_EN})\b|(?:我|我们|我們|咱)的?[小老]?({_KIN_ZH})")
_FIRST_PERSON = re.compile(r"^(?:i|i'm|we)\b|^(?:我|咱)")


@dataclass(frozen=True, slots=True)
class Statement:
    """The features of one statement that are compared."""

    #: Normalised text.
    form: str
    #: Every word or Chinese character, in order.
    pieces: tuple[str, ...]
    #: Content words, without words of denial and change.
    words: frozenset[str]
    denies: bool
    changes: bool
    compares: bool
    #: The subject: a relation, "I", or the first words.
    subject: str


@lru_cache(maxsize=4096)
def statement(text: str) -> Statement:
    """Return the features of a text."""
    form = normal_form(text).replace("’", "'")
    pieces = tuple(_PIECE.findall(_CHANGE_PHRASES.sub("", form)))
    return Statement(
        form,
        tuple(piece for piece in pieces if piece not in _CHANGE_WORDS),
        frozenset(word for word in map(_spell, pieces) if _carries(word)),
        bool(_DENIALS.search(form)),
        bool(_CHANGES.search(form)),
        bool(_COMPARES.search(form)),
        _subject(form),
    )


def is_number(piece: str) -> bool:
    """Return whether a word is a number, a unit or a date."""
    return bool(_NUMBERS.search(piece)) or piece in _NUMBER_WORDS or piece in _DAYS or piece in _STEMMED


def only_days(pieces: tuple[str, ...]) -> bool:
    """Return whether all words are names of days or months: many things happen on several of them."""
    return all(piece in _DAYS for piece in pieces)


def only_numbers(pieces: tuple[str, ...]) -> bool:
    """Return whether all words are numbers, days or units."""
    return all(is_number(piece) or piece in _NUMERALS for piece in pieces)


def _spell(piece: str) -> str:
    if not piece.isascii():
        return piece
    word = piece.removesuffix("'s").replace("favourite", "favorite").replace("colour", "color")
    return word if not word.isalpha() or not _carries(word) else stem(word)


def _carries(piece: str) -> bool:
    return not (
        piece in _GLUE
        or piece in _GLUE_ZH
        or piece in _DENIAL_WORDS
        or piece in _DENIAL_CHARS
        or piece in _CHANGE_WORDS
    )


def _subject(form: str) -> str:
    found = _SUBJECT.search(form)
    if found:
        return found[1] or found[2]
    return "I" if _FIRST_PERSON.search(form) else ""


_STEMMED = frozenset(stem(word) for word in _NUMBER_WORDS | _DAYS)


Kind = Literal["same", "refinement", "contradiction", "different"]

#: Minimum cosine of a paraphrase.
MIN_SAME = 0.95
#: Minimum cosine of a refinement.
MIN_REFINEMENT = 0.7
#: Minimum cosine of a statement that ends another.
MIN_REPLACEMENT = 0.6
DENIES = 0.5

Pieces = tuple[str, ...]

#: Maximum number of words that count as one value.
_MAX_VALUE_WORDS = 3
_HEAD_ZH = 6


@dataclass(frozen=True, slots=True)
class Relation:
    """The relation of a new statement to an old one, and its reason."""

    kind: Kind
    why: str


def relation(old: str, new: str, cosine: float | None) -> Relation:
    """Compare two statements. Without vectors ``cosine`` is None, and words decide alone."""
    before, after = statement(old), statement(new)
    if before.form == after.form:
        return Relation("same", sentence("history.equal"))
    if before.subject and after.subject and before.subject != after.subject:
        return Relation("different", "about another person")
    return (
        _denial(before, after, cosine)
        or _slot(before, after)
        or _bag(before, after, cosine)
        or _ending(before, after, cosine)
        or _value(before, after, cosine)
        or _containment(before, after, cosine)
        or _nearness(before, after, cosine)
        or Relation("different", "no sign of being about the same")
    )


def _near(cosine: float | None, least: float) -> bool:
    return cosine is None or cosine >= least


def _denial(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return a contradiction if one statement affirms what the other denies."""
    if before.denies == after.denies or (after.form.startswith(before.form) and not after.changes):
        return None  # an addition such as "without sugar" does not deny what comes before it
    smaller = min(len(before.words), len(after.words))
    common = len(before.words & after.words)
    if smaller and common / smaller >= 0.75 and _near(cosine, DENIES):
        return Relation("contradiction", sentence("history.negation"))
    return Relation("different", "one denies, the other does not")


_SLOTS = {
    "where a person lives": re.compile(
        r"\b(?:i|we)(?:'m| am| are| have)? ?(?:now )?(?:live|lives|living|moved|relocated)(?: back)? (?:in|to)\b"
        r"|^(?:我|我们|我們)(?:现在|現在|目前|已经|已經)?(?:住在|搬到|搬去|定居|搬家到)"
    ),
    "where a person works": re.compile(
        r"\b(?:i|we)(?:'m| am| now| have)? ?(?:work|working|joined|left \w+ and joined)(?: now)?(?: at| for|\b)"
        r"(?! (?:on|from|with|in)\b)|^我(?:现在|現在|目前)?在[^，。]{1,12}(?:工作|上班)"
        r"|^我(?:从[^，。]{1,12})?(?:跳槽到|入职|入職|加入了?)"
    ),
}


_SLOT_WORDS = {
    "where a person lives": "live living lives moved 住在 搬到",
    "where a person works": "work working works joined 工作 跳槽到 上班",
}


def slot_words(text: str) -> str:
    """Return words by which a known statement about the same can be found, even if they share no content word."""
    form = statement(text).form
    return " ".join(words for name, words in _SLOT_WORDS.items() if _SLOTS[name].search(form))


def _slot(before: Statement, after: Statement) -> Relation | None:
    """Return a contradiction if both statements give a value for something that has only one."""
    for name, pattern in _SLOTS.items():
        if pattern.search(before.form) and pattern.search(after.form):
            lost, gained = before.words - after.words, after.words - before.words
            if lost and gained:
                return Relation("contradiction", sentence("history.slot", name=name))
    return None


def _bag(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return "same" for the same words in another order, unless the order carries the meaning."""
    if before.words != after.words or not before.words:
        return None
    if before.compares and after.compares and before.pieces != after.pieces:
        order = [piece for piece in before.pieces if piece in before.words]
        if order != [piece for piece in after.pieces if piece in after.words]:
            return Relation("contradiction", sentence("history.comparison"))
    return Relation("same", sentence("history.same_words")) if _near(cosine, MIN_REFINEMENT) else None


_FROM = re.compile(
    r"\b(?:switched|moved|migrated|changed)\b.{0,60}?\bfrom ([^,.;]{1,40}?) (?:to|over to)\b"
    r"|\binstead of ([^,.;]{1,40})"
    r"|\b(?:left|quit|stopped using|replaced) ([^,.;]{1,40})"
    r"|[从從]([^，。]{1,16}?)(?:换到|換到|换成|換成|换|換|迁移到|遷移到|迁到|改到|改用|改成|跳槽到|转到|轉到|搬到)"
    r"|(?:取代|代替)([^，。]{1,16})"
)


def _ending(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return a contradiction if the new statement names what it ends, and the old one is about that."""
    found = _FROM.search(after.form)
    if not found:
        return None
    named = statement(next(group for group in found.groups() if group)).words
    if named and named <= before.words and _near(cosine, DENIES):
        return Relation("contradiction", sentence("history.ended"))
    return None


_SINGLE = re.compile(
    r"(?:^|\s)(?:is|are|is called|called|named|name|runs? (?:on|in)|expires? in|kept for|leaves? at|meets? (?:every|on)"
    r"|due (?:on|at)|starts? at|costs?)$"
    r"|(?:是|叫|为|為|在|住在|叫做|到期|位于|位於|等于)$"
)
_ARTICLE = frozenset(("a", "an"))


def _value(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return a contradiction if only one value differs, and the words before it take only one value."""
    head, old, new, tail = _align(before.pieces, after.pieces)
    if (
        not head
        or not old
        or not new
        or max(len(old), len(new)) > (_HEAD_ZH if _chinese(old + new) else _MAX_VALUE_WORDS)
    ):
        return None
    chinese = _chinese(head)
    lead = ("" if chinese else " ").join(head)
    if only_numbers(old) and only_numbers(new):
        return _number(lead, head, old, tail, after.changes) if _near(cosine, MIN_REPLACEMENT) else None
    if _ARTICLE & {*old[:1], *new[:1]}:
        return None  # "is a": one may be several things
    single = bool(_SINGLE.search(lead)) and (not tail or _short(tail))
    if single and _near(cosine, DENIES):
        return Relation("contradiction", sentence("history.value"))
    if after.changes and len(tail) + len(head) >= 2 and _near(cosine, MIN_REPLACEMENT):
        return Relation("contradiction", sentence("history.change"))
    return None


def _number(lead: str, head: Pieces, old: Pieces, tail: Pieces, changes: bool) -> Relation | None:
    """Return whether a number differs in the same place and is not part of a name, as in "invoice 1041"."""
    single = bool(_SINGLE.search(lead))
    if only_days(old):
        measured = single or changes
    elif any(piece.isascii() and piece[0].isdigit() for piece in old):
        measured = single or _says(lead) or _unit(tail)
    else:
        measured = single or bool(tail) or _says(lead)
    if measured and len(head) > 1:
        return Relation("contradiction", sentence("history.number"))
    return None


def _says(lead: str) -> bool:
    return bool(re.search(r"\b(?:is|are|was|on|for|in|have|has|at)\b|是|在|为|為|有|用|保留|到", lead))


def _unit(tail: tuple[str, ...]) -> bool:
    units = "秒天个個分元号號点點月年层層楼樓岁歲端周週"
    return bool(tail) and (tail[0] in units or tail[0].startswith(("second", "minut", "day", "hour", "euro")))


def _short(tail: tuple[str, ...]) -> bool:
    return len(tail) <= 3


def _chinese(pieces: tuple[str, ...]) -> bool:
    return any("\u3400" <= piece[0] <= "\u9fff" for piece in pieces)


def _align(old: Pieces, new: Pieces) -> tuple[Pieces, Pieces, Pieces, Pieces]:
    """Return the common start, the two different middles, and the common end."""
    old, new = _without_softeners(old), _without_softeners(new)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    end = -tail or None
    return old[:head], old[head:end], new[head:end], old[len(old) - tail :]


def _without_softeners(pieces: Pieces) -> Pieces:
    return tuple(piece for piece in pieces if piece not in ("了", "的", "already"))


def _containment(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return a refinement if one statement contains all of the other."""
    if after.changes and not before.changes:
        return None  # "… now" may mean that it was otherwise
    if (
        before.words < after.words
        and before.words
        and _near(cosine, MIN_REFINEMENT)
        and len(before.words) > 1
    ):
        return Relation("refinement", sentence("history.more"))
    if after.words < before.words and len(after.words) > 1 and _near(cosine, MIN_REFINEMENT):
        return Relation("same", sentence("history.part"))
    return None


def _nearness(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return "same" for a paraphrase, if the different words are few and neither names nor numbers."""
    lost, gained = before.words - after.words, after.words - before.words
    if cosine is None or cosine < MIN_SAME or any(is_number(piece) for piece in lost | gained):
        return None
    if len(lost) <= 1 and len(gained) <= 1:
        return Relation("same", sentence("history.similar"))
    return None
