"""English and Chinese stop words.

They are left out of the index and of queries. They make up half of a text, and ranking them makes a keyword search
slow.
"""

from __future__ import annotations

import re

_ENGLISH_WORDS = """
    a about after again against all also am an and any are as at be because been before being between both
    but by can could did do does doing done down during each few for from further get gets getting got had
    has have having he her here hers herself him himself his how however i if in into is it its itself
    just let lets like me might more most much must my myself no nor not now of off on once only or other
    our ours ourselves out over own please quite rather really same shall she should since so some still
    such tell than that the their theirs them themselves then there these they this those though through
    to too under until up upon us very via was we were what whatever when whenever where whether which
    while who whom whose why will with within without would yes yet you your yours yourself yourselves may
    etc eg ie th nd rd st
"""
ENGLISH = frozenset(_ENGLISH_WORDS.split())

# Question words and function words. They are removed wherever they occur in Chinese text.
_CHINESE_WORDS = """
    什么时候 为什么 怎么样 怎么办 有没有 是不是 能不能 可不可以 有哪些 是什么 告诉我 一下子
    什么 怎么 怎样 如何 为何 哪些 哪个 哪里 哪儿 哪天 哪位 哪种 多少 几个 是否 请问 可否 能否
    我们 你们 他们 她们 它们 咱们 自己 大家 这个 那个 这些 那些 这里 那里 这样 那样 这么 那么 这种 那种
    但是 因为 所以 如果 虽然 然后 而且 并且 或者 还是 还有 以及 不过 于是 由于 因此 其中 之后 之前 关于
    对于 通过
    没有 可以 可能 应该 已经 正在 曾经 一个 一些 一下 一样 非常 比较 不是 就是 都是 也是 还要 只是
    什麼 怎麼 怎麼樣 為什麼 哪裡 我們 你們 他們 這個 那個 這些 這裡 這樣 這麼 沒有 已經 還是 還有 應該 關於
"""

# Single characters that are function words, except inside the listed words ("目的", "了解").
_CHINESE_CHARACTERS = {
    "的": ("目_ 标_", "_士 _确 _哥"),
    "了": ("为_ 除_", "_解 _结"),
    "吗": ("", "_啡"),
    "呢": ("", "_子 _喃"),
    "吧": ("酒_ 网_ 贴_", "_台"),
    "啊呀嘛嗎哦喔呗咯": ("", ""),
    "我": ("自_", "_国"),
    "你您她它": ("", ""),
    "他": ("其_ 吉_", "_人 _乡"),
    "这這": ("", ""),
    "那": ("刹_", ""),
    "哪谁誰": ("", "_吒"),
    "很": ("", ""),
    "也": ("", "_许 _门"),
    "都": ("首_ 成_ 京_ 古_ 旧_ 新_", "_市 _城 _督"),
    "就": ("成_ 造_ 迁_", "_业 _医 _诊 _职 _读 _餐 _近"),
    "与與": ("参_ 参_ 赋_", "_会"),
    "及": ("普_ 涉_ 触_ 埃_ 顾_", "_格 _时"),
    "或": ("", "_许"),
    "被": ("棉_", "_子 _告 _动"),
    "把": ("", "_握 _手 _关"),
    "给給": ("供_ 补_", "_予 _力 _药"),
    "是": ("", "_非"),
    "在": ("存_ 现_ 实_ 所_ 内_ 潜_", "_线 _职 _家 _乎 _意"),
    "和": ("平_ 温_ 缓_ 柔_ 暖_ 饱_ 总_ 共_", "_平 _谐 _解 _睦 _服 _田"),
}


def _alternatives() -> dict[str, list[str]]:
    """Group the patterns of stop words by their first character, longest first."""
    rest: dict[str, list[str]] = {}
    for word in sorted(_CHINESE_WORDS.split(), key=len, reverse=True):
        rest.setdefault(word[0], []).append(word[1:])
    for characters, (before, after) in _CHINESE_CHARACTERS.items():
        behind = "".join(word.rstrip("_") for word in before.split())
        ahead = "".join(word.lstrip("_") for word in after.split())
        for character in characters:
            unless = (f"(?<![{behind}]{character})" if behind else "") + (f"(?![{ahead}])" if ahead else "")
            rest.setdefault(character, []).append(unless)
    return rest


# Each alternative starts with a different character, so the regex engine can skip all other text.
CHINESE = re.compile("|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in _alternatives().items()))
"""Matches stop words inside Chinese text."""
