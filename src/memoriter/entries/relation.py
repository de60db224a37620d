"""Relations between two statements: the same, a part, a refinement, a contradiction, or different.

A wrong merge hides a statement, while a duplicate only costs space. In doubt, statements are different. They are the
same only if their content words agree in order, or were moved in a way that keeps their roles, and if denials, numbers,
names and tenses agree. Similar meaning is never enough: words decide what may be merged, and the cosine decides what
must not. ``python -m evals.merge`` measures this on labelled pairs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from memoriter.entries.statement import (
    AND,
    NOT,
    PERSONS,
    Statement,
    is_chinese,
    only_days,
    only_numbers,
    plain_pieces,
    statement,
    word_set,
)
from memoriter.sentences import sentence

Kind = Literal["same", "part", "refinement", "contradiction", "different"]
Pieces = tuple[str, ...]

#: Minimum cosine of a refinement, of a statement that replaces another, and of one that denies another.
MIN_REFINEMENT, MIN_REPLACEMENT, MIN_DENIAL = 0.7, 0.6, 0.5
#: A statement with more words is different from any other: it is a text, and comparing it takes too long.
MAX_WORDS = 300


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
    if max(len(before.sequence), len(after.sequence)) > MAX_WORDS:
        return Relation("different", "too long to compare")
    if before.subject and after.subject and before.subject != after.subject:
        return Relation("different", "about another person")
    return (
        _rearrangement(before, after)
        or _rejection(before, after)
        or _extension(before, after, cosine)
        or _denial(before, after, cosine)
        or _event(before, after)
        or _slot(before, after)
        or _ending(before, after, cosine)
        or _value(old, new, after.changes, cosine)
        or Relation("different", "no sign of being about the same")
    )


def _near(cosine: float | None, least: float) -> bool:
    return cosine is None or cosine >= least


# ---- the same words -----------------------------------------------------------------------------------------------

#: A statement with one of these has an order: it cannot be true both ways.
_ORDERED = re.compile(
    r"\b(?:over|than|before|after|instead|rather|unless|until|not|reports? to|manages?|supervises?|leads"
    r"|from .{1,40} to|(?:manager|boss|supervisor|lead|parent|mother|father|teacher) of)\b"
    r"|'s (?:manager|boss|supervisor|lead|mother|father|son|daughter|teacher)\b"
    r"|比|胜过|而不是|不|之前|之后|以前|以后|先.{1,20}[再后]|宁愿|宁可|从.{1,16}(?:到|换|迁)|[向给].{1,8}汇报|领导|管理"
    r"|的(?:经理|上司|主管|领导|老板|组长|爸爸|妈妈|父亲|母亲|儿子|女儿|老师)"
)
_COPULAS = frozenset(("is", "are", "am", "was", "were", "是", "叫"))
#: Words that begin a phrase which may move to the start of a sentence.
_MOVABLE = word_set(
    """in on at every each before after for with only during when if unless since by until under near without as
    always usually often sometimes once twice three four five"""
)


def _rearrangement(before: Statement, after: Statement) -> Relation | None:
    """Compare two statements that consist of the same words: the same order, a moved phrase, or exchanged roles."""
    if not before.sequence or sorted(before.sequence) != sorted(after.sequence):
        return None
    if before.sequence == after.sequence or _is_moved(before, after):
        if _agree(before, after):
            return Relation("same", sentence("history.same_words"))
        return Relation("different", "the same words about another person, place or time")
    middle = _exchanged(before.sequence, after.sequence)
    if middle == (AND,) and _agree(before, after):
        return Relation("same", sentence("history.same_words"))
    if middle is not None and AND not in middle and _ORDERED.search(before.form):
        return Relation("contradiction", sentence("history.comparison"))
    return Relation("different", "the same words in other roles")


def _agree(before: Statement, after: Statement) -> bool:
    """Return whether tenses, persons and prepositions agree. A word may be missing, but not be exchanged."""
    return before.past == after.past and (before.minor <= after.minor or after.minor <= before.minor)


def _is_moved(before: Statement, after: Statement) -> bool:
    """Return whether a phrase was moved from one end to the other: "In May we …", "Tom is my …"."""
    old, new = before.sequence, after.sequence
    for cut in range(1, len(old)):
        if old[cut:] + old[:cut] != new:
            continue
        if before.pieces[0] in _MOVABLE or after.pieces[0] in _MOVABLE:
            return True
        if _has_copula(before, cut) and _has_copula(after, len(new) - cut):
            return True
    return False


def _has_copula(stated: Statement, cut: int) -> bool:
    """Return whether there is a copula between the first parts of a sequence and the others."""
    return bool(_COPULAS & set(stated.pieces[stated.places[cut - 1] + 1 : stated.places[cut]]))


def _exchanged(old: Pieces, new: Pieces) -> Pieces | None:
    """Return what is between two parts that changed places; None if nothing else than two parts did."""
    head, tail = _common_ends(old, new)
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    size = len(left)
    for first in range(1, size):
        for last in range(1, size - first + 1):
            if (
                left[:first] == right[size - first :]
                and left[size - last :] == right[:last]
                and left[first : size - last] == right[last : size - first]
            ):
                return _between(left[first : size - last], old[len(old) - tail :])
    return None


def _between(middle: Pieces, rest: Pieces) -> Pieces:
    """Remove the common end of two Chinese words from what is between them: 德语和法语 has 和 in the middle."""
    shared = len(middle) - 1
    if shared > 0 and middle[-1] == AND and rest[:shared] == middle[:-1]:
        return (AND,)
    return middle


def _common_ends(old: Pieces, new: Pieces) -> tuple[int, int]:
    """Return how many parts are common at the start and at the end."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


# ---- choices between two things -----------------------------------------------------------------------------------

#: Words between what is chosen and what is rejected, as they are in a sequence.
_REJECTORS = (("over",), ("instead",), ("rather", "than"), (NOT,), ("而", NOT), ("胜", "过"))


def _rejection(before: Statement, after: Statement) -> Relation | None:
    """Return a contradiction if one statement rejects what the other chooses: tabs, and spaces over tabs."""
    for choice, other in ((before.sequence, after.sequence), (after.sequence, before.sequence)):
        for rejector in _REJECTORS:
            end = _find(choice, rejector) + len(rejector)
            rejected = choice[end:]
            common = len(other) - len(rejected)
            chosen = range(1, end - len(rejector)) if end >= len(rejector) and rejected else ()
            if common in chosen and other == choice[:common] + rejected:
                return Relation("contradiction", sentence("history.comparison"))
    return None


def _find(sequence: Pieces, part: Pieces) -> int:
    """Return the place of a part in a sequence, or a negative number."""
    places = (at for at in range(len(sequence)) if sequence[at : at + len(part)] == part)
    return next(places, -len(part) - 1)


# ---- more or fewer words ------------------------------------------------------------------------------------------

#: Words after which a statement continues without changing what came before.
_CONTINUING = _MOVABLE | word_set(
    """, ; and or but because so who which that where while to from over than instead rather then of is are was
    very along about around between behind beside next including mostly except"""
)
_ADVERBIAL_ZH = re.compile(
    "^(?:每|在|沿|上午|下午|中午|早上|晚上|凌晨|傍晚|周|星期|几乎|经常|常|通常|一般|平时|大多|主要|[0-9])"
)
#: Words that limit a statement: with them it may mean something else.
_LIMITS = frozenset(("only", "just", "只", "仅"))


def _extension(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return a refinement or a part if one statement continues the other."""
    if not _near(cosine, MIN_REFINEMENT) or before.past != after.past:
        return None
    if _continues(before, after) and not (after.changes and not before.changes):
        return Relation("refinement", sentence("history.more"))
    if _continues(after, before) and not before.changes:
        return Relation("part", sentence("history.part"))
    return None


def _continues(short: Statement, long: Statement) -> bool:
    """Return whether the long statement says the short one and adds to it, at its end or as an adverbial."""
    size, added = len(short.sequence), len(long.sequence) - len(short.sequence)
    if not size or added <= 0 or not (short.minor <= long.minor):
        return False
    head, tail = _common_ends(short.sequence, long.sequence)
    if head == size:
        extra = long.sequence[size:]
        return _joins(long, size) and not _LIMITS & set(extra) and extra[-1] != NOT
    if head + tail < size:
        return False
    extra = long.sequence[head : head + added]
    return not {NOT, AND, *_LIMITS} & set(extra) and _is_adverbial(long, head, extra)


def _joins(long: Statement, size: int) -> bool:
    """Return whether what follows the first parts of a sequence is a phrase of its own, and not part of a name."""
    place = long.places[size - 1]
    following = long.pieces[place + 1]
    if following in _CONTINUING:
        return True
    if only_numbers((following,)) and long.pieces[place].isascii() and long.pieces[place].isalpha():
        return True  # PostgreSQL 16
    if is_chinese((long.pieces[place],)) or is_chinese((following,)):
        return following in (",", ";") or (following == "再" and size > 1)
    return following.isascii() and following.endswith("ly")


def _is_adverbial(long: Statement, head: int, extra: Pieces) -> bool:
    start = long.places[head - 1] + 1 if head else 0
    phrase = [
        one for one in long.pieces[start : long.places[head + len(extra) - 1] + 1] if one not in PERSONS
    ]
    if is_chinese(extra):
        return bool(_ADVERBIAL_ZH.match("".join(phrase)))
    if head and only_numbers(extra):
        return not only_numbers(long.sequence[head - 1 : head])
    return head > 0 and phrase[0] in _MOVABLE


# ---- denials ------------------------------------------------------------------------------------------------------

#: Verbs and modals that a denial such as "decided against" may leave out.
_LIGHT = word_set(
    """use have go get choose pick adopt want will would going to plan take must should can
    用 要 会 能 想 使 采 可 以 必 须 应 该 准 备 打 算 决 定 上 抽 喝"""
)


def _denial(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return a contradiction if one statement denies all or a part of what the other says.

    To deny the general ("I don't drink coffee") denies the special ("I drink coffee every morning"), not vice versa.
    """
    if before.denials == after.denials:
        return None
    denying, affirming = (before, after) if before.denials > after.denials else (after, before)
    denied, affirmed = _core(denying), _core(affirming)
    general = denied == affirmed or (len(denied) > 1 and _contains(affirmed, denied))
    if denied and general and denying.denials - affirming.denials == 1 and _near(cosine, MIN_DENIAL):
        return Relation("contradiction", sentence("history.negation"))
    return None


def _core(stated: Statement) -> Pieces:
    return tuple(part for part in stated.sequence if part != NOT and part not in _LIGHT)


def _contains(long: Pieces, short: Pieces) -> bool:
    """Return whether the long sequence has the parts of the short one in order; Chinese in runs of two or more."""
    place = at = 0
    while at < len(short):
        run = short[at : at + (2 if is_chinese(short[at : at + 1]) else 1)]
        found = _find(long[place:], run)
        if found < 0:
            return False
        place, at = place + found + len(run), at + len(run)
        while at < len(short) and place < len(long) and short[at] == long[place]:
            place, at = place + 1, at + 1
    return True


# ---- values -------------------------------------------------------------------------------------------------------


def _event(before: Statement, after: Statement) -> Relation | None:
    """Return "different" for two events: what happened once may have happened another time too."""
    if before.past and after.past and not after.changes:
        return Relation("different", "two events")
    return None


_SLOTS = {
    "where a person lives": re.compile(
        r"\b(?:i|we)(?:'m|'ve| am| are| have)? ?(?:now )?(?:live|lives|living|moved|relocated)(?: back)? (?:in|to)\b"
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
    if before.denials or after.denials or before.past:
        return None
    for name, pattern in _SLOTS.items():
        if pattern.search(before.form) and pattern.search(after.form):
            lost, gained = before.words - after.words, after.words - before.words
            if lost and gained:
                return Relation("contradiction", sentence("history.slot", name=name))
    return None


_FROM = re.compile(
    r"\b(?:switched|moved|migrated|changed)\b.{0,60}?\bfrom ([^,.;]{1,40}?) (?:to|over to)\b"
    r"|\binstead of ([^,.;]{1,40})"
    r"|\b(?:left|quit|stopped using|replaced) ([^,.;]{1,40}?)(?= and\b| with\b| by\b|$)"
    r"|[从從]([^，。]{1,16}?)(?:换到|換到|换成|換成|换|換|迁移到|遷移到|迁到|改到|改用|改成|跳槽到|转到|轉到|搬到)"
    r"|(?:取代|代替)([^，。]{1,16})"
)
#: Verbs that only say that something is in use.
_IN_USE = _LIGHT | word_set(
    """work live run drive write written build built host keep sit bank as editor
    工 作 写 住 开 做 班 代 码 字 项 目"""
)


def _ending(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return a contradiction if the new statement names what it ends, and the old one says that it is in use."""
    found = _FROM.search(after.form)
    if not found or before.denials:
        return None
    named = statement(next(group for group in found.groups() if group)).words
    about = before.words - named - _IN_USE
    if named and named <= before.words and about <= after.words and _near(cosine, MIN_DENIAL):
        return Relation("contradiction", sentence("history.ended"))
    return None


_SINGLE = re.compile(
    r"(?:^|\s)(?:(?:is|are) (?:in|on|at|named)|runs? (?:on|in)|expires? in|ends? in|kept for|leaves? at"
    r"|meets? (?:every|on)|opens? at|due (?:on|at)|starts? at|costs?|lives? in|set to|parked (?:in|on)"
    r"|takes? place in)$"
    r"|(?:叫|为|在|住在|叫做|到期|位于|等于|停在|设在|约在)[小老阿]?$"
)
#: A quality may have many values ("Anna is tall"), an attribute only one ("my manager is", 预算是).
_ATTRIBUTE = re.compile(
    r"^(?:my|our|your|his|her|their|the|[\w-]+ 's)\b.*\b(?:is|are)$|(?:"
    r"经理|上司|主管|老板|房东|校长|医生|老师|会计|预算|截止|日期|生日|邮箱|电话|号码?|地址|颜色|语言|密码|端口|利率|房租|超时|主题"
    r"|名|分支|版本|数|时间|价格?|费|码)是[小老阿]?$"
)
_OPEN = re.compile(
    r"\b(?:favorite|preferred|default|status|color|language|size|role|job|title|plan|goal|theme|mode|editor|branch|brand"
    r"|priority|format|currency)\b"
)
_ARTICLES = frozenset(("a", "an"))
_NO_VALUES = word_set("'s not 不 没 别")
#: Maximum number of words, or of Chinese characters, that count as one value.
_MAX_VALUE_WORDS, _MAX_VALUE_ZH = 3, 6


def _value(old: str, new: str, changes: bool, cosine: float | None) -> Relation | None:
    """Return a contradiction if only one value differs, and the words before it take only one value."""
    before, after = plain_pieces(old), plain_pieces(new)
    head_size, tail_size = _common_ends(before, after)
    head, tail = before[:head_size], before[len(before) - tail_size :]
    was, now = before[head_size : len(before) - tail_size], after[head_size : len(after) - tail_size]
    if not head or not _are_values(was, now) or "than" in tail:
        return None
    lead = ("" if is_chinese(head) else " ").join(head)
    if only_numbers(was) and only_numbers(now):
        return _number(lead, head, was, tail, changes) if _near(cosine, MIN_REPLACEMENT) else None
    single = _SINGLE.search(lead) or _is_attribute(lead, now, new)
    if single and len(tail) <= 3 and _near(cosine, MIN_DENIAL):
        return Relation("contradiction", sentence("history.value"))
    if changes and len(tail) + len(head) >= 2 and _near(cosine, MIN_REPLACEMENT):
        return Relation("contradiction", sentence("history.change"))
    return None


def _are_values(was: Pieces, now: Pieces) -> bool:
    """Return whether two differences are short and name something. With "a" and "'s", one may be several things."""
    limit = _MAX_VALUE_ZH if is_chinese(was + now) else _MAX_VALUE_WORDS
    if not was or not now or max(len(was), len(now)) > limit:
        return False
    return not (_ARTICLES & {was[0], now[0]} or _NO_VALUES & {*was, *now})


def _is_attribute(lead: str, now: Pieces, new: str) -> bool:
    """Return whether the words before a value name an attribute, and the value is a name or one of a few choices."""
    if not _ATTRIBUTE.search(lead):
        return False
    if is_chinese((lead,)) or _OPEN.search(lead):
        return True
    place = new.casefold().rfind(now[0])
    return place > 0 and (new[place].isupper() or not now[0].isalpha())


def _number(lead: str, head: Pieces, was: Pieces, tail: Pieces, changes: bool) -> Relation | None:
    """Return whether a number differs in the same place and is not part of a name, as in "invoice 1041"."""
    single = bool(_SINGLE.search(lead) or re.search(r"\b(?:is|are)$|是$", lead))
    if only_days(was):
        measured = single or changes
    elif any(piece.isascii() and piece[0].isdigit() for piece in was):
        measured = single or _says(lead) or _unit(tail)
    else:
        measured = single or bool(tail) or _says(lead)
    if measured and (len(head) > 1 or changes):
        return Relation("contradiction", sentence("history.number"))
    return None


def _says(lead: str) -> bool:
    return bool(
        re.search(r"\b(?:is|are|was|on|for|in|have|has|at|take|takes)\b|是|在|为|有|用|保留|到|吃|坐", lead)
    )


def _unit(tail: Pieces) -> bool:
    units = "秒天个分元号点月年层楼岁端周度毫"
    named = ("second", "minut", "day", "hour", "euro", "percent", "degree", "mg", "people", "member", "year")
    return bool(tail) and (tail[0] in units or tail[0].startswith(named))
