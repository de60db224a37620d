"""Pairs of an earlier and a later statement, with the answer to one question: is the earlier one out of date?

They come from the scenes, from sentence frames that are filled with topics, names and values of both languages
(`seeds/`), from attributes with one or with many values, and from text that the language model wrote (`engine.py`).
"""

from __future__ import annotations

import json
import lzma
import random
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lab.training import scenes
from lab.training.scenes import Scene, Scenes

SEEDS = Path(__file__).parent / "seeds"
LANGUAGES = ("en", "zh")
#: Requests after which the earlier statement is out of date, and those after which it stands. Of a partial change only
#: the judge says.
CHANGES, STANDS = ("outright", "implied", "denied"), ("same", "planned", "beside")
UNKNOWN = -1.0
#: One topic in this many is only measured.
HELD_OUT = 12

_HAN = re.compile(r"[\u3400-\u9fff]")
_SMALL_WORDS = frozenset(
    ["of", "the", "a", "in", "at", "for", "user", "s", "and", "to", "on", "family", "is"]
)
_SLOT = re.compile(r"\{(\w+)\}")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


class Pair(NamedTuple):
    """Two statements."""

    earlier: str
    later: str
    #: 1: the earlier one is out of date; 0: it stands; `UNKNOWN`.
    label: float
    #: Source and role, as in "template outright".
    kind: str


def language(text: str) -> str:
    """Return the language of a text."""
    return "zh" if _HAN.search(text) else "en"


def direction(pair: Pair) -> str:
    """Return "en", "zh" or "cross"."""
    one, two = language(pair.earlier), language(pair.later)
    return one if one == two else "cross"


def is_held_out(topic: str) -> bool:
    """Return whether a topic is only measured: one in `HELD_OUT`, and those of scenes that are only measured."""
    own = _content(topic)
    scene = any(len(own & other) >= 0.5 * len(own | other) for other in _held_out_scenes())
    return scene or zlib.crc32(topic.encode()) % HELD_OUT == 0


@cache
def _held_out_scenes() -> list[frozenset[str]]:
    return [_content(row["topic"]) for row in scenes.rows() if scenes.is_held_out(row, 8)]


def _content(topic: str) -> frozenset[str]:
    return frozenset(re.findall("[a-z]+", topic.lower())) - _SMALL_WORDS


# ---- scenes -------------------------------------------------------------------------------------------------------


def from_scenes(told: Scenes, group: Sequence[Scene], count: int, rng: random.Random) -> list[Pair]:
    """Draw pairs from the lines of scenes. Three in ten texts have further sentences."""
    drawn: dict[tuple[str, str], Pair] = {}
    tries = 0
    while len(drawn) < count and tries < 20 * count:
        tries += 1
        pair = _from_scene(told, group, rng)
        if pair and pair.earlier != pair.later:
            drawn.setdefault(pair[:2], pair)
    return list(drawn.values())


def _from_scene(told: Scenes, group: Sequence[Scene], rng: random.Random) -> Pair | None:
    scene, way = rng.choice(group), rng.randrange(told.ways)

    def text(line: int, at: int = way) -> str:
        return told.texts[told.text(line, at)]

    def longer(line: str) -> str:
        for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3))):
            other = scene.near if rng.random() < 0.4 else rng.choice(group).lines
            further = text(rng.choice(other))
            line = join(line, further) if rng.random() < 0.7 else join(further, line)
        return line

    old, new, chance = rng.choice(scene.old), rng.choice(scene.new), rng.random()
    if chance < 0.42:
        found = Pair(text(old), text(new), 1, "scene new")
    elif chance < 0.64:
        found = Pair(text(rng.choice([old, old, new])), text(rng.choice(scene.near)), 0, "scene near")
    elif chance < 0.76:
        same = scene.old if rng.random() < 0.7 else scene.new
        found = Pair(text(rng.choice(same)), text(rng.choice(same)), 0, "scene same")
    elif chance < 0.82:
        found = Pair(text(rng.choice(scene.near)), text(new), 0, "scene from near")
    elif chance < 0.91 and told.is_about_same(old, new):
        other = way + 1 + rng.randrange(told.ways - 1)
        found = Pair(text(old), text(new, other), 0, "scene other subject")
    else:
        other_scene = rng.choice(group)
        if other_scene is scene:
            return None
        found = Pair(text(old), text(rng.choice(other_scene.lines)), 0, "scene other")
    return Pair(longer(found.earlier), longer(found.later), found.label, found.kind)


def join(first: str, second: str) -> str:
    """Join two statements."""
    return first.rstrip(". 。") + ("。" if _HAN.search(first[-8:]) else ". ") + second


# ---- sentence frames ----------------------------------------------------------------------------------------------


class Topic(NamedTuple):
    """Something that has a value, by language."""

    names: Mapping[str, str]
    kind: str

    @property
    def held_out(self) -> bool:
        """Whether it is only measured."""
        return is_held_out(self.names["en"])


Both = tuple[str, str]


@cache
def topics() -> list[Topic]:
    """Return the topics."""
    rows = [line.split("|") for line in (SEEDS / "topics.tsv").read_text(encoding="utf-8").splitlines()]
    return [Topic({"en": en, "zh": zh}, kind) for en, zh, kind in rows]


@cache
def _seeds(name: str) -> Any:
    return json.loads((SEEDS / f"{name}.json").read_text(encoding="utf-8"))


def names() -> list[Both]:
    """Return names of people in both languages."""
    return [_both(name) for name in _seeds("names")]


def _both(text: str) -> Both:
    en, _, zh = text.partition("|")
    return en, zh


def _time(rng: random.Random) -> Both:
    hour, minute = rng.randrange(5, 23), rng.choice((0, 0, 15, 30, 45))
    clock = f"{hour}:{minute:02}"
    spoken = f"{(hour - 1) % 12 + 1}{f':{minute:02}' if minute else ''} {'am' if hour < 12 else 'pm'}"
    half = "早上" if hour < 11 else "中午" if hour < 13 else "下午" if hour < 18 else "晚上"
    chinese = f"{half}{(hour - 1) % 12 + 1}点{'半' if minute == 30 else f'{minute}分' if minute else ''}"
    return rng.choice((clock, spoken)), rng.choice((clock, chinese))


def _date(rng: random.Random) -> Both:
    month, day = rng.randrange(12), rng.randrange(1, 29)
    en = rng.choice((f"{day} {_MONTHS[month]}", f"{_MONTHS[month]} {day}", f"{day} {_MONTHS[month][:3]}"))
    return en, f"{month + 1}月{day}号"


def _money(rng: random.Random) -> Both:
    amount = rng.choice((5, 10, 50, 100)) * rng.randrange(2, 40)
    en = rng.choice((f"€{amount}", f"{amount:,} euros", f"${amount}", f"{amount} yuan", f"{amount}"))
    return en, rng.choice((f"{amount}元", f"{amount}块", f"{amount}"))


def _number(low: int, high: int, en: str = "", zh: str = "") -> Callable[[random.Random], Both]:
    def drawn(rng: random.Random) -> Both:
        value = rng.randrange(low, high)
        return f"{value}{en}", f"{value}{zh}"

    return drawn


def _room(rng: random.Random) -> Both:
    value = rng.choice((f"{rng.choice('ABCDEF')}{rng.randrange(1, 60)}", f"{rng.randrange(100, 900)}"))
    return value, value


_DRAWN: dict[str, Callable[[random.Random], Both]] = {
    "time": _time,
    "date": _date,
    "money": _money,
    "room": _room,
    "number": _number(10, 900),
    "small": _number(2, 30),
    "size": _number(35, 47),
    "kilos": _number(50, 95, " kg", "公斤"),
    "port": _number(1024, 9999),
    "seconds": _number(2, 90, " seconds", "秒"),
    "minutes": _number(5, 90, " minutes", "分钟"),
    "degrees": _number(4, 98, " degrees", "度"),
}


def _values(kind: str, count: int, rng: random.Random) -> list[Both]:
    """Return different values of a kind."""
    if kind in _DRAWN:
        found: dict[Both, None] = {}
        while len(found) < count:
            found.setdefault(_DRAWN[kind](rng))
        return list(found)
    known = _seeds("names") if kind == "name" else _seeds("values")[kind]
    return [_both(value) for value in rng.sample(known, count)]


_DAYS: tuple[Both, ...] = (
    ("last week", "上周"),
    ("Monday", "周一"),
    ("this month", "这个月"),
    ("yesterday", "昨天"),
    ("the start of the year", "年初"),
    ("the holidays", "放假"),
)


class Story:
    """A topic of a person with an old and a new value. Fills frames in both languages."""

    def __init__(self, rng: random.Random, chosen: Sequence[Topic]) -> None:
        self.rng, self.topic = rng, rng.choice(chosen)
        other = self.topic
        while other.kind == self.topic.kind:
            other = rng.choice(chosen)
        old, new, third = _values(self.topic.kind, 3, rng)
        beside = _values(other.kind, 1, rng)[0]
        person, second = (_both(name) for name in rng.sample(_seeds("names"), 2))
        owner = rng.random()
        self.slots = []
        for side, tongue in enumerate(LANGUAGES):
            given = {
                "a": self.topic.names[tongue],
                "b": other.names[tongue],
                "x": beside[side],
                "v": old[side],
                "w": new[side],
                "u": third[side],
                "q": second[side],
                "d": (_date(rng) if rng.random() < 0.5 else rng.choice(_DAYS))[side],
            }
            if tongue == "en":
                mine = "my" if owner < 0.25 else "our" if owner < 0.4 else f"{person[0]}'s"
                whose = "me" if owner < 0.25 else "us" if owner < 0.4 else person[0]
                owned = "the user" if owner < 0.25 else "the family" if owner < 0.4 else person[0]
                theirs = f"{second[0]}'s"
                given |= {"s": mine, "S": _capital(mine), "s2": whose, "o": owned}
                given |= {"q2": theirs, "Q2": _capital(theirs)}
            else:
                owned = "我" if owner < 0.25 else "我们家" if owner < 0.4 else person[1]
                given |= {"s": f"{owned}的", "o": owned}
            self.slots.append(given)

    def tell(self, role: str, tongue: str, **renamed: str) -> str:
        """Fill a frame of a role. `renamed` exchanges slots."""
        slots = self.slots[LANGUAGES.index(tongue)]
        slots = slots | {slot: slots[source] for slot, source in renamed.items()}
        text = _SLOT.sub(lambda found: slots[found[1]], self.rng.choice(_seeds("frames")[tongue][role]))
        chance = self.rng.random()
        if tongue == "en" and chance < 0.1:
            return text[0].lower() + text[1:]
        if chance > 0.9:
            return text.rstrip(".。")
        return _capital(text) if tongue == "en" and chance > 0.6 else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_ROLES = {
    "outright": 0.26,
    "implied": 0.14,
    "denied": 0.07,
    "same": 0.13,
    "planned": 0.15,
    "beside": 0.21,
    "other": 0.04,
}


def from_templates(count: int, rng: random.Random, *, held_out: bool = False) -> list[Pair]:
    """Draw pairs from sentence frames, of topics that are held out or of the others."""
    chosen = [topic for topic in topics() if topic.held_out == held_out]
    drawn: dict[tuple[str, str], Pair] = {}
    while len(drawn) < count:
        pair = _from_template(rng, chosen)
        if pair.earlier != pair.later:
            drawn.setdefault(pair[:2], pair)
    return list(drawn.values())


def _from_template(rng: random.Random, chosen: Sequence[Topic]) -> Pair:
    story = Story(rng, chosen)
    role = rng.choices(list(_ROLES), list(_ROLES.values()))[0]
    one = rng.choice(LANGUAGES)
    two = one if rng.random() < 0.8 else LANGUAGES[1 - LANGUAGES.index(one)]
    # An earlier statement may itself tell of a change.
    earlier = story.tell("outright", one, v="u", w="v") if rng.random() < 0.15 else story.tell("earlier", one)
    later = Story(rng, chosen).tell("earlier", two) if role == "other" else story.tell(role, two)
    for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 1, 1, 2, 3))):
        extra = Story(rng, chosen).tell(rng.choice(("earlier", "beside")), one)
        earlier = join(earlier, extra) if rng.random() < 0.8 else join(extra, earlier)
    for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 1, 1, 2))):
        extra = Story(rng, chosen).tell(rng.choice(("earlier", "planned", "beside")), two)
        later = join(later, extra) if rng.random() < 0.7 else join(extra, later)
    return Pair(earlier, later, float(role in CHANGES), f"template {role}")


# ---- attributes ---------------------------------------------------------------------------------------------------


@cache
def attributes() -> list[dict[str, Any]]:
    """Return the attributes: what has one value at a time, and what may have several."""
    return [json.loads(line) for line in (SEEDS / "attributes.jsonl").read_text("utf-8").splitlines()]


def from_attributes(count: int, rng: random.Random, *, held_out: bool = False) -> list[Pair]:
    """Draw pairs of attributes that are held out or of the others.

    Two values of one thing differ in nothing but the value: "We deploy on Fridays" is out of date when we deploy on
    Tuesdays, "I like tea" stands beside "I like jazz".
    """
    chosen = [row for row in attributes() if (zlib.crc32(row["topic"].encode()) % HELD_OUT == 0) == held_out]
    drawn: dict[tuple[str, str], Pair] = {}
    for _ in range(20 * count):
        pair = _from_attribute(rng, chosen)
        if pair.earlier != pair.later:
            drawn.setdefault(pair[:2], pair)
        if len(drawn) == count:
            break
    return list(drawn.values())


def _from_attribute(rng: random.Random, chosen: Sequence[Mapping[str, Any]]) -> Pair:
    row, one = rng.choice(chosen), rng.choice(LANGUAGES)
    two = one if rng.random() < 0.88 else LANGUAGES[1 - LANGUAGES.index(one)]
    first, second = rng.sample(range(len(row["en"]["values"])), 2)
    frame = rng.choice(row[one]["frames"])
    other = frame if one == two and rng.random() < 0.4 else rng.choice(row[two]["frames"])
    kind = "single" if row["single"] else "many"
    if rng.random() < 0.14:
        second, kind = first, "same"
    earlier, later = (
        text.replace("{v}", row[tongue]["values"][place])
        for text, tongue, place in ((frame, one, first), (other, two, second))
    )
    for _ in range(rng.choice((0, 0, 0, 0, 0, 1))):
        beside = rng.choice(chosen)[two]
        later = join(later, rng.choice(beside["frames"]).replace("{v}", rng.choice(beside["values"])))
    return Pair(earlier, later, float(kind == "single"), f"attribute {kind}")


# ---- written text -------------------------------------------------------------------------------------------------


def from_written(rows: Iterable[Mapping[str, Any]], rng: random.Random) -> Iterator[Pair]:
    """Yield pairs of texts that the language model wrote, with the label that was asked for."""
    texts: dict[int, Mapping[str, Any]] = {}
    lines: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    topics_of: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row["role"] == "text":
            texts[row["id"]] = row
            topics_of[row["topic"]].append(row["id"])
        elif row["role"] not in ("question", "near"):
            lines[row["id"]][row["role"]].append(row["text"])
    for number, text in texts.items():
        found, earlier = lines[number], text["text"]
        for role, later in ((role, line) for role, group in found.items() for line in group):
            label = 1.0 if role in CHANGES else 0.0 if role in STANDS else UNKNOWN
            yield Pair(earlier, later, label, f"written {role}")
        for role in (*CHANGES, "planned", "beside"):
            for other in found.get("same", ())[:1]:
                for line in found.get(role, ())[:1]:
                    yield Pair(other, line, float(role in CHANGES), f"written same, {role}")
        others = [other for other in topics_of[text["topic"]] if other != number]
        rivals = [(texts[n], lines[n]) for n in rng.sample(others, min(3, len(others)))]
        yield from _among(text, found, rivals, rng)


def _among(
    text: Mapping[str, Any],
    found: Mapping[str, Sequence[str]],
    rivals: Sequence[tuple[Mapping[str, Any], Mapping[str, Sequence[str]]]],
    rng: random.Random,
) -> Iterator[Pair]:
    """Yield pairs of which only the judge can say whether they stand: later lines, and lines of other texts."""
    own = [line for group in found.values() for line in group]
    for one, two in zip(own, own[1:] + own[:1], strict=True):
        if one != two:
            yield Pair(one, two, UNKNOWN, "written later, later")
    for line in own[:1]:
        yield Pair(line, text["text"], UNKNOWN, "written later, text")
    for other, about in rivals:
        yield Pair(text["text"], other["text"], UNKNOWN, "written other, text")
        chosen = [(role, line) for role, group in about.items() for line in group]
        for role, line in rng.sample(chosen, min(2, len(chosen))):
            yield Pair(text["text"], line, UNKNOWN, f"written other, {role}")


# ---- files --------------------------------------------------------------------------------------------------------


def write(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write rows as JSON lines, compressed if the name ends in .xz."""
    with (lzma.open if path.suffix == ".xz" else open)(path, "wt", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def read(path: Path) -> list[Pair]:
    """Read pairs. Further columns of a row are left out."""
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as lines:
        return [Pair(*json.loads(line)[:4]) for line in lines]
