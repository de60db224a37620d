"""The features of one statement that `relation` compares, in English and Chinese (simplified and traditional).

A statement is read as a sequence. Content words, words that assign roles ("over", "to", "before", 比, 向) and denials
stay in it, in order, because their order carries the meaning. Words that rarely change the meaning ("in", "my",
"usually") are collected beside it, so that two statements can be checked for a conflict. Articles, politeness and
auxiliary verbs are dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from memoriter.search.changes import announces_change
from memoriter.text.tokens import fold_variants
from memoriter.text.words import normal_form, stem

Pieces = tuple[str, ...]

#: A denial in a sequence.
NOT = "¬"
#: A conjunction between equals in a sequence: both sides may be exchanged.
AND = "&"


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


def stem_set(words: str) -> frozenset[str]:
    """Return the words of a text as they are in a sequence."""
    return frozenset(stem(word) for word in words.split())


#: Words without meaning of their own.
_EMPTY = word_set(
    """the a an this that these those it its is are am be been being do does did have has was were had so just
    please remember note really very much also too there here own anymore already then named"""
)
_EMPTY_ZH = frozenset("的了是在就也很请把吧呢啊哦呀嘛么这那个得地着之所做叫都")

#: Words that may be left out but not exchanged: prepositions, persons, frequencies. Each maps to what it stands for.
_MINOR = {
    word: group.split()[0]
    for group in """
    I i me my mine 我 本人
    WE we us our ours 我们 咱们 咱
    YOU you your yours 你 您 你们
    HE he him his 他 他们
    SHE she her hers 她 她们
    THEY they them their
    IN in into
    ON on
    AT at
    FOR for
    WITH with
    AS as
    OF of
    WILL will would
    ALL all
    SOME some any
    ALWAYS always 总是 一直 始终 永远
    USUALLY usually 一般 通常 平时
    OFTEN often 经常 常常
    SOMETIMES sometimes 有时
    """.strip().splitlines()
    for word in group.split()[1:]
}
#: Pronouns.
PERSONS = frozenset(
    word for word, group in _MINOR.items() if group in ("I", "WE", "YOU", "HE", "SHE", "THEY")
)
_MINOR_ZH = re.compile(
    "|".join(sorted((word for word in _MINOR if not word.isascii()), key=len, reverse=True))
)

_CONTRACTIONS = (
    (re.compile(r"\b(it|he|she|that|there|here|what|who|let)'s\b"), r"\1 is"),
    (re.compile(r"\b(?:can't|cannot|can not)\b"), "not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"'m\b"), " am"),
    (re.compile(r"'re\b"), " are"),
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"'d\b"), " would"),
    (re.compile(r"(?:'s name is|\bname is| (?:is|are|am) (?:called|named))\b"), " is named"),
    (re.compile(r"'s?(?=\s|$)"), " 's"),
    (re.compile(r"\ba (?:lot|bit|little)\b(?! of)"), "very"),
    (re.compile(r"\b(prefer|like|love)s? (?:using|to use)\b"), r"\1"),
    (re.compile(r"^(?:用户)?(?=偏好|喜欢)"), "我"),
    (re.compile(r"(?:偏好|喜欢)(?:使用|用)?"), "偏好"),
    (re.compile(r"(?<![编撰])写([前后]端)(?!\w)"), r"进行\1开发"),
    (re.compile(r"favourite"), "favorite"),
    (re.compile(r"colour"), "color"),
    (re.compile(r"(?:名字|姓名)(?:叫|是)"), "叫"),
    (re.compile(r"[之以]前"), "前"),
    (re.compile(r"[之以]后"), "后"),
    (re.compile(r"(?<=[一二三四五六七八九十两几\d])只"), "个"),
    (re.compile(r"^(?:请|帮我)?(?:记住|记得|记一下)[,:\s]*"), ""),
)

_SHORT = {"ts": "typescript", "js": "javascript", "py": "python", "k8s": "kubernetes"}

#: Words that say that something changed. They are not part of what is stated.
_CHANGE_WORDS = re.compile(
    r"\b(?:now|these days|as of today|from now on|any ?more)\b|现在|目前|已经|不再是?(?=了)"
)
_CHANGE_PHRASES = re.compile(
    r"\b(?:now|moved|move|switched|switch|changed|change|migrated|migrate|replaced|days)\b"
    r"|改用|改成|改为|改到|换成|换到|换了|搬到了?|搬去|迁到了?|迁移到|跳槽到|转到|不再|现在|目前|已经"
)

_DENIALS = re.compile(
    r"\b(?:decided (?:against|not to)|not going to|no longer|gave up(?: on)?"
    r"|given up(?: on)?|got rid of|ruled out|dropped|abandoned|stopped|quit|never|not|no more)\b"
    r"|决定不再?要?|不再|不会再|从来?不|不要再?|不能|不可以|不会|不用(?=[^\u4e00-\u9fff]|再)|没有|停止了?|放弃了?|取消了?|弃用了?|戒掉?了?(?=[烟酒糖])"
    r"|不(?![过错同断仅但管少久锈动])|没|(?<![特类区个级性识])别(?![人墅处名的])|勿"
)

_PAST = re.compile(
    r"\b(?:was|were|used to|formerly|previously|(?:i|we)(?: \w+)? \w+ed)\b"
    r"|(?<!is )(?<!are )(?<!be )\b(?:ran|met|went|saw|bought|got|came|took|gave|wrote|ate|drank|sang|swam|won|lost"
    r"|built|began|flew|drove|fell|felt|found|made|said|told|spoke|taught|sent|had|broke|kept|knew|threw|grew|rode|slept"
    r"|stood|thought|woke|wore|paid|brought|caught|chose|did|drew|fought|forgot|held|sold|spent|led|lent|moved)\b"
    r"|曾经|过去|从前|(?<=[\u4e00-\u9fff])过(?![敏期程滤去的])"
)

_PIECE = re.compile(r"[a-z0-9][a-z0-9_.@+#:/-]*[a-z0-9+#]|[a-z0-9]|'s|[\u3400-\u9fff]|[^\W_]+|[,;¬&、]")


@dataclass(frozen=True, slots=True)
class Statement:
    """The features of one statement."""

    #: Normalised text.
    form: str
    #: Every word or Chinese character, in order, with commas.
    pieces: tuple[str, ...]
    #: Content words, roles, conjunctions and denials, in order.
    sequence: tuple[str, ...]
    #: The place of each part of the sequence in the pieces.
    places: tuple[int, ...]
    #: Content words.
    words: frozenset[str]
    #: Words that may be missing in another statement but must not be exchanged.
    minor: frozenset[str]
    denials: int
    changes: bool
    past: bool
    #: A wish or a plan.
    planned: bool
    #: Whether a name is abbreviated, so that its vector is another one.
    short: bool


@lru_cache(maxsize=4096)
def statement(text: str) -> Statement:
    """Return the features of a text."""
    spelled = _spell_out(text)
    told = _CHANGE_WORDS.sub(" ", _DENIALS.sub(f" {NOT} ", spelled))
    pieces = tuple(_pieces(told))
    places, sequence, minor = [], [], set()
    for place, piece in enumerate(pieces):
        if piece in _MINOR:
            minor.add(_MINOR[piece])
        word = _content(_SHORT.get(piece, piece))
        if word:
            places.append(place)
            sequence.append(word)
    return Statement(
        form=fold_variants(normal_form(text)).replace("’", "'"),
        pieces=pieces,
        sequence=tuple(sequence),
        places=tuple(places),
        words=frozenset(sequence) - {NOT, AND, "'s"},
        minor=frozenset(minor),
        denials=sequence.count(NOT),
        changes=announces_change(spelled),
        past=bool(_PAST.search(spelled)),
        planned="WILL" in minor,
        short=not _SHORT.keys().isdisjoint(pieces),
    )


#: The names that models give the speaker, as the speaker says them.
_SPEAKER = (
    (re.compile(r"\bthe user(?:'s|’s)(?= )|\btheir(?= )", re.IGNORECASE), "my"),
    (re.compile(r"\bthe user (?:is|was)\b", re.IGNORECASE), "I am"),
    (re.compile(r"\bthe user has\b", re.IGNORECASE), "I have"),
    (re.compile(r"\bthe user (\w{2,}[^\Ws])s\b", re.IGNORECASE), r"I \1"),
    (re.compile(r"\bthe user\b", re.IGNORECASE), "I"),
    (re.compile(r"用户|用戶"), "我"),
)


def as_speaker(text: str) -> str:
    """Return a text about the user in the words of the user.

    >>> as_speaker("The user rents the user's garage")
    'I rent my garage'
    """
    for pattern, own in _SPEAKER:
        text = pattern.sub(own, text)
    return text


_SHORT_FORMS = {"am": "m", "are": "re", "is": "s", "has": "s", "have": "ve", "will": "ll", "would": "d"}
_LONG = re.compile(rf"\b(i|you|we|they|he|she|it|that|there) ({'|'.join(_SHORT_FORMS)})\b", re.IGNORECASE)
_LONG_DENIAL = re.compile(
    r"\b(do|does|did|is|are|was|were|has|have|had|would|should|could) not\b", re.IGNORECASE
)
_EXPANSIONS = (("n't", " not"), *((f"'{short}", f" {long}") for long, short in _SHORT_FORMS.items()))


def same_words(text: str) -> Iterable[str]:
    """Return a text as it is, as the user would say it, and both with all contractions and with none.

    >>> list(same_words("I'm not a runner"))
    ["I'm not a runner", 'I am not a runner']
    """
    forms = list[str]()
    for form in (text, as_speaker(text)):
        whole = form.replace("’", "'")
        for short, full in _EXPANSIONS:
            whole = whole.replace(short, full)
        contracted = _LONG.sub(lambda found: f"{found[1]}'{_SHORT_FORMS[found[2].lower()]}", whole)
        forms += [form, whole, contracted, _LONG_DENIAL.sub(r"\1n't", whole)]
    return dict.fromkeys(forms)


@lru_cache(maxsize=4096)
def plain_pieces(text: str) -> tuple[str, ...]:
    """Return the words of a text without denials apart and without words of change, to compare place by place."""
    spelled = _CHANGE_PHRASES.sub("", _spell_out(text))
    return tuple(
        piece for piece in _PIECE.findall(spelled) if piece not in (",", ";", "、", "了", "的", "already")
    )


def _spell_out(text: str) -> str:
    """Return a text in small letters and simplified characters, with contractions in full."""
    form = fold_variants(unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))
    form = " ".join(re.sub(r"[.!?。！？\"“”「」()…]+(?=\s|$)|[\"“”「」()]", " ", form).split())
    form = form.replace("，", ",").replace("；", ";")
    for pattern, whole in _CONTRACTIONS:
        form = pattern.sub(whole, form)
    return form


def _pieces(told: str) -> list[str]:
    """Split a text into words, Chinese characters, denials and pauses. A Chinese pronoun is one piece."""
    pieces: list[str] = []
    last = 0
    for found in _MINOR_ZH.finditer(told):
        pieces += [*_PIECE.findall(told[last : found.start()]), found[0]]
        last = found.end()
    return pieces + _PIECE.findall(told[last:])


def _content(piece: str) -> str | None:
    """Return what a piece contributes to the sequence; None for a word without content."""
    if piece in (",", ";"):
        return None
    if piece in ("and", "or", "和", "与", "跟", "及", "、", AND):
        return AND
    if piece in _EMPTY or piece in _EMPTY_ZH or piece in _MINOR:
        return None
    return stem(piece) if piece.isascii() and piece.isalpha() else piece


# ---- numbers ------------------------------------------------------------------------------------------------------

_NUMBERS = re.compile(r"[0-9]|^[一二三四五六七八九十百千万两零半〇]+$")
_NUMBER_WORDS = word_set(
    """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half past
    quarter first second third fourth fifth sixth"""
)
_DAYS = word_set(
    """monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
    fridays saturdays sundays january february march april may june july august september october
    november december"""
)
_NUMERALS = frozenset("0123456789一二三四五六七八九十百千万两零半〇日点号月年天周秒分刻.:,-/%")


def only_days(pieces: Pieces) -> bool:
    """Return whether all words are names of days or months: many things happen on several of them."""
    return all(piece in _DAYS for piece in pieces)


def only_numbers(pieces: Pieces) -> bool:
    """Return whether all words are numbers, days or units."""
    return all(
        _NUMBERS.search(piece) or piece in _NUMBER_WORDS or piece in _DAYS or piece in _NUMERALS
        for piece in pieces
    )


def is_chinese(pieces: Pieces) -> bool:
    """Return whether a Chinese character is among the pieces."""
    return any("\u3400" <= piece[0] <= "\u9fff" for piece in pieces)


# ---- sequences ----------------------------------------------------------------------------------------------------

#: Verbs and modals that a denial such as "decided against" may leave out.
LIGHT_VERBS = stem_set(
    """use have go get choose pick adopt want will would going to plan take must should can
    用 要 会 能 想 使 采 可 以 必 须 应 该 准 备 打 算 决 定 上 抽 喝"""
)


def common_ends(old: Pieces, new: Pieces) -> tuple[int, int]:
    """Return how many parts are common at the start and at the end."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def find(sequence: Pieces, part: Pieces) -> int:
    """Return the place of a part in a sequence, or a negative number."""
    places = (at for at in range(len(sequence)) if sequence[at : at + len(part)] == part)
    return next(places, -len(part) - 1)
