"""Scenes: what people note about one thing that changes.

`scenes/*.jsonl` was written for this project, in both languages. A scene has lines with the old value, lines with the
new value, and lines that are near to both and replace nothing. Placeholders like {person} are filled in several ways.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.training.dataset import LANGUAGES

FOLDER = Path(__file__).parent / "scenes"
#: Placeholders that say what a line is about. Others are often the value that changes.
_SUBJECTS = ("{person}", "{project}")
_PLACEHOLDER = re.compile(r"\{(\w+?)(2?)\}")

#: English and Chinese names. A person with notes in both languages writes many names in the same way.
NAMES: dict[str, tuple[tuple[str, str], ...]] = {
    "person": (
        *((name, name) for name in ("Maya", "Tom", "Ines", "Ravi", "Kofi", "Lena", "Oscar", "Yuki", "Amira")),
        *(
            (name, name)
            for name in ("Bruno", "Farah", "Iris", "Jonas", "Nadia", "Pablo", "Ruth", "Sven", "Zoe")
        ),
        *zip(
            ("Li Wei", "Wang Fang", "Zhang Min", "Chen Jie", "Liu Yang", "Zhao Lei", "Zhou Ting", "Wu Hao"),
            ("李伟", "王芳", "张敏", "陈洁", "刘洋", "赵磊", "周婷", "吴昊"),
            strict=True,
        ),
        *zip(
            ("Xiao Lin", "Lao Gao", "A-Mei", "Teacher Sun"), ("小林", "老高", "阿梅", "孙老师"), strict=True
        ),
    ),
    "company": (
        *(
            (name, name)
            for name in ("Corvid", "Lumen", "Northgate", "Ardent", "Helix", "Bluepeak", "Ostrava")
        ),
        *((name, name) for name in ("Fernway", "Kestrel Labs", "Solace", "Orbis", "Tandem", "Vantage")),
        *zip(
            ("Yunfan", "Hengtong", "Xinghe", "Qingmu", "Dongsheng", "Haichuan"),
            ("云帆", "恒通", "星河", "青木", "东升", "海川"),
            strict=True,
        ),
    ),
    "city": (
        *zip(
            ("Lyon", "Porto", "Leeds", "Graz", "Denver", "Kyoto", "Hangzhou", "Chengdu", "Xiamen", "Wuhan"),
            ("里昂", "波尔图", "利兹", "格拉茨", "丹佛", "京都", "杭州", "成都", "厦门", "武汉"),
            strict=True,
        ),
        *zip(
            (
                "Oslo",
                "Turin",
                "Bristol",
                "Suzhou",
                "Nanjing",
                "Qingdao",
                "Kunming",
                "Boston",
                "Sydney",
                "Madrid",
            ),
            ("奥斯陆", "都灵", "布里斯托", "苏州", "南京", "青岛", "昆明", "波士顿", "悉尼", "马德里"),
            strict=True,
        ),
    ),
    "project": tuple(
        (name, name)
        for name in (
            *(
                "Heron",
                "Maple",
                "Quartz",
                "Juniper",
                "Comet",
                "Saffron",
                "Delta",
                "Otter",
                "Basalt",
                "Lantern",
            ),
            *("Falcon", "Ember", "Willow", "Cobalt", "Harbor", "Nimbus"),
        )
    ),
}


@dataclass(frozen=True)
class Scene:
    """The lines of a scene, by number."""

    old: list[int]
    new: list[int]
    #: Lines that neither replace an old one nor are replaced by a new one.
    near: list[int]

    @property
    def lines(self) -> list[int]:
        """Return all lines."""
        return [*self.old, *self.new, *self.near]


@dataclass(frozen=True)
class Scenes:
    """All scenes. The first `count` texts have their placeholders filled in one way, the next ones in another way."""

    texts: list[str]
    templates: list[str]
    ways: int
    train: list[Scene]
    #: Scenes that are only measured.
    held_out: list[Scene]

    @property
    def count(self) -> int:
        """Return how many lines there are."""
        return len(self.templates)

    def text(self, line: int, way: int) -> int:
        """Return the number of a line that is filled in a way."""
        return int(line) + way % self.ways * self.count

    def is_about_same(self, line: int, other: int) -> bool:
        """Return whether both lines name one person or project. Filled in two ways, they are about different ones."""
        return any(name in self.templates[line] and name in self.templates[other] for name in _SUBJECTS)


def rows(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Return the scenes as they are written."""
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def load(folder: Path, ways: int, share: int) -> Scenes:
    """Read the scenes and fill their placeholders. One scene in `share` is held out."""
    found = rows(folder)
    templates, owners = list[tuple[str, str]](), list[int]()
    scenes = [_number(row, templates, owners) for row in found]
    names = [
        [
            {language: _names(random.Random(f"{number} {way}"), language) for language in LANGUAGES}
            for way in range(ways)
        ]
        for number in range(len(found))
    ]
    held = [is_held_out(row, share) for row in found]
    return Scenes(
        texts=[
            _fill(text, names[owner][way][language])
            for way in range(ways)
            for (text, language), owner in zip(templates, owners, strict=True)
        ],
        templates=[text for text, _ in templates],
        ways=ways,
        train=[scene for scene, is_held in zip(scenes, held, strict=True) if not is_held],
        held_out=[scene for scene, is_held in zip(scenes, held, strict=True) if is_held],
    )


def _number(
    row: Mapping[str, Mapping[str, list[str]]], templates: list[tuple[str, str]], owners: list[int]
) -> Scene:
    """Append the lines of a row, and return their numbers."""
    numbers, owner = dict[str, list[int]](), owners[-1] + 1 if owners else 0
    for field in ("old", "new", "near"):
        start = len(templates)
        templates += [(text, language) for language in LANGUAGES for text in row[field][language]]
        numbers[field] = list(range(start, len(templates)))
    owners += [owner] * (len(templates) - len(owners))
    return Scene(**numbers)


def _names(rng: random.Random, language: str) -> dict[str, str]:
    """Return what fills the placeholders: two different names of each kind."""
    side = LANGUAGES.index(language)
    chosen = {kind: rng.sample(names, 2) for kind, names in NAMES.items()}
    return {f"{kind}{'2' * place}": pair[place][side] for kind, pair in chosen.items() for place in (0, 1)}


def _fill(text: str, names: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: names[found[1] + found[2]], " ".join(text.split()))


def filled(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scene with its placeholders filled in one way."""
    own = {tongue: _names(random.Random(row["topic"]), tongue) for tongue in LANGUAGES}
    out: dict[str, Any] = {"topic": _fill(row["topic"], own["en"])}
    for field in ("old", "new", "near", "ask", "miss"):
        if field in row:
            out[field] = {
                tongue: [_fill(text, own[tongue]) for text in row[field][tongue]] for tongue in LANGUAGES
            }
    return out


def is_held_out(row: object, share: int) -> bool:
    """Return whether a scene is only measured: one in `share`."""
    digest = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).digest()
    return digest[0] % share == 0
