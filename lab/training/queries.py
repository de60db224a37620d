"""Make natural queries from the sources, without question templates.

A heading is a query for its section, a first sentence for the remaining text, a question turn for
the next turn, and a reading-comprehension question for its passage. Simple rules make three more
kinds: a few words of a text, as in a search box; a first-person turn rephrased with its speaker's
name, as in a memory; and a question from the source rephrased with the name of the person who
answers, as a third person would ask it later.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.training.config import DataConfig
from lab.training.corpus import is_chinese, length

_END = ".!?。！？:：;；,，"
_QUESTION = re.compile(r"[?？]\s*$")
_SENTENCE = re.compile(r"(?<=[。！？!?])|(?<=[.])\s+(?=[A-Z])")
_CODE = re.compile(r"[=<>{}\[\]|\\]|https?:|--|^\W|\w+\(\)?")
_ENGLISH = (
    "Tom Mary Adam Beth Carl Dana Erik Fiona George Helen Iris Jonas Karen Liam Monica Nora Oscar "
    "Paula Quinn Rosa Simon Tina Ursula Vera Walter Yara Zack Amy Bill Chloe Derek Eva"
)
_CHINESE = (
    "小王 小张 李娜 王芳 刘强 陈晨 杨柳 黄磊 周洁 吴涛 徐静 孙浩 马丽 朱明 胡军 郭敏 何欣 高飞 "
    "林雪 罗杰 用户 助手"
)
_REGULAR = (
    "like love want need hate enjoy prefer plan hope work live play think own study speak drive "
    "watch teach eat drink collect know feel run read write believe wish cook travel remember"
)
ENGLISH_NAMES, CHINESE_NAMES = _ENGLISH.split(), _CHINESE.split()
_PRESENT = frozenset(_REGULAR.split())
_VERB = re.compile(r"\b[Ii] (also |really |always |usually |often |just )?([a-z]+)\b")
_AUXILIARY = {
    "i'm": "is", "i am": "is", "i've": "has", "i have": "has", "i was": "was", "i'll": "will",
    "i'd": "would",
}  # fmt: skip


_OTHERS = re.compile(
    r"\b(I|me|my|mine|we|us|our|let's|I'm|I've|I'd|I'll|else|anything|recommend)\b", re.IGNORECASE
)
# How a question to a person becomes a question about that person.
_ABOUT: tuple[tuple[str, str], ...] = (
    (r"\bdo you\b", "does {}"), (r"\bdon't you\b", "doesn't {}"), (r"\bare you\b", "is {}"),
    (r"\baren't you\b", "isn't {}"), (r"\bhave you\b", "has {}"), (r"\bhaven't you\b", "hasn't {}"),
    (r"\bwere you\b", "was {}"), (r"\byou(?:'re| are)\b", "{} is"), (r"\byou(?:'ve| have)\b", "{} has"),
    (r"\byou were\b", "{} was"), (r"\byou'd\b", "{} would"), (r"\byou'll\b", "{} will"),
    (r"\byourself\b", "themselves"), (r"\byours?\b", "{}'s"), (r"\byou\b", "{}"),
)  # fmt: skip


@dataclass(frozen=True)
class Ask:
    """A query and the text that it should find."""

    kind: str
    query: str
    text: str


def is_question(text: str) -> bool:
    """Return whether a text is one question of a usable length."""
    return bool(_QUESTION.search(text)) and 4 <= length(text) <= 48


def is_heading(text: str) -> bool:
    """Return whether a text is short and has neither code nor a closing mark, except a question mark."""
    closed = text[-1] in _END and text[-1] not in "?？"
    return 2 <= length(text) <= 16 and not closed and not _CODE.search(text)


def glue(texts: Sequence[str]) -> str:
    """Join paragraphs into one text."""
    return " ".join(texts)


def headings(texts: Sequence[str], limit: int) -> Iterator[tuple[int, list[int]]]:
    """Yield (index of a heading, indices of its section), without repeated headings."""
    often = Counter(texts)
    for index, text in enumerate(texts):
        if not is_heading(text) or often[text] > 2:
            continue
        section: list[int] = []
        size = 0
        for later in range(index + 1, len(texts)):
            here = length(texts[later])
            if is_heading(texts[later]) or size + here > limit:
                break
            section.append(later)
            size += here
        if size >= 24:
            yield index, section


def turns(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield (question turn, the turn after it)."""
    for index in range(len(texts) - 1):
        if is_question(texts[index]) and not is_question(texts[index + 1]):
            yield index, index + 1


def passages(texts: Sequence[str], limit: int) -> Iterator[tuple[int, list[int]]]:
    """Yield (question, passage): the passage is the text before a block of questions."""
    passage: list[int] = []
    asked = False
    for index, text in enumerate(texts):
        if is_question(text):
            asked = True
            if passage:
                yield index, passage
            continue
        if asked:
            passage, asked = [], False
        passage = [*passage, index]
        while len(passage) > 1 and sum(length(texts[i]) for i in passage) > limit:
            passage = passage[1:]


def lead(text: str, rng: random.Random) -> Ask | None:
    """Return one sentence, mostly the first, as a query for the remaining text."""
    parts = [part.strip() for part in _SENTENCE.split(text) if part and part.strip()]
    if len(parts) < 3 or length(text) < 40:
        return None
    place = 0 if rng.random() < 0.6 else rng.randrange(len(parts))
    sentence = parts.pop(place)
    if not 5 <= length(sentence) <= 48 or length(glue(parts)) < 24:
        return None
    return Ask("lead", sentence, glue(parts))


def keywords(text: str, rng: random.Random) -> Ask | None:
    """Return a few words of a text, in order, as a query for the text."""
    if is_chinese(text):
        clauses = [c for c in re.split(r"[，。！？；：、,\s“”（）《》]+", text) if 3 <= len(c) <= 24]
        if len(clauses) < 2:
            return None
        chosen = sorted(rng.sample(range(len(clauses)), min(len(clauses), rng.randint(1, 2))))
        cut = [_piece(clauses[i], rng) for i in chosen]
    else:
        words = [w for w in re.findall(r"[A-Za-z][A-Za-z'-]+", text) if len(w) > 3]
        if len(words) < 6:
            return None
        chosen = sorted(rng.sample(range(len(words)), rng.randint(2, 5)))
        cut = [words[i] for i in chosen]
    return Ask("keywords", " ".join(cut), text)


def _piece(clause: str, rng: random.Random) -> str:
    size = min(len(clause), rng.randint(3, 8))
    start = rng.randint(0, len(clause) - size)
    return clause[start : start + size]


def restated(turn: str, rng: random.Random) -> Ask | None:
    """Return a sentence of a first-person turn with the speaker's name, as a query for the turn."""
    chinese = is_chinese(turn)
    parts = [p.strip() for p in _SENTENCE.split(turn) if p and p.strip()]
    parts = [p for p in parts if 6 <= length(p) <= 40 and not _QUESTION.search(p)]
    if not parts:
        return None
    name = rng.choice(CHINESE_NAMES if chinese else ENGLISH_NAMES)
    rephrased = _rephrase_chinese(rng.choice(parts), name) if chinese else _rephrase(rng.choice(parts), name)
    if not rephrased:
        return None
    return Ask("restated", rephrased, f"{name}：{turn}" if chinese else f"{name}: {turn}")


def asked_about(turn: str, answer: str, rng: random.Random) -> Ask | None:
    """Return a turn's last question, rephrased with the name of the person who answers, as a query for the answer."""
    parts = [p.strip() for p in _SENTENCE.split(turn) if p and p.strip()]
    if not parts or not _QUESTION.search(parts[-1]) or not 5 <= length(parts[-1]) <= 32:
        return None
    if length(answer) < 4 or _QUESTION.search(answer):
        return None
    chinese = is_chinese(turn)
    name = rng.choice(CHINESE_NAMES[:-2] if chinese else ENGLISH_NAMES)
    rephrased = _third_chinese(parts[-1], name) if chinese else _third(parts[-1], name)
    if not rephrased:
        return None
    return Ask("asked", rephrased, f"{name}：{answer}" if chinese else f"{name}: {answer}")


def is_about(query: str, text: str) -> bool:
    """Return whether a query comes from `asked_about`."""
    name = re.split(r"：|: ", text, maxsplit=1)[0]
    named = name in CHINESE_NAMES or name in ENGLISH_NAMES
    return named and name in query and bool(_QUESTION.search(query))


def _third(question: str, name: str) -> str:
    if _OTHERS.search(question) or not re.search(r"\byour?\b", question, re.IGNORECASE):
        return ""
    rephrased = re.sub(
        r"^(and|so|but|well|oh|ok|okay|yes|no|hi|hey|hello)\b,? *", "", question, flags=re.IGNORECASE
    )
    for phrase, about in _ABOUT:
        rephrased = re.sub(phrase, about.format(name), rephrased, flags=re.IGNORECASE)
    # The name once, then pronouns: "Does Tom like Tom's job?" is unnatural.
    first, found, rest = rephrased.partition(name)
    rest = rest.replace(f"{name}'s", "their").replace(name, "they")
    rephrased = first + found + rest
    return rephrased[0].upper() + rephrased[1:]


def _third_chinese(question: str, name: str) -> str:
    question = question.replace("您", "你")
    if re.search(r"我|咱|你们|你好|需要帮", question) or "你" not in question:
        return ""
    return question.replace("你", name, 1).replace("你", "自己")


def _rephrase_chinese(sentence: str, name: str) -> str:
    if "我" not in sentence or "我们" in sentence or "你" in sentence:
        return ""
    return sentence.replace("我", name, 1).replace("我", "自己").strip("。！ ")


def _rephrase(sentence: str, name: str) -> str:
    if re.search(r"\b(you|your|we|us)\b", sentence, re.IGNORECASE):
        return ""
    rephrased = sentence.rstrip(".! ")
    for phrase, verb in _AUXILIARY.items():
        rephrased = re.sub(rf"\b{phrase}\b", f"{name} {verb}", rephrased, flags=re.IGNORECASE)
    match = _VERB.search(rephrased)
    if match:
        verb = match[2] + ("s" if match[2] in _PRESENT else "")
        rephrased = f"{rephrased[: match.start()]}{name} {match[1] or ''}{verb}{rephrased[match.end() :]}"
    if name not in rephrased:
        return ""
    rephrased = re.sub(r"\bmy\b", "their", rephrased, flags=re.IGNORECASE)
    rephrased = re.sub(r"\b(me|myself)\b", "them", rephrased, flags=re.IGNORECASE)
    return re.sub(r"\bI\b", "they", rephrased)


def speak(turn: str, rng: random.Random) -> str:
    """Put a name in front of every other turn, as memories of conversations have speakers."""
    if rng.random() < 0.5:
        return turn
    if is_chinese(turn):
        return f"{rng.choice(CHINESE_NAMES)}：{turn}"
    return f"{rng.choice(ENGLISH_NAMES)}: {turn}"


def wanted(asks: list[Ask], config: DataConfig, rng: random.Random) -> list[Ask]:
    """Limit the kinds that rules make to their numbers. Drop duplicates and empty queries."""
    limits = {
        "restated": config.restatements, "keywords": config.keyword_queries,
        "asked": config.asked_queries,
    }  # fmt: skip
    rng.shuffle(asks)
    seen: set[tuple[str, str]] = set()
    used: Counter[str] = Counter()
    kept = []
    for ask in asks:
        key = (ask.query, ask.text)
        full = used[ask.kind] >= limits.get(ask.kind, len(asks))
        if ask.query and ask.query != ask.text and key not in seen and not full:
            seen.add(key)
            used[ask.kind] += 1
            kept.append(ask)
    return kept
