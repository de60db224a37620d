"""Scenes: what people note about one thing that changes, and what they ask about it.

`scenes/*.jsonl` was written for this project, in both languages. A scene has questions, lines with the old value, lines
with the new value, and lines that are near to both and are neither an answer nor a replacement. A prompt has lines that
help with it, or none. Placeholders such as {person} are filled in several ways.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from training.dataset import LANGUAGES

FOLDER = Path(__file__).parent / "scenes"
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
    """The texts of a scene, by number. A prompt without an answer has only `questions` and `near`."""

    questions: list[int]
    old: list[int]
    new: list[int]
    #: Lines that help with a prompt.
    helps: list[int]
    near: list[int]

    @property
    def answers(self) -> list[int]:
        """Return the lines that answer the questions."""
        return [*self.old, *self.new, *self.helps]

    @property
    def lines(self) -> list[int]:
        """Return everything but the questions."""
        return [*self.answers, *self.near]


@dataclass(frozen=True)
class Scenes:
    """All scenes. Text `number + way * count` is text `number` with its placeholders filled in another way."""

    texts: list[str]
    count: int
    ways: int
    train: list[Scene]
    #: Scenes that are only measured.
    held_out: list[Scene]

    def digest(self) -> str:
        """Return a hash of the texts."""
        return hashlib.sha256("\n".join(self.texts).encode()).hexdigest()[:16]


def load(folder: Path, ways: int, share: int) -> Scenes:
    """Read the scenes and fill their placeholders. One scene in `share` is held out."""
    rows = [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    parts: list[list[str]] = [[] for _ in range(ways)]
    scenes = [_number(row, number, parts) for number, row in enumerate(rows)]
    held = [_is_held_out(row, share) for row in rows]
    return Scenes(
        texts=[text for part in parts for text in part],
        count=len(parts[0]),
        ways=ways,
        train=[scene for scene, is_held in zip(scenes, held, strict=True) if not is_held],
        held_out=[scene for scene, is_held in zip(scenes, held, strict=True) if is_held],
    )


def _number(row: Mapping[str, Mapping[str, list[str]]], seed: int, parts: list[list[str]]) -> Scene:
    """Append the texts of a row, filled in each way, and return their numbers."""
    fields = {"questions": ("questions", "prompt", "prompts")}
    numbers = {}
    for field in ("questions", "old", "new", "helps", "near"):
        given = next((row[name] for name in fields.get(field, (field,)) if name in row), {})
        start = len(parts[0])
        for way, part in enumerate(parts):
            for language in LANGUAGES:
                filled = _names(random.Random(f"{seed} {way}"), language)
                part += [_fill(text, filled) for text in given.get(language, ())]
        numbers[field] = list(range(start, len(parts[0])))
    return Scene(**numbers)


def _names(rng: random.Random, language: str) -> dict[str, str]:
    """Return what fills the placeholders: two different names of each kind."""
    side = LANGUAGES.index(language)
    chosen = {kind: rng.sample(names, 2) for kind, names in NAMES.items()}
    return {f"{kind}{'2' * place}": pair[place][side] for kind, pair in chosen.items() for place in (0, 1)}


def _fill(text: str, names: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: names[found[1] + found[2]], " ".join(text.split()))


def _is_held_out(row: object, share: int) -> bool:
    digest = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).digest()
    return digest[0] % share == 0


def rivals(scenes: Iterable[Scene], vectors: np.ndarray, size: int) -> dict[int, np.ndarray]:
    """Return, for each question and answer, the nearest lines of other scenes."""
    chosen = list(scenes)
    lines = np.array([line for scene in chosen for line in scene.lines])
    owner = np.array([number for number, scene in enumerate(chosen) for _ in scene.lines])
    found = {}
    for number, scene in enumerate(chosen):
        asked = [*scene.questions, *scene.answers]
        cosines = vectors[asked].astype(np.float32) @ vectors[lines].astype(np.float32).T
        cosines[:, owner == number] = -np.inf
        nearest = np.argsort(-cosines, axis=1)[:, :size]
        found |= {text: lines[row] for text, row in zip(asked, nearest, strict=True)}
    return found
