"""Relations between two statements: the same, a part, a refinement, a contradiction, or different.

A wrong merge hides a statement, while a duplicate only costs space. In doubt, statements are different. They are the
same only if their content words agree in order, or were moved in a way that keeps their roles, and if denials, numbers,
names and tenses agree. Similar meaning is never enough: words decide what may be merged, and the cosine decides what
must not. ``python -m lab.evals.merge`` measures this on labelled pairs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from memoriter.entries.statement import (
    AND,
    LIGHT_VERBS,
    NOT,
    PERSONS,
    Pieces,
    Statement,
    common_ends,
    find,
    is_chinese,
    only_numbers,
    statement,
    stem_set,
    word_set,
)
from memoriter.entries.values import replacement
from memoriter.sentences import sentence

Kind = Literal["same", "part", "refinement", "contradiction", "different"]

#: Minimum cosine of a refinement, and of a statement that denies another.
MIN_REFINEMENT, MIN_DENIAL = 0.6, 0.5
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
    cosine = cosine if before.short == after.short else None
    found = (
        _rearrangement(before, after)
        or _rejection(before, after)
        or _extension(before, after, cosine)
        or _denial(before, after, cosine)
        or _replacement(old, new, cosine)
        or Relation("different", "no sign of being about the same")
    )
    if before.planned != after.planned and (found.kind != "contradiction" or after.planned):
        return Relation("different", "one is a fact, the other a wish or a plan")
    return found


def _replacement(old: str, new: str, cosine: float | None) -> Relation | None:
    """Return a contradiction if the new statement gives another value for something that has only one."""
    why = replacement(old, new, cosine)
    return Relation("contradiction", why) if why else None


def contradicts(old: str, new: str) -> bool:
    """Return whether a new statement contradicts an old one, by words alone."""
    return relation(old, new, None).kind == "contradiction"


def _near(cosine: float | None, least: float) -> bool:
    return cosine is None or cosine >= least


# ---- the same words -----------------------------------------------------------------------------------------------

#: Words between two parts that cannot be exchanged: what they say is not true both ways.
_ORDERING = stem_set(
    """over than before after instead rather unless until report manages supervises lead head outrank mentor teach
    比 胜 再 后 而 向 领 管 带 教"""
) | {NOT}
#: The same before both parts, with a preposition between them: "from A to B", "prefer A to B", 从 A 到 B.
_LEADING = stem_set("from prefer 从 比 宁")
#: The same after both parts: A is B's manager, 在 A 之前.
_TRAILING = re.compile(
    r"'s (?:manag|boss|supervisor|lead|mother|father|parent|son|daughter|teach)"
    r"|.{0,4}(?:[前后]|经 理|上 司|主 管|领 导|老 板|组 长|爸 爸|妈 妈|父 亲|母 亲|儿 子|女 儿|老 师|汇 报)"
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
    exchange = _exchanged(before.sequence, after.sequence)
    if exchange and exchange.is_conjunction and _agree(before, after):
        return Relation("same", sentence("history.same_words"))
    if exchange and exchange.is_ordered:
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


@dataclass(frozen=True, slots=True)
class Exchange:
    """The words before, between and after two parts that changed places."""

    head: Pieces
    middle: Pieces
    tail: Pieces

    @property
    def is_conjunction(self) -> bool:
        """Whether the parts are equals: "German and French", 德语和法语 (where 语 counts as common)."""
        shared = self.middle[:-1]
        return self.middle[-1:] == (AND,) and self.tail[: len(shared)] == shared

    @property
    def is_ordered(self) -> bool:
        """Whether the parts have different roles, so that it cannot be true both ways."""
        if AND in self.middle:
            return False
        leads = bool(_LEADING & set(self.head[-2:])) and bool(self.middle)
        return leads or bool(_ORDERING & set(self.middle)) or bool(_TRAILING.match(" ".join(self.tail)))


def _exchanged(old: Pieces, new: Pieces) -> Exchange | None:
    """Return the exchange of two parts; None if something else changed."""
    head, tail = common_ends(old, new)
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    size = len(left)
    for first in range(1, size):
        for last in range(1, size - first + 1):
            if (
                left[:first] == right[size - first :]
                and left[size - last :] == right[:last]
                and left[first : size - last] == right[last : size - first]
            ):
                return Exchange(old[:head], left[first : size - last], old[len(old) - tail :])
    return None


# ---- choices between two things -----------------------------------------------------------------------------------

#: Words between what is chosen and what is rejected, as they are in a sequence.
_REJECTORS = (("over",), ("instead",), ("rather", "than"), (NOT,), ("而", NOT), ("胜", "过"))


def _rejection(before: Statement, after: Statement) -> Relation | None:
    """Return a contradiction if one statement rejects what the other chooses: tabs, and spaces over tabs."""
    for choice, other in ((before.sequence, after.sequence), (after.sequence, before.sequence)):
        for rejector in _REJECTORS:
            if rejector[0] not in choice:
                continue
            end = find(choice, rejector) + len(rejector)
            rejected = choice[end:]
            common = len(other) - len(rejected)
            chosen = range(1, end - len(rejector)) if end >= len(rejector) and rejected else ()
            if common in chosen and other == choice[:common] + rejected:
                return Relation("contradiction", sentence("history.comparison"))
    return None


# ---- more or fewer words ------------------------------------------------------------------------------------------

#: Words after which a statement continues without changing what came before.
_CONTINUING = _MOVABLE | word_set(
    """, ; and or but because so who which that where while to from over than instead rather then of is are was
    very along about around between behind beside next including mostly except"""
)
_CONTINUING_ZH = frozenset(("进行", "来做", "来写", "尤其", "特别", "主要", "而且", "并且"))
#: What a person does with a thing that has a foreign name, and not a part of the name: "Vim 编辑配置", not "Vim 插件"
#: or "Vim 编辑器". Verbs are told by the character with which they begin.
_DOING_ZH = re.compile(
    "^(?:来|[写编撰画绘搭构部处记录训跑做实制开管分设统打整建爬背排修剪监发翻查测备传学听追报订导投聊压合渲调校抓刷跟生检演约叫读"
    "扫收计模拍存搜找看算装配改删清洗唱弹转换评审批预估组拆拼切剖研解识标提取采筛过格推拷上运执译加缩验练讲说谈交沟协联寄送付支"
    "炒填核锻减播烤煮炖蒸炸泡种养喂遛阅浏复默抄考答辅控驱仿比选挑]"
    "(?:$|[^的板鞋](?![者员器师机仪笔板版包系会]|工具|平台|环境|引擎)))[^的]*$"
)
_ADVERBIAL_ZH = re.compile(
    "^(?:每|在|沿|上午|下午|中午|早上|晚上|凌晨|傍晚|周|星期|几乎|经常|常|通常|一般|平时|大多|主要|[0-9])"
)
#: Pauses and words before a clause of its own.
_CLAUSES = word_set(", ; and but because so since as 因 而 并")
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
    head, tail = common_ends(short.sequence, long.sequence)
    if short.denials and (head < size or long.pieces[long.places[size - 1] + 1] not in _CLAUSES):
        return False  # "I don't drink coffee after noon" says less, not more, than "I don't drink coffee"
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
        return True  # Python 3
    if is_chinese((long.pieces[place],)) or is_chinese((following,)):
        phrase = "".join(long.pieces[place + 1 :])
        if following in (",", ";") or (following == "再" and size > 1) or phrase[:2] in _CONTINUING_ZH:
            return True
        return long.pieces[place].isascii() and bool(_DOING_ZH.match(phrase))
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


def _denial(before: Statement, after: Statement, cosine: float | None) -> Relation | None:
    """Return a contradiction if one statement denies all or a part of what the other says.

    To deny the general ("I don't drink coffee") denies the special ("I drink coffee every morning"), not vice versa.
    """
    if before.denials == after.denials:
        return None
    denying, affirming = (before, after) if before.denials > after.denials else (after, before)
    denied = tuple(part for part, _ in _core(denying))
    general = denied and denying.denials - affirming.denials == 1 and _is_special(affirming, denied)
    if general and _near(cosine, MIN_DENIAL):
        return Relation("contradiction", sentence("history.negation"))
    return None


def _core(stated: Statement) -> list[tuple[str, int]]:
    """Return the parts of a sequence that a denial must repeat, with their places."""
    parts = zip(stated.sequence, stated.places, strict=True)
    return [(part, place) for part, place in parts if part != NOT and part not in LIGHT_VERBS]


def _is_special(stated: Statement, general: Pieces) -> bool:
    """Return whether a statement says the general and adds only phrases: "I drink coffee", and "every morning"."""
    core = _core(stated)
    parts = tuple(part for part, _ in core)
    if parts == general:
        return True
    at = first = 0
    while at < len(general) and len(general) > 1:
        run = general[at : at + (2 if is_chinese(general[at : at + 1]) else 1)]
        found = first + find(parts[first:], run)
        if found < first or (is_chinese(run) and len(run) < 2):
            return False
        if found > first and not _is_phrase(stated, core[first][1], core[found - 1][1]):
            return False
        first, at = found + len(run), at + len(run)
        while at < len(general) and parts[first : first + 1] == general[at : at + 1]:
            first, at = first + 1, at + 1
    return len(general) > 1 and (first == len(parts) or _is_phrase(stated, core[first][1], core[-1][1]))


def _is_phrase(stated: Statement, first: int, last: int) -> bool:
    """Return whether some pieces are an adverbial, and not a part of a name such as "olive oil"."""
    if is_chinese(stated.pieces[first : last + 1]):
        before = stated.pieces[first - 1 : first]
        return before in ((",",), (";",)) or bool(
            _ADVERBIAL_ZH.match("".join(stated.pieces[first : last + 1]))
        )
    start = first
    while start > 0 and stated.pieces[start - 1] in _DETERMINERS:
        start -= 1
    return stated.pieces[first] in _MOVABLE or (start > 0 and stated.pieces[start - 1] in _CONTINUING)


_DETERMINERS = word_set("the a an my our this that")
