"""Train the reranker: a small cross-encoder that reads a query and a text together.

Candidates are found by the finished embedder and by BM25, as in a hybrid search. The English cross-encoder scores them,
and the reranker learns its ranking. Lists of parallel text carry the scores to Chinese, on either side. Chinese
queries with a known answer add a ranking against hard negatives.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lab.training import dataset, lists, model, prepare, teachers
from lab.training.config import Config
from lab.training.prepare import View
from lab.training.tokens import autocast, batches
from lab.training.train import Log

_LOG_EVERY = 100
_SAVE_EVERY = 1_000
_DROPPED = -1e3  # scores below this mark candidates without a translation
_TEMPERATURES = (1.0, 3.0)
#: Whether query and text are Chinese, and the share of the parallel lists.
_DIRECTIONS = ((False, False, 1 / 6), (True, True, 1 / 2), (True, False, 1 / 6), (False, True, 1 / 6))


@dataclass(frozen=True)
class Batch:
    """Pairs of texts by number: English lists, parallel lists, then Chinese queries with hard negatives."""

    queries: np.ndarray
    texts: np.ndarray
    scores: np.ndarray  # [lists, size]
    english: int  # how many of the lists are English
    asks: int


def listwise(found: Tensor, wanted: Tensor, absolute: float) -> Tensor:
    """KL to the teacher's ranking at two temperatures, plus the squared distance to its scores."""
    usable = wanted > _DROPPED
    lowest = torch.finfo(torch.float32).min
    loss = torch.zeros((), device=found.device)
    for temperature in _TEMPERATURES:
        teacher = torch.softmax((wanted / temperature).masked_fill(~usable, lowest), -1)
        student = torch.log_softmax((found / temperature).masked_fill(~usable, lowest), -1)
        gap = torch.log(teacher.clamp_min(1e-9)) - student.masked_fill(~usable, 0)
        loss = loss + (teacher * gap).sum(-1).mean()
    distance = torch.where(usable, found - wanted, torch.zeros_like(found))
    return loss + absolute * distance.square().sum() / usable.sum()


class Sampler:
    """Draws the pairs of a step. The first `held_out` lists of each kind are not drawn."""

    def __init__(
        self, data: dataset.Dataset, view: View, found: dict[str, np.ndarray], config: Config
    ) -> None:
        self.data, self.view, self.config = data, view, config.rerank
        self.found = {k: v.astype(np.int64) if v.dtype == np.int32 else v for k, v in found.items()}
        self.rng = np.random.default_rng(config.rerank.seed)
        shuffle = np.random.default_rng(0).permutation
        self.rows = {name: shuffle(len(self.found[name])) for name in _KINDS}

    def draw(self) -> Batch:
        """Draw one step."""
        config, rng = self.config, self.rng
        held = config.held_out

        def some(name: str, count: int) -> np.ndarray:
            return rng.choice(self.rows[name][held:], count)

        english = some("queries", config.lists)
        parallel = [
            (some("parallel_queries", round(config.parallel_lists * share)), asked, texts)
            for asked, texts, share in _DIRECTIONS
            if config.parallel_lists
        ]
        return self.batch(english, parallel, some("chinese_asks", config.asks))

    def held_out(self) -> Iterator[tuple[str, Batch]]:
        """Return the lists that no step draws, by kind."""
        none, held = np.zeros(0, np.int64), self.config.held_out
        first = {name: rows[:held] for name, rows in self.rows.items()}
        yield "english", self.batch(first["queries"], [], none)
        for asked, texts, _ in _DIRECTIONS[1:]:
            name = f"{'zh' if asked else 'en'}-{'zh' if texts else 'en'}"
            yield name, self.batch(none, [(first["parallel_queries"], asked, texts)], none)
        yield "chinese", self.batch(none, [], first["chinese_asks"])

    def batch(
        self, english: np.ndarray, parallel: list[tuple[np.ndarray, bool, bool]], asks: np.ndarray
    ) -> Batch:
        """Return the pairs of chosen rows."""
        found, offset = self.found, self.view.offset
        size = found["candidates"].shape[1]
        queries = [np.repeat(found["queries"][english], size)]
        texts = [found["candidates"][english].reshape(-1)]
        scores = [found["scores"][english]]
        for rows, asked, texts_are in parallel:
            queries.append(np.repeat(self._side(found["parallel_queries"][rows], asked), size))
            texts.append(self._side(found["parallel_candidates"][rows], texts_are).reshape(-1))
            scores.append(found["parallel_scores"][rows])
        known = found["chinese_asks"][asks]
        rivals = np.concatenate([known[:, 1:], found["chinese_negatives"][asks]], 1)
        queries.append(np.repeat(known[:, 0] + offset, rivals.shape[1]))
        texts.append((rivals + offset).reshape(-1))
        return Batch(
            np.concatenate(queries), np.concatenate(texts), np.concatenate(scores), len(english), len(asks)
        )

    def _side(self, pairs: np.ndarray, chinese: bool) -> np.ndarray:
        side = self.data.pairs[pairs]
        return side[..., 1] + self.view.offset if chinese else side[..., 0]


_KINDS = ("queries", "parallel_queries", "chinese_asks")


class Trainer:
    """One run."""

    def __init__(self, out: Path, config: Config, sampler: Sampler, start: model.Reranker, log: Log) -> None:
        self.out, self.config, self.sampler, self.log = out, config.rerank, sampler, log
        self.tokens = sampler.view.student
        self.device = self.tokens.device
        self.network = start.to(self.device)
        self.average = copy.deepcopy(self.network).eval()
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(),
            lr=self.config.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=self.config.weight_decay,
            fused=self.device == "cuda",
        )
        self.step = 0

    def logits(self, network: model.Reranker, batch: Batch) -> Tensor:
        """Score the pairs of a batch."""
        limits = (self.config.max_query, self.config.max_text)
        with autocast(self.device):
            return network(self.tokens.paired(batch.queries, batch.texts, limits)).float()

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """Return the losses of a step."""
        config = self.config
        found = self.logits(self.network, batch)
        wanted = torch.from_numpy(batch.scores).to(self.device).float()
        ranked = found[: wanted.numel()].view(wanted.shape)
        asks = found[wanted.numel() :].view(batch.asks, -1)
        first = torch.zeros(batch.asks, dtype=torch.long, device=self.device)
        each = functional.binary_cross_entropy_with_logits(
            asks, functional.one_hot(first, asks.shape[1]).float()
        )
        losses = {
            "english": listwise(ranked[: batch.english], wanted[: batch.english], config.absolute),
            "chinese": config.asks_weight * functional.cross_entropy(asks, first),
            "each": config.asks_absolute * each,
        }
        if len(wanted) > batch.english:
            losses["parallel"] = listwise(ranked[batch.english :], wanted[batch.english :], config.absolute)
        return losses

    def rate(self) -> float:
        """Return the learning rate of this step: warm-up, then half a cosine."""
        config = self.config
        if self.step < config.warmup:
            return config.learning_rate * (self.step + 1) / config.warmup
        done = (self.step - config.warmup) / max(1, config.steps - config.warmup)
        low = config.final_rate
        return config.learning_rate * (low + (1 - low) * (1 + math.cos(math.pi * done)) / 2)

    def advance(self, batch: Batch) -> dict[str, Tensor]:
        """Do one step; return its losses."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate()
        found = self.losses(batch)
        self.optimiser.zero_grad(set_to_none=True)
        torch.stack(list(found.values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip)
        self.optimiser.step()
        self.step += 1
        keep = min(self.config.ema, self.step / (self.step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.network.parameters()), 1 - keep)
        return {name: loss.detach() for name, loss in found.items()}

    def train(self, seconds: float) -> bool:
        """Run to the last step, or save and return False after `seconds`."""
        self.resume()
        begin, sums, seen = time.monotonic(), Counter[str](), self.step
        with ThreadPoolExecutor(1) as drawing:
            ahead = [drawing.submit(self.sampler.draw) for _ in range(4)]
            while self.step < self.config.steps:
                ahead.append(drawing.submit(self.sampler.draw))
                for name, loss in self.advance(ahead.pop(0).result()).items():
                    sums[name] = sums[name] + loss  # type: ignore[assignment]
                if self.step % _LOG_EVERY == 0 or self.step == self.config.steps:
                    means = {k: round(float(v) / (self.step - seen), 3) for k, v in sums.items()}
                    self.log("step", self.step, f"rate {self.rate():.2e}", means)
                    sums, seen = Counter(), self.step
                over = bool(seconds) and time.monotonic() - begin > seconds
                if over or self.step % _SAVE_EVERY == 0:
                    self.save()
                if over:
                    self.log("time is over at step", self.step)
                    return False
        return True

    def save(self) -> None:
        """Write what a later process needs to resume."""
        state = {
            "step": self.step,
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
        }
        partial = self.out / "state.part"
        torch.save(state, partial)
        partial.replace(self.out / "state.pt")

    def resume(self) -> None:
        """Resume a saved run, if there is one. The drawing starts again with another seed."""
        path = self.out / "state.pt"
        if not path.exists():
            return
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.step = state["step"]
        self.network.load_state_dict(state["network"])
        self.average.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.sampler.rng = np.random.default_rng([self.config.seed, self.step])
        self.log("resumed at step", self.step)

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """Return how well the averaged weights rank lists that were not drawn.

        For lists with scores it is the share of lists in which the reranker and its teacher agree on the first text,
        for Chinese queries the mean reciprocal rank of the answer.
        """
        found = {}
        for name, batch in self.sampler.held_out():
            logits = torch.zeros(len(batch.queries), device=self.device)
            lengths = self.tokens.lengths[batch.queries] + self.tokens.lengths[batch.texts]
            for part in batches(lengths, 400_000 if self.device == "cuda" else 16_384):
                chosen = replace(batch, queries=batch.queries[part], texts=batch.texts[part])
                logits[torch.from_numpy(part).to(self.device)] = self.logits(self.average, chosen)
            if batch.asks:
                ranked = logits.view(batch.asks, -1)
                rank = (ranked > ranked[:, :1]).sum(1) + 1
                found[name] = round(float((1 / rank).mean()), 4)
                continue
            wanted = torch.from_numpy(batch.scores).to(self.device).float()
            ranked = logits.view(wanted.shape).masked_fill(wanted < _DROPPED, -1e4)
            found[name] = round(float((ranked.argmax(1) == wanted.argmax(1)).float().mean()), 4)
        return found

    def finish(self) -> None:
        """Write the averaged weights and the figures."""
        weights = {k: v.half().cpu().numpy() for k, v in self.average.state_dict().items()}
        np.savez(self.out / "weights.npz", **weights)
        figures = self.measure()
        (self.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
        self.log("held-out lists", figures)


def begin(work: Path, embedder: Path, view: View, config: Config, start: Path | None) -> model.Reranker:
    """Return the network to train: from stored weights, or from some layers of the cross-encoder."""
    shape = config.rerank
    loaded = dict(np.load(start)) if start else _from_teacher(work, embedder)
    stored = {name: value.astype(np.float32) for name, value in loaded.items()}
    count = 1 + max(int(k.split(".")[2]) for k in stored if k.startswith("encoder.layers."))
    chosen = np.linspace(0, count - 1, shape.layers).round().astype(int)
    weights = {k: v for k, v in stored.items() if not k.startswith("encoder.layers.")}
    for number, layer in enumerate(chosen):
        prefix = f"encoder.layers.{layer}."
        weights |= {
            f"encoder.layers.{number}.{k.removeprefix(prefix)}": v
            for k, v in stored.items()
            if k.startswith(prefix)
        }
    if shape.rank and "encoder.widen.weight" not in weights:
        _narrow(weights, shape.rank, view)
    return build(weights, config)


def build(weights: dict[str, np.ndarray], config: Config) -> model.Reranker:
    """Return a network with these weights."""
    shape = config.rerank
    network = model.Reranker(
        len(weights["encoder.word.weight"]), shape.hidden, shape.layers, shape.heads, shape.rank
    )
    network.load_state_dict({k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in weights.items()})
    return network


def _from_teacher(work: Path, embedder: Path) -> dict[str, np.ndarray]:
    """Return the cross-encoder's weights with our word table. Chinese rows come from the embedder."""
    from tokenizers import Tokenizer

    from lab.training import export

    given = teachers.load(work / "teachers" / "cross-encoder.npz")
    pieces = Tokenizer.from_file(str(embedder / "tokenizer.json")).get_vocab()
    english = prepare.open_tokenizer(work, "cross-encoder").get_vocab()
    table = export.read(embedder)["encoder.word.weight"]
    whole = model.CrossEncoder(given).state_dict()
    stored = {k: v.numpy() for k, v in whole.items()}
    stored["encoder.word.weight"] = model.word_rows(given["word"], table, pieces, english, pieces)
    return stored


def _narrow(weights: dict[str, np.ndarray], rank: int, view: View) -> None:
    """Replace the word table by its main axes. Frequent pieces count more. The mean goes to the positions."""
    table = weights["encoder.word.weight"]
    often = torch.bincount(view.student.flat.long(), minlength=len(table)).float().cpu().numpy()
    weight = np.sqrt(often + 1)[:, None]
    mean = (table * weight).sum(0) / weight.sum()
    centred = table - mean
    _, axes = np.linalg.eigh((centred * weight).T @ centred)
    main = axes[:, ::-1][:, :rank]
    weights["encoder.word.weight"] = centred @ main
    weights["encoder.widen.weight"] = np.ascontiguousarray(main)
    weights["encoder.position.weight"] = weights["encoder.position.weight"] + mean


def run(
    work: Path, out: Path, configs: dict[str, Config], embedder: Path, start: Path | None, seconds: float
) -> None:
    """Train, or resume training, and write `weights.npz`, `figures.json` and `log.txt` to `out`.

    Several configurations are trained in turn, each in its own folder in `out`.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sampler: Sampler | None = None
    for name, config in configs.items():
        target = out / name if len(configs) > 1 else out
        if (target / "weights.npz").exists():
            continue
        log = Log(target / "log.txt")
        if sampler is None:
            sampler = _prepare(work, embedder, config, device, log)
        torch.manual_seed(config.rerank.seed)
        sampler = Sampler(sampler.data, sampler.view, sampler.found, config)
        network = begin(work, embedder, sampler.view, config, start)
        trainer = Trainer(target, config, sampler, network, log)
        log("torch", torch.__version__, device, json.dumps(config.as_dict()["rerank"]))
        if trainer.train(seconds):
            trainer.finish()


def _prepare(work: Path, embedder: Path, config: Config, device: str, log: Log) -> Sampler:
    """Read the data, encode it with the embedder, and find and score the lists."""
    if config.rerank.compile:
        model.compile_layers(device)
    data = dataset.load(work)
    log("data", data.digest())
    view = prepare.run_own(work, data, embedder, config, device)
    log("the embedder's view is ready")
    sizes = replace(
        config.lists, queries=config.rerank.queries, parallel_queries=config.rerank.parallel_queries
    )
    found: dict[str, Any] = lists.run(work, data, view, replace(config, lists=sizes), "rerank-lists")
    log("lists", {k: v.shape for k, v in found.items() if v.ndim == 2})
    return Sampler(data, view, found, config)
