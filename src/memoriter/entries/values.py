"""Values that replace each other: another number, name or place where only one is possible.

A statement that gives a new value contradicts the old one only if the words before the value take a single value ("my
manager is", 预算是, "runs on port"), or if the statement says that something changed ("moved to", 改用).
"""

from __future__ import annotations

import re

from memoriter.entries.statement import (
    LIGHT_VERBS,
    Pieces,
    Statement,
    common_ends,
    is_chinese,
    only_days,
    only_numbers,
    plain_pieces,
    statement,
    stem_set,
    word_set,
)
from memoriter.sentences import sentence

#: Minimum cosine of a statement with another number, and of one with another value.
MIN_NUMBER, MIN_VALUE = 0.6, 0.5


def replacement(old: str, new: str, cosine: float | None) -> str | None:
    """Return why a statement replaces another by a new value; None if it does not."""
    before, after = statement(old), statement(new)
    if before.past and after.past and not after.changes:
        return None  # what happened once may have happened another time too
    return _slot(before, after) or _ending(before, after, cosine) or _value(old, new, after.changes, cosine)


def _near(cosine: float | None, least: float) -> bool:
    return cosine is None or cosine >= least


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


def _slot(before: Statement, after: Statement) -> str | None:
    """Return a contradiction if both statements give a value for something that has only one."""
    if before.denials or after.denials or before.past:
        return None
    for name, pattern in _SLOTS.items():
        if pattern.search(before.form) and pattern.search(after.form):
            lost, gained = before.words - after.words, after.words - before.words
            if lost and gained:
                return sentence("history.slot", name=name)
    return None


_FROM = re.compile(
    r"\b(?:switched|moved|migrated|changed)\b.{0,60}?\bfrom ([^,.;]{1,40}?) (?:to|over to)\b"
    r"|\binstead of ([^,.;]{1,40})"
    r"|\b(?:left|quit|stopped using|replaced) ([^,.;]{1,40}?)(?= and\b| with\b| by\b|$)"
    r"|[从從]([^，。]{1,16}?)(?:换到|換到|换成|換成|换|換|迁移到|遷移到|迁到|改到|改用|改成|跳槽到|转到|轉到|搬到)"
    r"|(?:取代|代替)([^，。]{1,16})"
)
#: Verbs that only say that something is in use.
_IN_USE = LIGHT_VERBS | stem_set(
    """work live run drive write written build built host keep sit bank as editor
    工 作 写 住 开 做 班 代 码 字 项 目"""
)


def _ending(before: Statement, after: Statement, cosine: float | None) -> str | None:
    """Return a contradiction if the new statement names what it ends, and the old one says that it is in use."""
    found = _FROM.search(after.form)
    if not found or before.denials:
        return None
    named = statement(next(group for group in found.groups() if group)).words
    about = before.words - named - _IN_USE
    if named and named <= before.words and about <= after.words and _near(cosine, MIN_VALUE):
        return sentence("history.ended")
    return None


_SINGLE = re.compile(
    r"(?:^|\s)(?:(?:is|are) (?:in|on|at|named)|runs? (?:on|in)|expires? in|ends? in|kept for|leaves? at"
    r"|meets? (?:every|on)|opens? at|due (?:on|at)|starts? at|costs?|lives? in|set to|parked (?:in|on)"
    r"|takes? place in)(?: the| my| our| dr| mr| mrs| ms)?$"
    r"|(?:叫|为|在|住在|叫做|到期|位于|等于|停在|设在|约在)[小老阿]?$"
)
#: A quality may have many values ("Anna is tall"), an attribute only one ("my manager is", 预算是).
_ATTRIBUTE = re.compile(
    r"^(?:my|our|your|his|her|their|the|[\w-]+ 's)\b.*\b(?:is|are)(?: dr| mr| mrs| ms| prof)?$|(?:"
    r"经理|上司|主管|老板|房东|校长|医生?|老师|会计|预算|截止|日期|生日|邮箱|电话|号码?|地址|颜色|语言|密码|端口|利率|房租|超时|主题"
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


#: Verbs of a change. What stands before them is what changes.
_MOVED = re.compile(
    r"\b(?:mov|switch|migrat|chang|relocat|join|replac|upgrad)\w*\b|[改换換搬迁遷转轉跳][了到成去用移槽]?"
)


def _value(old: str, new: str, changes: bool, cosine: float | None) -> str | None:
    """Return a contradiction if only one value differs, and the words before it take only one value."""
    before, after = plain_pieces(old), plain_pieces(new)
    head_size, tail_size = common_ends(before, after)
    head, tail = before[:head_size], before[len(before) - tail_size :]
    was, now = before[head_size : len(before) - tail_size], after[head_size : len(after) - tail_size]
    if not head or not _are_values(was, now) or "than" in tail:
        return None
    lead = ("" if is_chinese(head) else " ").join(head)
    if only_numbers(was) and only_numbers(now):
        return _number(lead, head, was, tail, changes) if _near(cosine, MIN_NUMBER) else None
    single = _SINGLE.search(lead) or _is_attribute(lead, now, new)
    if single and len(tail) <= 3 and _near(cosine, MIN_VALUE):
        return sentence("history.value")
    # "The billing service moved to Go" and "The search service moved to Go": the difference is what moved.
    other_thing = _MOVED.search(new.casefold().partition(now[-1])[2])
    if changes and not other_thing and len(tail) + len(head) >= 2 and _near(cosine, MIN_NUMBER):
        return sentence("history.change")
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


def _number(lead: str, head: Pieces, was: Pieces, tail: Pieces, changes: bool) -> str | None:
    """Return whether a number differs in the same place and is not part of a name, as in "invoice 1041"."""
    single = bool(_SINGLE.search(lead) or re.search(r"\b(?:is|are)$|是$", lead))
    if not (single or changes) and _EVENT.search(lead):
        return None
    if only_days(was):
        measured = single or changes
    elif any(piece.isascii() and piece[0].isdigit() for piece in was):
        measured = single or _says(lead) or _unit(tail)
    else:
        measured = single or bool(tail) or _says(lead)
    if measured and (len(head) > 1 or changes):
        return sentence("history.number")
    return None


#: "I broke my arm in …": it may have happened in other years too.
_EVENT = re.compile(r"^(?:i|we)\b.* (?:in|on)$")


def _says(lead: str) -> bool:
    return bool(
        re.search(r"\b(?:is|are|was|on|for|in|have|has|at|take|takes)\b|是|在|为|有|用|保留|到|吃|坐", lead)
    )


def _unit(tail: Pieces) -> bool:
    units = "秒天个分元号点月年层楼岁端周度毫"
    named = ("second", "minut", "day", "hour", "euro", "percent", "degree", "mg", "people", "member", "year")
    return bool(tail) and (tail[0] in units or tail[0].startswith(named))
