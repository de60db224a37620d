"""The pool that the reranker learns from: texts, questions about them, and the candidates of each question."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from lab.training import dataset, engine, overlap, scenes
from lab.training.config import Config, TaughtConfig

Log = Any
#: Ranks that candidates are drawn from, one draw per span.
_RANKS = ((0, 2), (1, 4), (2, 8), (5, 16), (12, 60))
#: The kinds of the questions that the language model writes.
_KINDS = {"question": "written", "near": "written miss"}


@dataclass(frozen=True)
class Ask:
    """A question, the texts that answer it, and texts that do not although they are near."""

    query: str
    gold: tuple[int, ...]
    near: tuple[int, ...]
    kind: str


@dataclass
class Pool:
    """Texts by number, and questions about them."""

    texts: list[str]
    asks: list[Ask]

    def save(self, path: Path) -> None:
        """Write one compressed file."""
        with lzma.open(path, "wt", encoding="utf-8") as out:
            out.write(json.dumps(self.texts, ensure_ascii=False) + "\n")
            for ask in self.asks:
                out.write(json.dumps([ask.query, ask.gold, ask.near, ask.kind], ensure_ascii=False) + "\n")

    @staticmethod
    def load(path: Path) -> Pool:
        """Read what `save` wrote."""
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            texts = json.loads(next(lines))
            rows = [json.loads(line) for line in lines]
        return Pool(texts, [Ask(row[0], tuple(row[1]), tuple(row[2]), row[3]) for row in rows])


# ---- questions and texts ------------------------------------------------------------------------------------------


class _Numbers:
    """Numbers the texts of a pool."""

    def __init__(self, change: Any) -> None:
        self.change = change
        self.texts: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.texts.setdefault(self.change(text), len(self.texts))


def prepare(
    work: Path, written: Path, target: Path, bench: Path | None, config: Config, simplified: Any
) -> None:
    """Write the pool: scenes, written text, and a part of the corpora. Text of the benchmarks is left out."""
    own, rng, number = config.taught, random.Random(config.taught.seed), _Numbers(simplified)
    found = overlap.benchmark_texts(bench) if bench else iter(())
    benchmarks = overlap.Benchmarks(found, config.data)
    asks = [*_of_scenes(number), *_of_corpora(work, number, own, rng)]
    for row in engine.read(written) if written.exists() else ():
        if not benchmarks.verdict(row["text"]):
            number(row["text"])
    kept = [ask for ask in asks if not benchmarks.verdict(ask.query)]
    Pool(list(number.texts), kept).save(target)


def _of_scenes(number: _Numbers) -> Iterator[Ask]:
    for row in scenes.rows():
        filled = scenes.filled(row)
        lines = {
            field: [number(text) for each in filled[field].values() for text in each]
            for field in ("old", "new", "near")
        }
        held = "held out " if scenes.is_held_out(row, 8) else ""
        answers = (*lines["old"], *lines["new"])
        for text in [filled["topic"], *(text for each in filled.get("ask", {}).values() for text in each)]:
            kind = "topic" if text == filled["topic"] else "scene"
            yield Ask(number.change(text), answers, tuple(lines["near"]), f"{held}{kind}")
        for text in (text for each in filled.get("miss", {}).values() for text in each):
            yield Ask(number.change(text), (), (*answers, *lines["near"]), f"{held}miss")


def _of_corpora(work: Path, number: _Numbers, own: TaughtConfig, rng: random.Random) -> Iterator[Ask]:
    data = dataset.load(work)
    for tongue, texts in data.texts.items():
        rows = data.asks[tongue]
        for query, text in rows[rng.sample(range(len(rows)), min(own.corpus, len(rows)))].tolist():
            if len(texts[text]) <= own.longest:
                yield Ask(number.change(texts[query]), (number(texts[text]),), (), tongue)
        for place in rng.sample(range(len(texts)), min(own.others, len(texts))):
            if own.shortest <= len(texts[place]) <= own.longest:
                number(texts[place])
    english, chinese = data.texts["en"], data.texts["zh"]
    rows = data.pair_asks[rng.sample(range(len(data.pair_asks)), min(own.crossed, len(data.pair_asks)))]
    for query, text in rows.tolist():
        one, two = data.pairs[query], data.pairs[text]
        if rng.random() < 0.5:
            yield Ask(number.change(chinese[one[1]]), (number(english[two[0]]),), (), "cross")
        else:
            yield Ask(english[one[0]], (number(chinese[two[1]]),), (), "cross")


def ask(
    folder: Path, written: Path, pool: Pool, config: Config, seconds: float, device: str, log: Log
) -> list[Ask]:
    """Let the language model write questions about its texts: some that they answer, and some that they do not."""
    from tempfile import TemporaryDirectory

    numbers = {text: place for place, text in enumerate(pool.texts)}
    texts = [row for row in engine.read(written) if row["text"] in numbers]
    random.Random(config.taught.seed).shuffle(texts)
    texts = [{**row, "id": place} for place, row in enumerate(texts)]
    own = replace(config.engine, seconds=seconds, line_tokens=32, crossed=0.0)
    with TemporaryDirectory() as out:
        writer = engine.Engine(folder, Path(out), own, overlap.Benchmarks(iter(()), config.data), device, log)
        writer.texts = texts
        for turn, role in enumerate(_KINDS):
            writer._round(role, 8 + turn, config.taught.asked)
        writer.out.close()
        rows = engine.read(Path(out) / "written.jsonl")
    asked = []
    for row in rows:
        about = (numbers[texts[row["id"]]["text"]],)
        answered = row["role"] == "question"
        asked.append(
            Ask(row["text"], about if answered else (), () if answered else about, _KINDS[row["role"]])
        )
    return list({(each.query, each.kind): each for each in asked}.values())


# ---- candidates ---------------------------------------------------------------------------------------------------


def candidates(pool: Pool, texts: Tensor, queries: Tensor, config: TaughtConfig) -> np.ndarray:
    """Return [questions, size]: answers and near texts that are known, then neighbours, then chance."""
    rng = np.random.default_rng(config.seed)
    out = np.zeros((len(pool.asks), config.size), np.int64)
    for start in range(0, len(pool.asks), 2_048):
        part = pool.asks[start : start + 2_048]
        near = (queries[start : start + 2_048] @ texts.T).topk(_RANKS[-1][1] + 1, 1).indices.cpu().numpy()
        for row, each in enumerate(part):
            known = [*rng.permutation(each.gold)[:2], *rng.permutation(each.near)[:2]]
            drawn = [int(near[row, rng.integers(a, b + 1)]) for a, b in _RANKS]
            chance = rng.integers(0, len(texts), config.size).tolist()
            chosen = list(dict.fromkeys(int(place) for place in [*known, *drawn, *chance]))
            out[start + row] = chosen[: config.size]
    return out
