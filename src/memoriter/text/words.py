"""Convert one word to tokens: the stem of a plain word, or an identifier and its parts.

``ERR_CONN_42`` can be found as a whole, as ``err`` and as ``conn``. A path can be found by its folders and its file
name, and ``camelCase`` by its parts. Stemming is deliberately light: it removes inflections and never derivations, so
"creation" and "create" stay different. A note that matches by another meaning costs more than one that is missed.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator

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


#: Characters of a token.
MAX_TOKEN = 64
#: A longer word is data and not a name. It is not split.
_MAX_SPLIT = 256
#: A part with more changes of case and digits is a hash or a key.
_MAX_HUMPS = 6

_CLITIC = re.compile(r"['’](?:s|m|re|ve|ll|d)$", re.IGNORECASE)
_APOSTROPHE_OR_COMMA = re.compile("['’,]")
_JOINT = re.compile(r"[-_./:@#+'’]")
_OUTER_JOINT = re.compile(r"[/:@#]+_*")  # between the pieces of an address or a path
_INNER_JOINT = re.compile(r"[-_.+'’]+")  # inside such a piece
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_VERSION = re.compile(r"v\d+(?:\.\d+)+")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[tT]\d\d:\d\d")
_ACCENTS = re.compile("[\u0300-\u036f]")


def word_tokens(word: str) -> tuple[str, ...]:
    """Return the distinct tokens of one word. A stop word has none.

    >>> word_tokens("backups"), word_tokens("src/myTools.py")
    (('backup',), ('src/mytools.py', 'src', 'mytools.py', 'mytools', 'mytool', 'tool', 'py'))
    """
    if word.isalpha() and word.isascii() and word[1:].islower() and len(word) <= MAX_TOKEN:
        plain = word.lower()  # a shortcut: most words have neither parts nor accents
        return () if plain in ENGLISH else (stem(plain),)
    return _other_tokens(word)


def _other_tokens(word: str) -> tuple[str, ...]:
    """Return the tokens of a word that has parts, accents, digits, capitals or an apostrophe."""
    if word[-3:].lower() in ("n't", "n’t"):
        return ()  # don't, won't, isn't: always an auxiliary
    word = _CLITIC.sub("", word).replace(",", "")
    if not _JOINT.search(word):
        return tuple(dict.fromkeys(_simple(word)))
    if len(word) > _MAX_SPLIT:
        return (whole_word(word),)
    if _is_stop(word.replace(".", "")) or all(_is_stop(part) for part in _JOINT.split(word)):
        return ()  # "e.g", "and/or"
    if match := _TIMESTAMP.match(word):
        return (whole_word(word), match[1])
    return tuple(dict.fromkeys((whole_word(word), *_parts(word))))


def is_identifier(token: str) -> bool:
    """Return whether a token names one thing instead of describing it.

    >>> [token for token in ("ops-1077", "8443", "src/text", "backup", "@2026") if is_identifier(token)]
    ['ops-1077', '8443', 'src/text']
    """
    return (
        len(token) > 2
        and token[0] != "@"
        and token.isascii()
        and (any(map(str.isdigit, token)) or _JOINT.search(token) is not None)
    )


def whole_word(word: str) -> str:
    """Return a word as one token: folded, without apostrophes, and limited in length."""
    return _limit_length(_fold(_APOSTROPHE_OR_COMMA.sub("", word)))


def _simple(word: str) -> Iterator[str]:
    """Yield the tokens of a word or part without separators: ``backups``, ``HTTPServer2``, ``sha256``, ``café``."""
    folded = _limit_length(_fold(word))
    if not folded.isascii() or not word.isalnum():
        yield folded
        return
    if _is_stop(word):
        return
    humps = _HUMP.findall(word) if word.isascii() and len(word) <= MAX_TOKEN else []
    if len(humps) > 1 or not folded.isalpha():
        yield folded  # an identifier as it is; its stem below matches it as a plain word
    if folded.isalpha():
        yield stem(folded)
    if 1 < len(humps) <= _MAX_HUMPS:
        yield from (_stem_inflected(hump) for hump in humps if len(hump) > 1 and not _is_stop(hump))


def _parts(word: str) -> Iterator[str]:
    """Yield the pieces of an identifier and their parts, without those that are too short."""
    if _VERSION.match(word):
        yield _fold(word[1:])
    shortest = 3 if _JOINT.sub("", word).isdigit() else 2  # of a date or address, only long parts
    for piece in _OUTER_JOINT.split(word):
        parts = [part for part in _INNER_JOINT.split(piece) if len(part) >= shortest]
        if len(piece) < len(word) and _INNER_JOINT.search(piece):
            yield whole_word(piece)
        for part in parts:
            yield from _simple(part)


def _stem_inflected(word: str) -> str:
    folded = _fold(word)
    return stem(folded) if folded.isalpha() else folded


def _is_stop(word: str) -> bool:
    return word.lower() in ENGLISH and not _is_acronym(word)


def _is_acronym(word: str) -> bool:
    """Return whether a stop word is written in capitals, such as IT, US or WHO, and is therefore a name."""
    return len(word) > 1 and word.isupper()


def _fold(word: str) -> str:
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", word.casefold())
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", folded))
    return bare if bare.isascii() else folded  # "cafe" matches "café", but "й" is a separate letter


def _limit_length(token: str) -> str:
    """Return the token, or for a long one its start and a digest."""
    if len(token) <= MAX_TOKEN:
        return token
    digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{token[: MAX_TOKEN - 17]}#{digest[:16]}"


# ---- stems -------------------------------------------------------------------------------------------------------

_IRREGULAR = {
    "used": "use",
    "uses": "use",
    "using": "use",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "buses": "bus",
    "children": "child",
    "men": "man",
    "women": "woman",
}
# Words that only look inflected. Stemming would match them with unrelated words ("evening" with "even").
_NOT_INFLECTED = """
    always anomaly evening family italy lens morning news perhaps physics politics sales series species united
    wedding wednesday
"""
_UNCHANGED = frozenset(_NOT_INFLECTED.split())

_VOWEL = re.compile(r"[aeiouy]")
_VOWEL_THEN_CONSONANT = re.compile(r"[aeiouy]+[^aeiouy]+")
# Short stems that lost an e, such as "mak", "writ", "hop". "fix", "show" and "play" never had one.
_LOST_E = re.compile(r"[^aeiouy]*[aeiouy][^aeiouywx]")


def stem(word: str) -> str:
    """Return the stem of a lower-case English word, the same for all its inflections.

    >>> [stem(word) for word in ("backups", "running", "making", "studied", "quickly", "news")]
    ['backup', 'run', 'make', 'study', 'quick', 'news']
    """
    if len(word) <= 3 or word in _UNCHANGED:
        return word
    if word[-1] not in "sdgye":  # no ending below
        return _IRREGULAR.get(word, word)
    return _IRREGULAR.get(word) or _without_final_e(_without_adverb(_without_tense(_without_plural(word))))


def _without_plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_tense(word: str) -> str:
    if word.endswith("ied"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and _VOWEL.search(base) and not word.endswith("eed"):
            return _restore_verb(base)
    return word


def _restore_verb(base: str) -> str:
    """Restore the verb before "-ing" or "-ed": "runn" becomes "run", "mak" becomes "make"."""
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz":
        return base[:-1]
    return base + "e" if _LOST_E.fullmatch(base) else base


def _without_adverb(word: str) -> str:
    if len(word) < 6 or not word.endswith("ly"):
        return word
    if word.endswith("ily"):
        return word[:-3] + "y"
    return word if word[-3] in "aeiofpb" else word[:-2]  # "reply", "assembly", "butterfly"


def _without_final_e(word: str) -> str:
    """Remove the final e that "-ing" removes, so that "schedule" and "scheduling" match. Short verbs keep it."""
    base = word[:-1]
    if len(word) < 5 or word[-1] != "e" or _LOST_E.fullmatch(base) or not _VOWEL_THEN_CONSONANT.search(base):
        return word
    return base


_PAUSES = re.compile(
    r"""[.,;:!?…。，；：！？、"'“”‘’「」『』()（）]+(?=\s|$|[\u3400-\u9fff])|(?<![^\s])["'“‘「(（]+"""
)
_SPACES = re.compile(r"\s+")
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_BETWEEN_CJK = re.compile(r"(?<=[\u3000-\u9fff]) | (?=[\u3000-\u9fff])")


def normal_form(text: str) -> str:
    """Return the text without differences in case, width, spacing, unseen characters and punctuation between sentences.

    Symbols inside words stay: C++ is not C.
    """
    folded = unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold()
    spaced = _SPACES.sub(" ", _PAUSES.sub(" ", folded))
    return _BETWEEN_CJK.sub("", spaced).strip()


# ---- sentences ---------------------------------------------------------------------------------------------------

#: Words whose full stop ends no sentence.
_ABBREVIATIONS = "dr mr mrs ms prof st mt jr sr rev gen lt col capt sgt hon vs cf e.g i.e"
#: Words whose full stop ends a sentence, unless a small letter follows.
_OFTEN_LAST = "a.m p.m etc inc ltd co corp"


def unless_abbreviated(space: str = "") -> str:
    """Return a condition for a pattern: the full stop before this place, and before ``space``, ends a sentence."""
    # Initials, and abbreviations in capitals such as U.S.
    initial = rf"(?<!(?<![A-Za-z])[A-HJ-Z]\.{space})"
    never = (rf"(?<!(?<![A-Za-z])(?i:{re.escape(word)})\.{space})" for word in _ABBREVIATIONS.split())
    rarely = (rf"(?!(?<=(?i:{re.escape(word)})\.{space})\s*[a-z])" for word in _OFTEN_LAST.split())
    return "".join((initial, *never, *rarely, rf"(?!(?<=(?i:no)\.{space})\s*\d)"))


#: "9. Mai" at the end of a sentence: a number with a full stop and one word.
_DAY = r"(?!(?<=\d\.)\s[^\W\d]{3,12}[.!]?\s*(?:\n|\Z))"
_SENTENCE_ENDS = re.compile(rf"(?<=[.!?…؟۔।]){unless_abbreviated()}{_DAY}\s+|(?<=[。！？])(?![。！？])|\n")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with its punctuation.

    >>> split_sentences("My dentist is Dr. Weiss. I like tea!")
    ['My dentist is Dr. Weiss.', 'I like tea!']
    """
    return [found for piece in _SENTENCE_ENDS.split(text) if (found := piece.strip())]
