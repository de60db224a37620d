"""Train the student: encode what `sampling` draws, sum the losses, average the weights, save, resume."""

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

from lab.training import dataset, evaluate, lists, losses, model, prepare, teachers
from lab.training.config import Config
from lab.training.sampling import Feeder, Inputs, Plan, Sampler
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
