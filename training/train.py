"""Train the student: sample, encode, sum the losses, average the weights, save, resume."""

from __future__ import annotations

import copy
import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from training import dataset, evaluate, lists, losses, model, prepare, teachers
from training.config import Config
from training.prepare import View
from training.tokens import Tokens, autocast, batches, vectors

_LOG_EVERY = 100
_SAVE_EVERY = 1_000


class Log:
    """Lines for people, on the screen and in a file, with the seconds since the start."""

    def __init__(self, path: Path) -> None:
        self.path, self.begin = path, time.monotonic()
        path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, *words: Any) -> None:
        line = f"{time.monotonic() - self.begin:7.1f}s " + " ".join(map(str, words))
        print(line, flush=True)
        with self.path.open("a", encoding="utf-8") as out:
            out.write(line + "\n")


class Sampler:
    """Draws the texts of a step; numbers are the student's (Chinese after English)."""

    def __init__(self, data: dataset.Dataset, view: View, found: dict[str, Any], config: Config):
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

    def mono(self, language: str) -> np.ndarray:
        """Half at random, half from clusters, where rivals are hard; long texts on top."""
        config = self.config
        size = config.mono_en if language == "en" else config.mono_zh
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
            parts.append(self.rng.choice(long, config.long))
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

    def rows(self, name: str, count: int) -> np.ndarray:
        """Draw row numbers of one of the lists' arrays."""
        return self.rng.integers(0, len(self.found[name]), count)

    def either(self, pairs: np.ndarray, chinese: bool) -> np.ndarray:
        """Take one side of pairs, as the student's numbers."""
        side = self.data.pairs[pairs]
        return side[..., 1] + self.view.offset if chinese else side[..., 0]


class Trainer:
    """One run."""

    def __init__(self, work: Path, out: Path, config: Config, device: str) -> None:
        self.work, self.out, self.config, self.device = work, out, config, device
        self.log = Log(out / "log.txt")
        self.data = dataset.load(work)
        self.log("data", self.data.digest())
        self.view = prepare.run(work, self.data, config, device)
        self.log("teachers' view ready")
        self.found: dict[str, Any] = lists.run(work, self.data, self.view, config)
        self.log("lists", {k: v.shape for k, v in self.found.items() if v.ndim == 2})
        if config.train.compile and device == "cuda":
            model.Layer.forward = torch.compile(model.Layer.forward, dynamic=True)  # type: ignore
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
        self.remined = False
        self.sampler = Sampler(self.data, self.view, self.found, config)

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
        """Start the projection where it maps MiniLM's mean best onto the English targets."""
        chosen = np.random.default_rng(0).permutation(self.view.offset)[:50_000]
        given = vectors(student.mean, self.view.student, chosen, unit=False).float()
        wanted = self.view.target["en"][torch.from_numpy(chosen).to(self.device)].float()
        middle = given.mean(0)
        centred = given - middle
        ridge = 1e-3 * len(given) * centred.var() * torch.eye(given.shape[1], device=given.device)
        matrix = torch.linalg.solve(centred.T @ centred + ridge, centred.T @ wanted)
        student.project.weight.copy_(matrix.T)
        student.project.bias.copy_(-middle @ matrix)

    def encode(self, groups: Sequence[np.ndarray]) -> list[Tensor]:
        """Encode several groups of texts in batches of like length; one tensor a group."""
        chosen = np.concatenate([group.reshape(-1) for group in groups])
        tokens, parts, order = self.view.student, [], []
        for part in batches(tokens.lengths[chosen], 65_536):
            with autocast(self.device):
                parts.append(self.student(*tokens.rows(chosen[part])))
            order.append(part)
        place = torch.from_numpy(np.argsort(np.concatenate(order))).to(self.device)
        found = torch.cat(parts)[place]
        return list(found.split([group.size for group in groups]))

    def losses(self) -> dict[str, Tensor]:
        """Sample one step and return its losses."""
        config, view, draw = self.config.train, self.view, self.sampler
        mono = {language: draw.mono(language) for language in dataset.LANGUAGES}
        pairs = draw.pairs()
        both = self.data.pairs[pairs]
        english = view.asks["en"][draw.rng.integers(0, len(view.asks["en"]), config.asks // 3)]
        rows = draw.rows("chinese_asks", config.asks // 3)
        chinese, negatives = (self.found[f"chinese_{n}"][rows] for n in ("asks", "negatives"))
        cross = view.pair_asks[draw.rng.integers(0, len(view.pair_asks), config.asks // 3)]
        turn = draw.rng.random(2) < 0.5
        groups = [
            mono["en"], mono["zh"] + view.offset, both[:, 0], both[:, 1] + view.offset,
            english[:, 0], english[:, 1], chinese[:, 0] + view.offset, chinese[:, 1] + view.offset,
            negatives + view.offset,
            draw.either(cross[:, 0], bool(turn[0])), draw.either(cross[:, 1], bool(turn[1])),
        ]  # fmt: skip
        plans = self._list_plans() if config.use_lists else []
        for plan in plans:
            groups += plan[:2]
        v = self.encode(groups)
        heat = config.temperature
        found = self._distil(v, mono, both, heat)
        wide = self.config.student.hidden
        asks = [
            losses.contrast(v[4], v[5], self._alike("en", english[:, 1]), heat),
            losses.contrast(v[6], v[7], self._alike("zh", chinese[:, 1]), heat,
                            v[8].view(len(rows), -1, wide)),
            losses.contrast(v[9], v[10], self._alike("en", self.data.pairs[cross[:, 1], 0]), heat),
        ]  # fmt: skip
        found["ask"] = torch.stack(asks).mean()
        asked_by = Counter()
        for asked, _, _, name in plans:
            asked_by[name] += len(asked)
        for number, (asked, _, scores, name) in enumerate(plans):
            at = 11 + 2 * number
            lined = v[at + 1].view(len(asked), -1, wide)
            loss = losses.ranking(v[at], lined, scores, heat)
            found[name] = found.get(name, torch.zeros_like(loss)) + loss * len(asked) / asked_by[name]
        return found

    def _distil(
        self, v: list[Tensor], mono: dict[str, np.ndarray], both: np.ndarray, heat: float
    ) -> dict[str, Tensor]:
        found = {}
        for place, language in enumerate(dataset.LANGUAGES):
            wanted = self._take(self.view.target[language], mono[language])
            own = self._take(self.view.native[language], mono[language])
            found[f"target_{language}"] = losses.target(v[place], wanted)
            found[f"spread_{language}"] = losses.spread(v[place], v[place], own, heat)
        wanted = self._take(self.view.target["en"], both[:, 0])
        near = losses.alike(wanted)
        found["target_pair"] = losses.target(v[2], wanted) + losses.target(v[3], wanted)
        found["spread_pair"] = losses.spread(v[3], v[2], wanted, heat)
        found["pair"] = losses.contrast(v[3], v[2], near, heat)
        found["pair"] = (found["pair"] + losses.contrast(v[2], v[3], near, heat)) / 2
        return found

    def _list_plans(self) -> list[tuple[np.ndarray, np.ndarray, Tensor, str]]:
        """Draw English lists, and parallel lists in each of four language directions."""
        config, found, draw = self.config.train, self.found, self.sampler
        rows = draw.rows("queries", config.lists)
        plans = [(found["queries"][rows], found["candidates"][rows],
                  torch.from_numpy(found["scores"][rows]).to(self.device), "list")]  # fmt: skip
        directions = ((False, False), (True, True), (True, False), (False, True))
        count = config.parallel_lists // len(directions)
        for asked, texts in directions:
            rows = draw.rows("parallel_queries", count)
            carry = config.carry_chinese
            plans.append((
                draw.either(found["parallel_queries"][rows], asked and carry),
                draw.either(found["parallel_candidates"][rows], texts and carry),
                torch.from_numpy(found["parallel_scores"][rows]).to(self.device),
                "list_parallel",
            ))  # fmt: skip
        return plans

    def _take(self, table: Tensor, rows: np.ndarray) -> Tensor:
        return table[torch.from_numpy(rows).to(self.device)].float()

    def _alike(self, language: str, rows: np.ndarray) -> Tensor:
        return losses.alike(self._take(self.view.native[language], rows))

    def rate(self) -> float:
        """Return the learning rate of this step: warm-up, then half a cosine."""
        config = self.config.train
        if self.step < config.warmup:
            return config.learning_rate * (self.step + 1) / config.warmup
        done = (self.step - config.warmup) / max(1, config.steps - config.warmup)
        low = config.final_rate
        return config.learning_rate * (low + (1 - low) * (1 + math.cos(math.pi * done)) / 2)

    def advance(self) -> dict[str, Tensor]:
        """Do one step; return its losses."""
        config = self.config.train
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate()
        found = self.losses()
        total = torch.stack([config.weights[name] * loss for name, loss in found.items()]).sum()
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.student.parameters(), config.clip)
        self.optimiser.step()
        self.step += 1
        keep = min(config.ema, self.step / (self.step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(  # the public loop is far slower
                list(self.average.parameters()), list(self.student.parameters()), 1 - keep
            )
        return {name: loss.detach() for name, loss in found.items()}

    def remine(self) -> None:
        """Let the student itself find candidates, and have the cross-encoder score them."""
        config = self.config.lists
        self.remined = True
        if not self.config.train.use_lists:
            return
        rng = np.random.default_rng(self.config.train.seed + 1)
        rows = rng.permutation(len(self.found["queries"]))[: config.remine_queries]
        asked = self.found["queries"][rows].astype(np.int64)
        gold = self.found["gold"][rows].astype(np.int64)
        english = np.arange(self.view.offset)
        found = vectors(self.average, self.view.student, english)
        pool = self.found["pool"].astype(np.int64)
        new = lists.mine(asked, gold, pool, found, None, config, lists.STUDENT_RANKS)
        scores = lists.Scorer(self.work, self.view.english, config.max_tokens)(asked, new)
        for name, fresh in (("queries", asked), ("candidates", new), ("scores", scores)):
            self.found[name] = np.concatenate([self.found[name], fresh])
        self.log("student's own candidates", new.shape)

    def save(self) -> None:
        """Write what a later process needs to go on."""
        state = {
            "step": self.step, "remined": self.remined, "rng": self.sampler.rng.bit_generator.state,
            "student": self.student.state_dict(), "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "lists": {k: self.found[k] for k in ("queries", "candidates", "scores")},
        }  # fmt: skip
        partial = self.out / "state.part"
        torch.save(state, partial)
        partial.replace(self.out / "state.pt")

    def resume(self) -> None:
        """Take up a saved run, if there is one."""
        path = self.out / "state.pt"
        if not path.exists():
            return
        state = torch.load(path, map_location=self.device, weights_only=False)
        self.step, self.remined = state["step"], state["remined"]
        self.sampler.rng.bit_generator.state = state["rng"]
        self.student.load_state_dict(state["student"])
        self.average.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.found.update(state["lists"])
        self.log("resumed at step", self.step)

    def train(self, seconds: float) -> bool:
        """Run to the last step, or save and return False when `seconds` are over."""
        config = self.config.train
        self.resume()
        begin, sums, seen = time.monotonic(), Counter(), self.step
        while self.step < config.steps:
            if not self.remined and self.step >= self.config.lists.remine_at * config.steps:
                self.remine()
            for name, loss in self.advance().items():
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
        return True

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Encode any texts with the averaged weights."""
        from tokenizers import Tokenizer

        opened = Tokenizer.from_file(str(self.work / "tokenizer.json"))
        tokens = Tokens(opened, texts, self.config.student.max_length, self.device)
        return vectors(self.average, tokens).float().cpu().numpy()

    def held_out(self) -> float:
        """Return how often a held-out Chinese text finds its own English text first."""
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
        """Turn the space so that its first axes carry most: cut vectors then lose least.

        A rotation leaves every similarity of whole vectors as it is.
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
    """Compute the teachers' view and the lists, and leave them in the work folder."""
    Trainer(work, out, config, _device())


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def run(work: Path, out: Path, config: Config, seconds: float, bench: Path | None) -> None:
    """Train, or go on training, and write `weights.npz`, `figures.json` and `log.txt` to `out`."""
    device = _device()
    out.mkdir(parents=True, exist_ok=True)
    if (out / "weights.npz").exists():
        return
    trainer = Trainer(work, out, config, device)
    trainer.log("torch", torch.__version__, device, json.dumps(config.as_dict()))
    if trainer.train(seconds):
        trainer.finish(bench)
