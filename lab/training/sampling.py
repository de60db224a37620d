"""Draw the texts of each step of a training, a few steps ahead."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lab.training import dataset, queries
from lab.training.config import Config
from lab.training.prepare import View


@dataclass
class Plan:
    """The texts of one step, as numbers that can be moved to the device."""

    texts: Tensor  # the student's numbers (Chinese after English), all groups concatenated
    lengths: np.ndarray
    groups: list[int]  # how many texts each group has
    rows: dict[str, Tensor]  # text numbers by language, to look up the teachers' vectors
    lists: list[tuple[str, int, Tensor]]  # loss, queries, scores
    state: dict[str, Any]  # of the generator, after drawing


@dataclass
class Inputs:
    """The input of a run. Several runs can share it."""

    data: dataset.Dataset
    view: View
    found: dict[str, Any]


class Sampler:
    """Draws the texts of a step."""

    def __init__(self, inputs: Inputs, found: dict[str, Any], config: Config):
        data, view = inputs.data, inputs.view
        self.data, self.view, self.found, self.config = data, view, found, config.train
        self.rng = np.random.default_rng(config.train.seed)
        pairs = view.pairs
        self.long_pairs = pairs[data.pair_long[pairs]]
        self.short_pairs = pairs[~data.pair_long[pairs]]
        self.short = {}
        for language in dataset.LANGUAGES:
            usable = np.ones(len(data.texts[language]), bool)
            usable[data.long[language]] = False
            self.short[language] = np.flatnonzero(usable)
        self.english_asks = view.asks["en"]
        self.chinese_rows = np.arange(len(found["chinese_asks"]))
        self.list_rows = np.arange(len(found["queries"]))
        if not config.train.use_asked:
            self.english_asks = self.english_asks[~self._about("en", self.english_asks)]
            self.chinese_rows = np.flatnonzero(~self._about("zh", found["chinese_asks"]))
            both = np.stack([found["queries"], found["gold"]], 1)
            self.list_rows = np.flatnonzero(~self._about("en", both))

    def _about(self, language: str, asks: np.ndarray) -> np.ndarray:
        texts = self.data.texts[language]
        return np.array([d >= 0 and queries.is_about(texts[q], texts[d]) for q, d in asks], bool)

    def mono(self, language: str) -> np.ndarray:
        """Draw half at random and half from clusters, where rivals are hard. Add long texts."""
        config = self.config
        english = language == "en"
        size = config.mono_en if english else config.mono_zh
        count = size // 2
        parts = [self.rng.choice(self.short[language], size - count)]
        members, bounds = self.view.clusters[language]
        while count > 0:
            cluster = self.rng.integers(len(bounds) - 1)
            low, high = bounds[cluster], bounds[cluster + 1]
            if high > low:
                drawn = members[self.rng.integers(low, high, min(24, high - low, count))]
                parts.append(drawn)
                count -= len(drawn)
        long = self.data.long[language]
        if config.use_long and len(long):
            parts.append(self.rng.choice(long, config.long_en if english else config.long_zh))
        chosen = np.unique(np.concatenate(parts))
        if not config.use_long:
            chosen = chosen[~np.isin(chosen, long)]
        return chosen

    def pairs(self) -> np.ndarray:
        """Draw parallel pairs, one in twenty of them long."""
        long = self.config.pairs // 20 if self.config.use_long and len(self.long_pairs) else 0
        drawn = [self.rng.choice(self.short_pairs, self.config.pairs - long)]
        if long:
            drawn.append(self.rng.choice(self.long_pairs, long))
        return np.concatenate(drawn)

    def either(self, pairs: np.ndarray, chinese: bool) -> np.ndarray:
        """Return the texts of pairs in one language, as the student's numbers."""
        side = self.data.pairs[pairs]
        return side[..., 1] + self.view.offset if chinese else side[..., 0]

    def lists(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, str]]:
        """Draw English lists, and parallel lists in each of four language directions."""
        config, found, rng = self.config, self.found, self.rng
        rows = rng.choice(self.list_rows, config.lists)
        plans = [(found["queries"][rows], found["candidates"][rows], found["scores"][rows], "list")]
        directions = ((False, False), (True, True), (True, False), (False, True))
        count = config.parallel_lists // len(directions)
        for asked, texts in directions:
            rows = rng.integers(0, len(found["parallel_queries"]), count)
            carry = config.carry_chinese
            plans.append((
                self.either(found["parallel_queries"][rows], asked and carry),
                self.either(found["parallel_candidates"][rows], texts and carry),
                found["parallel_scores"][rows],
                "list_parallel",
            ))  # fmt: skip
        return plans

    def plan(self) -> Plan:
        """Draw one step."""
        config, view, rng = self.config, self.view, self.rng
        third = config.asks // 3
        english, chinese = self.mono("en"), self.mono("zh")
        both = self.data.pairs[self.pairs()]
        asked = rng.choice(self.english_asks, third)
        rows = rng.choice(self.chinese_rows, third)
        asked_zh, negatives = self.found["chinese_asks"][rows], self.found["chinese_negatives"][rows]
        cross = view.pair_asks[rng.integers(0, len(view.pair_asks), third)]
        turn = rng.random(2) < 0.5
        groups = [
            english, chinese + view.offset, both[:, 0], both[:, 1] + view.offset,
            asked[:, 0], asked[:, 1], asked_zh[:, 0] + view.offset, asked_zh[:, 1] + view.offset,
            negatives + view.offset,
            self.either(cross[:, 0], bool(turn[0])), self.either(cross[:, 1], bool(turn[1])),
        ]  # fmt: skip
        found = self.lists() if config.use_lists else []
        for queries_, candidates, _, _ in found:
            groups += [queries_, candidates]
        texts = np.concatenate([group.reshape(-1) for group in groups]).astype(np.int64)
        rows_of = {
            "en": english, "zh": chinese, "pair": both[:, 0], "ask_en": asked[:, 1],
            "ask_zh": asked_zh[:, 1], "ask_pair": self.data.pairs[cross[:, 1], 0],
        }  # fmt: skip
        return Plan(
            texts=torch.from_numpy(texts),
            lengths=view.student.lengths[texts],
            groups=[group.size for group in groups],
            rows={k: torch.from_numpy(v.astype(np.int64)) for k, v in rows_of.items()},
            lists=[(name, len(q), torch.from_numpy(scores)) for q, _, scores, name in found],
            state=rng.bit_generator.state,
        )


class Feeder:
    """Draws plans in a thread, a few steps ahead."""

    def __init__(self, sampler: Sampler, pin: bool) -> None:
        self.sampler, self.pin = sampler, pin
        self.queue: Queue[Plan | Exception] = Queue(6)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.over.is_set():
            try:
                plan: Plan | Exception = self._pinned(self.sampler.plan())
            except Exception as error:  # noqa: BLE001 - raised again where the plan is taken
                plan = error
            self.queue.put(plan)

    def _pinned(self, plan: Plan) -> Plan:
        if self.pin:
            plan.texts = plan.texts.pin_memory()
            plan.rows = {name: rows.pin_memory() for name, rows in plan.rows.items()}
            plan.lists = [(name, count, scores.pin_memory()) for name, count, scores in plan.lists]
        return plan

    def take(self) -> Plan:
        """Return the next plan."""
        plan = self.queue.get()
        if isinstance(plan, Exception):
            raise plan
        return plan

    def close(self) -> None:
        """Stop, and drop unused plans."""
        self.over.set()
        while self.thread.is_alive():
            with contextlib.suppress(Empty):
                self.queue.get(timeout=0.05)
