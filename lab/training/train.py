"""Train the student: sample, encode, sum the losses, average the weights, save, resume."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lab.training import dataset, evaluate, lists, losses, model, prepare, queries, teachers
from lab.training.config import Config
from lab.training.prepare import View
from lab.training.tokens import Tokens, autocast, to_device, vectors

_LOG_EVERY = 100
_SAVE_EVERY = 1_000


class Log:
    """A log on the screen and in a file, with the seconds since the start."""

    def __init__(self, path: Path) -> None:
        self.path, self.begin = path, time.monotonic()
        path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, *words: Any) -> None:
        line = f"{time.monotonic() - self.begin:7.1f}s " + " ".join(map(str, words))
        print(line, flush=True)
        with self.path.open("a", encoding="utf-8") as out:
            out.write(line + "\n")


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


def load_inputs(work: Path, config: Config, device: str, log: Log) -> Inputs:
    """Read the data, and read or compute the teachers' view and the lists."""
    if config.train.compile and device == "cuda":
        model.Layer.forward = torch.compile(model.Layer.forward, dynamic=True)  # type: ignore
    data = dataset.load(work)
    log("data", data.digest())
    view = prepare.run(work, data, config, device)
    log("teachers' view ready")
    found: dict[str, Any] = lists.run(work, data, view, config)
    log("lists", {k: v.shape for k, v in found.items() if v.ndim == 2})
    return Inputs(data, view, found)


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


class Trainer:
    """One run."""

    def __init__(self, work: Path, out: Path, config: Config, device: str, inputs: Inputs, log: Log) -> None:
        self.work, self.out, self.config, self.device, self.log = work, out, config, device, log
        self.inputs, self.data, self.view = inputs, inputs.data, inputs.view
        self.found = dict(inputs.found)
        torch.manual_seed(config.train.seed)
        self.student = self._student()
        self.average = copy.deepcopy(self.student).eval()
        self.optimiser = torch.optim.AdamW(
            self.student.parameters(),
            lr=config.train.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=config.train.weight_decay,
            fused=device == "cuda",
        )
        self.step = 0
        self.remined = 0
        self.sampler = Sampler(inputs, self.found, config)
        self.state = self.sampler.rng.bit_generator.state

    def _student(self) -> model.Student:
        shape = self.config.student
        from tokenizers import Tokenizer

        pieces = Tokenizer.from_file(str(self.work / "tokenizer.json")).get_vocab()
        student = model.Student(len(pieces), shape.hidden, shape.layers, shape.heads)
        folder = self.work / "teachers"
        model.start(
            student,
            teachers.load(folder / "minilm.npz"),
            teachers.load(folder / "bge-small-zh.npz"),
            pieces,
            prepare.open_tokenizer(self.work, "bge-small-en").get_vocab(),
            prepare.open_tokenizer(self.work, "bge-small-zh").get_vocab(),
        )
        student = student.to(self.device)
        self._fit_projection(student)
        return student

    @torch.no_grad()
    def _fit_projection(self, student: model.Student) -> None:
        """Start with the projection that best maps MiniLM's mean onto the English targets."""
        chosen = np.random.default_rng(0).permutation(self.view.offset)[:50_000]
        given = vectors(student.mean, self.view.student, chosen, unit=False).float()
        wanted = self.view.target["en"][torch.from_numpy(chosen).to(self.device)].float()
        middle = given.mean(0)
        centred = given - middle
        ridge = 1e-3 * len(given) * centred.var() * torch.eye(given.shape[1], device=given.device)
        matrix = torch.linalg.solve(centred.T @ centred + ridge, centred.T @ wanted)
        student.project.weight.copy_(matrix.T)
        student.project.bias.copy_(-middle @ matrix)

    def losses(self, plan: Plan) -> dict[str, Tensor]:
        """Encode one step's texts together and return the losses."""
        rows = {name: to_device(found, self.device) for name, found in plan.rows.items()}
        scores = [to_device(found, self.device) for _, _, found in plan.lists]
        texts = self.view.student.packed(plan.texts, plan.lengths)
        with autocast(self.device):
            v = self.student(texts).split(plan.groups)
        heat = self.config.train.temperature
        found = self._distil(v, rows, heat)
        wide = self.config.student.hidden
        native = self.view.native
        asks = [
            losses.contrast(v[4], v[5], losses.alike(native["en"][rows["ask_en"]].float()), heat),
            losses.contrast(v[6], v[7], losses.alike(native["zh"][rows["ask_zh"]].float()), heat,
                            v[8].view(len(v[6]), -1, wide)),
            losses.contrast(v[9], v[10], losses.alike(native["en"][rows["ask_pair"]].float()), heat),
        ]  # fmt: skip
        found["ask"] = torch.stack(asks).mean()
        total: Counter[str] = Counter()
        for name, count, _ in plan.lists:
            total[name] += count
        for number, (name, count, _) in enumerate(plan.lists):
            at = 11 + 2 * number
            loss = losses.ranking(v[at], v[at + 1].view(count, -1, wide), scores[number], heat)
            found[name] = found.get(name, torch.zeros_like(loss)) + loss * count / total[name]
        return found

    def _distil(self, v: Sequence[Tensor], rows: dict[str, Tensor], heat: float) -> dict[str, Tensor]:
        found = {}
        for place, language in enumerate(dataset.LANGUAGES):
            wanted = self.view.target[language][rows[language]].float()
            own = self.view.native[language][rows[language]].float()
            found[f"target_{language}"] = losses.target(v[place], wanted)
            found[f"spread_{language}"] = losses.spread(v[place], v[place], own, heat)
        wanted = self.view.target["en"][rows["pair"]].float()
        near = losses.alike(wanted)
        found["target_pair"] = losses.target(v[2], wanted) + losses.target(v[3], wanted)
        found["spread_pair"] = losses.spread(v[3], v[2], wanted, heat)
        found["pair"] = losses.contrast(v[3], v[2], near, heat)
        found["pair"] = (found["pair"] + losses.contrast(v[2], v[3], near, heat)) / 2
        return found

    def weight(self, name: str) -> float:
        """Return a loss's weight at this step: it changes linearly to `late` times the first weight."""
        config = self.config.train
        return config.weights[name] * (1 + (config.late.get(name, 1.0) - 1) * self.step / config.steps)

    def rate(self) -> float:
        """Return the learning rate of this step: warm-up, then half a cosine."""
        config = self.config.train
        if self.step < config.warmup:
            return config.learning_rate * (self.step + 1) / config.warmup
        done = (self.step - config.warmup) / max(1, config.steps - config.warmup)
        low = config.final_rate
        return config.learning_rate * (low + (1 - low) * (1 + math.cos(math.pi * done)) / 2)

    def advance(self, plan: Plan) -> dict[str, Tensor]:
        """Do one step; return its losses."""
        config = self.config.train
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate()
        found = self.losses(plan)
        total = torch.stack([self.weight(name) * loss for name, loss in found.items()]).sum()
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.student.parameters(), config.clip)
        self.optimiser.step()
        self.step += 1
        self.state = plan.state
        keep = min(config.ema, self.step / (self.step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(  # a loop over the public function is far slower
                list(self.average.parameters()), list(self.student.parameters()), 1 - keep
            )
        return {name: loss.detach() for name, loss in found.items()}

    def remine(self) -> None:
        """Let the student find candidates, and score them with the cross-encoder."""
        config = self.config.lists
        self.remined += 1
        if not self.config.train.use_lists:
            return
        rng = np.random.default_rng(self.config.train.seed + self.remined)
        known = self.sampler.list_rows[self.sampler.list_rows < len(self.found["gold"])]
        rows = rng.permutation(known)[: config.remine_queries]
        asked = self.found["queries"][rows].astype(np.int64)
        gold = self.found["gold"][rows].astype(np.int64)
        english = np.arange(self.view.offset)
        found = vectors(self.average, self.view.student, english)
        pool = self.found["pool"].astype(np.int64)
        new = lists.mine(asked, gold, pool, found, None, config, lists.STUDENT_RANKS)
        scores = lists.Scorer(self.work, self.view.english, config.max_tokens)(asked, new)
        more = len(self.found["queries"]) + np.arange(len(asked))
        for name, fresh in (("queries", asked), ("candidates", new), ("scores", scores)):
            self.found[name] = np.concatenate([self.found[name], fresh])
        self.sampler.list_rows = np.concatenate([self.sampler.list_rows, more])
        self.log("student's own candidates", new.shape)

    def save(self) -> None:
        """Write what a later process needs to resume."""
        state = {
            "step": self.step, "remined": self.remined, "rng": self.state,
            "list_rows": self.sampler.list_rows,
            "student": self.student.state_dict(), "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "lists": {k: self.found[k] for k in ("queries", "candidates", "scores")},
        }  # fmt: skip
        partial = self.out / "state.part"
        torch.save(state, partial)
        partial.replace(self.out / "state.pt")

    def resume(self) -> None:
        """Resume a saved run, if there is one."""
        path = self.out / "state.pt"
        if not path.exists():
            return
        state = torch.load(path, map_location=self.device, weights_only=False)
        self.step, self.remined = state["step"], state["remined"]
        self.state, self.sampler.list_rows = state["rng"], state["list_rows"]
        self.student.load_state_dict(state["student"])
        self.average.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.found.update(state["lists"])
        self.log("resumed at step", self.step)

    def train(self, seconds: float) -> bool:
        """Run to the last step, or save and return False after `seconds`."""
        config = self.config.train
        self.resume()
        begin, sums, seen = time.monotonic(), Counter(), self.step
        feeder: Feeder | None = None
        try:
            while self.step < config.steps:
                if self.step >= self._next_mining():
                    self._stop(feeder)
                    feeder = None
                    self.remine()
                if feeder is None:
                    self.sampler.rng.bit_generator.state = self.state
                    feeder = Feeder(self.sampler, pin=self.device == "cuda")
                for name, loss in self.advance(feeder.take()).items():
                    sums[name] = sums[name] + loss
                if self.step % _LOG_EVERY == 0 or self.step == config.steps:
                    spent = self.step - seen
                    means = {name: round(float(total) / spent, 3) for name, total in sums.items()}
                    self.log("step", self.step, f"rate {self.rate():.2e}", means)
                    sums, seen = Counter(), self.step
                if seconds and time.monotonic() - begin > seconds:
                    self.save()
                    self.log("time is over at step", self.step)
                    return False
                if self.step % _SAVE_EVERY == 0:
                    self.save()
        finally:
            self._stop(feeder)
        return True

    def _next_mining(self) -> float:
        shares = self.config.lists.remine_at
        return shares[self.remined] * self.config.train.steps if self.remined < len(shares) else math.inf

    def _stop(self, feeder: Feeder | None) -> None:
        if feeder:
            feeder.close()

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Encode any texts with the averaged weights."""
        from tokenizers import Tokenizer

        opened = Tokenizer.from_file(str(self.work / "tokenizer.json"))
        tokens = Tokens(opened, texts, self.config.student.max_length, self.device)
        return vectors(self.average, tokens).float().cpu().numpy()

    def held_out(self) -> float:
        """Return how often a held-out Chinese text finds its English text first."""
        both = self.data.pairs[self.view.held_out]
        english = vectors(self.average, self.view.student, both[:, 0]).float()
        chinese = vectors(self.average, self.view.student, both[:, 1] + self.view.offset).float()
        best = (chinese @ english.T).argmax(1).cpu().numpy()
        same = both[best, 0] == both[:, 0]
        return float(same.mean())

    @torch.no_grad()
    def finish(self, bench: Path | None) -> None:
        """Rotate the space, write the averaged weights and the figures."""
        self._rotate()
        weights = {k: v.half().cpu().numpy() for k, v in self.average.state_dict().items()}
        np.savez(self.out / "weights.npz", **weights)
        self.log("held-out pairs, first hit", round(self.held_out(), 4))
        if bench:
            results = evaluate.evaluate(bench, self.encode_texts, hybrid=False)
            (self.out / "figures.json").write_text(json.dumps(results, indent=1) + "\n")
            for name, result in results.items():
                self.log(name, {m: v[0] for m, v in result["vector"].items()})

    def _rotate(self) -> None:
        """Rotate the space so that its first axes carry the most information, which helps shortened vectors.

        A rotation does not change similarities between whole vectors.
        """
        rng = np.random.default_rng(0)
        chosen = rng.permutation(len(self.view.student.lengths))[:100_000]
        found = vectors(self.average, self.view.student, chosen).float()
        _, axes = torch.linalg.eigh(found.T @ found)
        turn = axes.flip(1)
        project = self.average.project
        project.weight.copy_(turn.T @ project.weight)
        project.bias.copy_(turn.T @ project.bias)


def prepare_only(work: Path, out: Path, config: Config) -> None:
    """Compute the teachers' view and the lists, and save them in the work folder."""
    load_inputs(work, config, _device(), Log(out / "log.txt"))


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def run(work: Path, out: Path, configs: dict[str, Config], seconds: float, bench: Path | None) -> None:
    """Train, or resume training, and write `weights.npz`, `figures.json` and `log.txt` to `out`.

    Several configurations are trained in turn, each in its own folder in `out`.
    """
    device = _device()
    inputs: Inputs | None = None
    for name, config in configs.items():
        target = out / name if len(configs) > 1 else out
        if (target / "weights.npz").exists():
            continue
        log = Log(target / "log.txt")
        inputs = inputs or load_inputs(work, config, device, log)
        trainer = Trainer(work, target, config, device, inputs, log)
        log("torch", torch.__version__, device, json.dumps(config.as_dict()))
        if trainer.train(seconds):
            trainer.finish(bench)
        del trainer
