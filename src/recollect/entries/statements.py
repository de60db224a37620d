"""What a short statement says, seen from outside: its words, whether it denies, whether it tells of a change.

English and Chinese, simplified and traditional. No grammar is understood here: these are the signs from which
`relation` judges, and where they are silent it judges nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from recollect.store.digests import normal_form
from recollect.text.stem import stem

_PIECE = re.compile(r"[a-z0-9][a-z0-9_.@+#'’:/-]*[a-z0-9+#]|[a-z0-9]|[\u3400-\u9fff]|[^\W_]+")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: Words that carry nothing of what is stated: who speaks, politeness, glue.
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
    """The signs of one statement."""

    form: str  #: normalised text
    pieces: tuple[str, ...]  #: every word or Chinese character, in order
    words: frozenset[str]  #: those that carry meaning, without denial and change
    denies: bool
    changes: bool
    compares: bool
    subject: str  #: whom it is about: a relation's name, "I", or what it begins with


@lru_cache(maxsize=4096)
def statement(text: str) -> Statement:
    """Read a text."""
    form = normal_form(text).replace("’", "'")
    pieces = tuple(_PIECE.findall(_CHANGE_PHRASES.sub("", form)))
    return Statement(
        form,
        tuple(piece for piece in pieces if piece not in _CHANGE_WORDS),
        frozenset(word for word in map(_spelled, pieces) if _carries(word)),
        bool(_DENIALS.search(form)),
        bool(_CHANGES.search(form)),
        bool(_COMPARES.search(form)),
        _subject(form),
    )


def is_number(piece: str) -> bool:
    """Whether a word counts, measures or dates."""
    return bool(_NUMBERS.search(piece)) or piece in _NUMBER_WORDS or piece in _DAYS or piece in _STEMMED


def only_days(pieces: tuple[str, ...]) -> bool:
    """Whether only names of days and months stand here: much can happen on several of them."""
    return all(piece in _DAYS for piece in pieces)


def only_numbers(pieces: tuple[str, ...]) -> bool:
    """Whether nothing but numbers, days and their units stands here."""
    return all(is_number(piece) or piece in _NUMERALS for piece in pieces)


def _spelled(piece: str) -> str:
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
