"""Names of things in texts, found without a model, in English and in Chinese.

In English, a name is a run of capitalised words that does not only begin a sentence. In Chinese, it is a run of two to
four characters that recurs with different neighbours, or that stands in quotation marks. Two names belong together if a
text says so: "Doubao (豆包)", "also called", "又叫".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

#: Texts in which a name must occur to be a thing.
MIN_TEXTS = 2
MIN_TEXTS_CHINESE = 3
MAX_NAME = 60

_WORD = r"[A-Z][\w'’.&-]*[\w]|[A-Z]{2,}"
_NAME = re.compile(
    rf"(?:{_WORD})(?: (?:{_WORD}|of|de|van|von|the))*(?<! of)(?<! de)(?<! van)(?<! von)(?<! the)"
)
_SENTENCE = re.compile(r"(?:^|[.!?:;•\n\"“(\[|>*-])\s*$")
_ENDS = re.compile(r" ?[.!?]")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
_QUOTED = re.compile(r"[《「『“]([^》」』”\n]{2,20})[》」』”]")
_CALLED = (
    re.compile(r"(?P<a>[^\s()（）,，。:：]{2,40}(?: [A-Z][\w-]*){0,2}) ?[(（](?P<b>[^()（）\n]{2,40})[)）]"),
    re.compile(
        r"(?P<a>(?!is\b)[\w-]{2,40}(?: [A-Z][\w-]*){0,2}),? (?:is )?also (?:called|known as) "
        r"[\"“]?(?P<b>[\w-]{2,40}(?: [A-Z][\w-]*){0,2})"
    ),
    # Names that the owner joins on the page are quoted.
    re.compile(r"[“「](?P<a>[^”」\n]{2,60})[”」] ?(?:is also called|又叫) ?[“「](?P<b>[^”」\n]{2,60})[”」]"),
    re.compile(r"(?P<a>[\w-]{2,20}?)，?(?:又叫|也叫|又名|英文名[是叫]?)[“「]?(?P<b>[\w -]{2,20})"),
)
#: Words that begin with a capital letter and name no thing.
_CAPITALISED = """
I I'm I've I'll The A An This That These Those He She It We You They My Your Our His Her Their Its And But Or
If When While What Which Who Why How Where Then There Here No Not Yes All Any Some Each Every In On At For
From To Of With Without After Before Since Until As By Is Are Was Were Be Do Does Did Has Have Had Can Could
May Might Must Should Will Would Let Also So Ask Use Uses Prefers Likes Works Lives Knows Keep Never Always
Only Nothing Today Tomorrow Yesterday Monday Tuesday Wednesday Thursday Friday Saturday Sunday January
February March April June July August September October November December TODO OK AM PM
"""
_COMMON = frozenset(_CAPITALISED.split())
#: Common Chinese words, and characters that begin or end no name.
_CHINESE_EDGES = frozenset(
    "的了是在我你他她它们和与就也都不没很把被对从到给让向跟着过吗呢吧啊这那哪个有要会能可以为而且但或如果因所只还再又每各去说带"
)
_CHINESE_WORDS = """
今天 明天 昨天 现在 时候 时间 已经 没有 需要 喜欢 知道 觉得 然后 还是 以及 一个 一些 什么 怎么 自己 大家 问题 东西
事情 工作 使用 进行 开始 结束 之后 之前 今年 明年 上午 下午 晚上 早上 星期 小时 分钟 百分 百分之
"""
_CHINESE_COMMON = frozenset(_CHINESE_WORDS.split())


def is_chinese(name: str) -> bool:
    """Return whether a name contains Chinese characters."""
    return _CHINESE.search(name) is not None


def pattern_of(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds the names: whole words, in any case; Chinese anywhere."""
    parts = [
        re.escape(name) if is_chinese(name) else rf"(?<!\w){re.escape(name)}(?!\w)"
        for name in sorted({" ".join(name.split()) for name in names if name.strip()}, key=len, reverse=True)
    ]
    return re.compile("|".join(parts) or r"(?!)", re.IGNORECASE)


def find_names(texts: Iterable[str]) -> Counter[str]:
    """Count the texts in which each name occurs. Names that occur rarely are left out."""
    english, begins, lower = Counter[str](), Counter[str](), Counter[str]()
    chinese = _Grams()
    quoted = Counter[str]()
    for text in texts:
        names = set(_english(text))
        english.update(name for name, is_first in names if not is_first)
        begins.update(name for name, is_first in names if is_first)
        lower.update(set(re.findall(r"\b[a-z][\w'-]+", text)))
        chinese.add(text)
        quoted.update({name.strip() for name in _QUOTED.findall(text)})
    # A word that begins sentences is a name if it is one elsewhere, or if it is never written small.
    for name, count in begins.items():
        if name in english or not lower[name.lower()]:
            english[name] += count
    found = Counter(
        {name: n for name, n in english.items() if n >= MIN_TEXTS and not lower[name.lower()] > n}
    )
    found.update(chinese.names())
    found.update({name: n for name, n in quoted.items() if n >= MIN_TEXTS and name not in found})
    return found


def aliases_in(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of names that texts use for one thing."""
    for text in texts:
        for pattern in _CALLED:
            for found in pattern.finditer(text):
                one, other = found["a"].strip(" “”\"'「」"), found["b"].strip(" “”\"'「」")
                if pattern is not _CALLED[0] or _is_other_script(one, other):
                    yield one, other


def _is_other_script(one: str, other: str) -> bool:
    """Return whether one name is Chinese and the other is not: a bracket often says something else."""
    return is_chinese(one) != is_chinese(other) and all(len(name.split()) <= 3 for name in (one, other))


def _english(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the names in a text, and whether each begins a sentence."""
    for found in _NAME.finditer(text):
        words, start = found[0].split(), found.start()
        is_first = _SENTENCE.search(text[max(0, start - 3) : start]) is not None
        while words and words[0] in _COMMON:
            words, is_first = words[1:], False
        name = " ".join(words).removesuffix("'s").removesuffix("’s").rstrip(".")
        is_sentence = is_first and _ENDS.match(text, found.end()) is not None  # "Noted."
        if 1 < len(name) <= MAX_NAME and name not in _COMMON and not is_sentence:
            yield name, is_first and len(words) == 1


def _is_free(left: set[str], right: set[str]) -> bool:
    """Return whether a run stands for itself. A name often begins or ends every sentence about it."""
    return max(len(left), len(right)) > 1 and all(
        len(side) > 1 or side & {"^", "$"} for side in (left, right)
    )


class _Grams:
    """Runs of Chinese characters, and what stands beside them."""

    def __init__(self) -> None:
        self._texts = Counter[str]()
        self._left: dict[str, set[str]] = defaultdict(set)
        self._right: dict[str, set[str]] = defaultdict(set)

    def add(self, text: str) -> None:
        """Read a text."""
        seen = set[str]()
        for run in _CHINESE.finditer(text):
            chars = f"^{run[0]}$"
            for size in (2, 3, 4):
                for start in range(1, len(chars) - size):
                    gram = chars[start : start + size]
                    if gram[0] in _CHINESE_EDGES or gram[-1] in _CHINESE_EDGES or gram in _CHINESE_COMMON:
                        continue
                    seen.add(gram)
                    self._left[gram].add(chars[start - 1])
                    self._right[gram].add(chars[start + size])
        self._texts.update(seen)

    def names(self) -> dict[str, int]:
        """Return the runs that recur between different neighbours, without those inside a longer one."""
        found = {
            gram: count
            for gram, count in self._texts.items()
            if count >= MIN_TEXTS_CHINESE and _is_free(self._left[gram], self._right[gram])
        }
        longer = {
            part
            for gram, count in found.items()
            for size in range(2, len(gram))
            for start in range(len(gram) - size + 1)
            if found.get(part := gram[start : start + size], 0) <= count
        }
        return {gram: count for gram, count in found.items() if gram not in longer}
