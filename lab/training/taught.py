"""The reranker learns from a language model: lists of a question and candidate texts, which the model scores.

`pool.prepare` collects the questions and the texts: scenes with their questions, text that the language model wrote,
and queries of the corpora. On a GPU, `score_lists` lets the language model write questions for its own texts, finds
candidates with the embedder and scores them with the teacher: the first layers of the language model as a
cross-encoder, tuned on the questions of scenes. `teach` then trains the reranker. Its word vectors stay as they are,
because the reader of changes shares them.
"""

from __future__ import annotations

import copy
import json
import math
import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lab.training import judge, model, tokens
from lab.training.config import Config
from lab.training.pairs import Pair
from lab.training.pool import Pool, ask, candidates
from lab.training.tokens import Tokens, autocast

Log = Any
_PARTS = ("Text: ", "\nQuestion: ", "\nIs the question answered by the text?")
_FROZEN = ("encoder.word", "encoder.widen", "encoder.position", "encoder.kind", "encoder.norm")
_MASK = 4
#: The kinds of questions that are not of scenes.
_OTHERS = ("en", "zh", "cross", "written", "written miss")


# ---- the teacher --------------------------------------------------------------------------------------------------


class Prompts(judge.Prompts):
    """Pairs of a text and a question, as prompts."""

    def __init__(self, tokenizer: Any, found: Sequence[Pair], limit: int) -> None:
        super().__init__(tokenizer, found, limit, _PARTS)


def open_teacher(teacher: judge.Judge, stored: Path) -> None:
    """Add the first corrections of a cross-encoder to the matrices of the judge, and take its output."""
    network = teacher.network
    given = {
        name: value for path in sorted(stored.glob("lora_*.npz")) for name, value in np.load(path).items()
    }

    def correction(name: str) -> Tensor:
        up, down = (torch.from_numpy(given[f"{name}.{part}"]).to(network.device).float() for part in "BA")
        return 2 * up @ down

    with torch.no_grad():
        for place, block in enumerate(network.blocks):
            for part, names in (("qkv", "qkv"), ("o", ("o",)), ("gate", ("gate", "up")), ("down", ("down",))):
                whole = torch.cat([correction(f"blocks.{place}.{name}") for name in names])
                weight = getattr(block, part).weight
                weight += whole.to(weight.dtype)
        teacher.head.weight.copy_(torch.from_numpy(given["head.weight"]))
        teacher.head.bias.copy_(torch.from_numpy(given["head.bias"]))


def scene_pairs(pool: Pool, found: np.ndarray, rng: random.Random, count: int) -> list[Pair]:
    """Return pairs of a text and a question of the scenes: answered or not. Only candidates that are known count."""
    out = []
    for each, row in zip(pool.asks, found.tolist(), strict=True):
        if each.kind not in ("scene", "topic", "miss"):
            continue
        gold = set(each.gold)
        out += [Pair(pool.texts[text], each.query, 1.0, each.kind) for text in each.gold]
        out += [
            Pair(pool.texts[text], each.query, 0.0, each.kind)
            for text in rng.sample(each.near, len(each.near) // 2)
        ]
        out += [
            Pair(pool.texts[text], each.query, 0.0, each.kind)
            for text in row
            if text not in gold and text not in each.near
        ]
    rng.shuffle(out)
    return out[:count]


def tune(
    teacher: judge.Judge,
    known: tuple[Prompts, np.ndarray],
    anchors: tuple[Prompts, np.ndarray],
    seconds: float,
    config: judge.JudgeConfig,
    log: Log,
) -> None:
    """Train on known pairs for some seconds. The scores of other pairs stay near what they were."""
    device, own = teacher.network.device, list(teacher.trained().values())
    optimiser = torch.optim.AdamW(own, lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.0)
    rng = np.random.default_rng(config.seed)
    teacher.train()
    begin, step, totals = time.monotonic(), 0, torch.zeros(2, device=device)
    while (done := (time.monotonic() - begin) / seconds) < 1:
        rate = min(1, (step + 1) / config.warmup) * (0.03 + 0.97 * (1 + math.cos(math.pi * done)) / 2)
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate * rate
        optimiser.zero_grad(set_to_none=True)
        for place, (prompts, values) in enumerate((known, anchors)):
            chosen = rng.integers(0, len(values), config.pairs // 2)
            found = teacher(*prompts.batch(chosen, device))
            wanted = torch.from_numpy(values[chosen].astype(np.float32)).to(device)
            if place:
                loss = 0.05 * functional.mse_loss(found, wanted)
            else:
                loss = functional.binary_cross_entropy_with_logits(found, wanted)
            loss.backward()
            totals[place] += loss.detach()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimiser.step()
        step += 1
        if step % 50 == 0:
            log("teacher step", step, f"{done:.2f}", "losses", [round(float(x) / 50, 4) for x in totals])
            totals.zero_()
    log("teacher tuned in", step, "steps")


def score(
    teacher: judge.Judge,
    tokenizer: Any,
    pool: Pool,
    found: np.ndarray,
    order: Sequence[int],
    config: Config,
    seconds: float,
    log: Log,
) -> np.ndarray:
    """Score lists in the given order until the time is over; NaN for the others."""
    out = np.full(found.shape, np.nan, np.float32)
    begin, size = time.monotonic(), 3_000
    with ThreadPoolExecutor(1) as ahead:

        def prompts(rows: Sequence[int]) -> Prompts:
            chosen = [
                Pair(pool.texts[text], pool.asks[row].query, 0, "") for row in rows for text in found[row]
            ]
            return Prompts(tokenizer, chosen, config.taught.teacher_tokens)

        parts = [order[start : start + size] for start in range(0, len(order), size)]
        waiting = ahead.submit(prompts, parts[0]) if parts else None
        for place, rows in enumerate(parts):
            if time.monotonic() - begin > seconds or waiting is None:
                break
            ready = waiting.result()
            waiting = ahead.submit(prompts, parts[place + 1]) if place + 1 < len(parts) else None
            out[list(rows)] = judge.score(teacher, ready, config.judge).reshape(len(rows), -1)
            if place % 4 == 3:
                log("scored", (place + 1) * size, "lists")
    return out


# ---- the student --------------------------------------------------------------------------------------------------


class Lists:
    """Questions, candidates and scores of the lists that were scored, by number."""

    def __init__(
        self, pool: Pool, found: np.ndarray, scores: np.ndarray, tokenizer: Any, config: Config, device: str
    ) -> None:
        own = config.taught
        good = np.flatnonzero(np.isfinite(scores).all(1))
        kinds = np.array([ask.kind for ask in pool.asks])
        held = np.array([kind.startswith("held out") for kind in kinds]) | (
            np.random.default_rng(own.seed).random(len(kinds)) < own.held_out
        )
        self.kinds, self.scores, self.found = kinds, scores, found
        self.train, self.measured = good[~held[good]], good[held[good]]
        self.count = len(pool.texts)
        texts = [*pool.texts, *(ask.query for ask in pool.asks)]
        self.tokens = Tokens(tokenizer, texts, config.rerank.max_text + 2, device)
        self.limits = config.rerank.max_query, config.rerank.max_text

    def read(self, rows: np.ndarray) -> tuple[model.Packed, Tensor]:
        """Return the pairs of some lists, and their scores."""
        size = self.found.shape[1]
        packed = self.tokens.paired(
            np.repeat(self.count + rows, size), self.found[rows].reshape(-1), self.limits
        )
        return packed, torch.from_numpy(self.scores[rows]).to(self.tokens.device)


def loss_of(found: Tensor, wanted: Tensor, absolute: float) -> Tensor:
    """Return the distance of two lists of scores: as distributions, as probabilities, and a little as numbers."""
    out = absolute * (found - wanted).square().mean()
    out = out + functional.binary_cross_entropy_with_logits(found, torch.sigmoid(wanted))
    for heat in (1.0, 3.0):
        target = torch.softmax(wanted / heat, -1)
        ours = torch.log_softmax(found / heat, -1)
        out = out + (target * (target.clamp_min(1e-9).log() - ours)).sum(-1).mean()
    return out


def load(weights: Mapping[str, np.ndarray], config: Config) -> model.Reranker:
    """Return the reranker with these weights."""
    shape = config.rerank
    table = weights["encoder.word.weight"].shape
    layers = sum(name.endswith(".qkv.weight") for name in weights)
    network = model.Reranker(table[0], shape.hidden, layers, shape.heads, shape.rank)
    network.load_state_dict(
        {k: torch.from_numpy(np.ascontiguousarray(v.astype(np.float32))) for k, v in weights.items()}
    )
    return network


def train(
    lists: Lists, network: model.Reranker, config: Config, seconds: float, device: str, log: Log
) -> model.Reranker:
    """Train for some seconds; return the averaged weights."""
    own = config.taught
    for name, value in network.named_parameters():
        value.requires_grad_(not name.startswith(_FROZEN))
    weights = [value for value in network.parameters() if value.requires_grad]
    average = copy.deepcopy(network).eval()
    averaged = [value for value in average.parameters() if value.requires_grad]
    optimiser = torch.optim.AdamW(
        weights, lr=own.learning_rate, betas=(0.9, 0.98), weight_decay=own.weight_decay
    )
    rng = np.random.default_rng(own.seed)
    shares = {kind: own.shares.get(kind, 1.0) for kind in set(lists.kinds[lists.train])}
    chance = np.array([shares[kind] for kind in lists.kinds[lists.train]])
    chance = chance / chance.sum()
    network.train()

    def draw() -> np.ndarray:
        return rng.choice(lists.train, own.lists, p=chance)

    begin, step, total, seen = time.monotonic(), 0, torch.zeros((), device=device), 0
    with ThreadPoolExecutor(1) as drawing:
        ahead = [drawing.submit(draw) for _ in range(4)]
        while (done := (time.monotonic() - begin) / seconds) < 1:
            ahead.append(drawing.submit(draw))
            packed, wanted = lists.read(ahead.pop(0).result())
            hidden = (torch.rand(packed.ids.shape, device=device) < own.masked) & (packed.ids > _MASK)
            packed = replace(packed, ids=torch.where(hidden, _MASK, packed.ids))
            rate = min(1, (done + 1e-3) / 0.03) * (0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2)
            for group in optimiser.param_groups:
                group["lr"] = own.learning_rate * rate
            with autocast(device):
                found = network(packed).float().view(wanted.shape)
            loss = loss_of(found, wanted, own.absolute)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimiser.step()
            step, total = step + 1, total + loss.detach()
            with torch.no_grad():
                torch._foreach_lerp_(averaged, weights, 1 - min(own.ema, step / (step + 10)))
            if step % 200 == 0 or step == 5:
                log("reranker step", step, f"{done:.2f}", "loss", round(float(total) / (step - seen), 4))
                seen, total = step, torch.zeros((), device=device)
    log("reranker trained in", step, "steps")
    return average


@torch.no_grad()
def report(lists: Lists, network: model.Reranker, device: str, log: Log, name: str) -> dict[str, Any]:
    """Log how often the network puts the teacher's first text first, and how far apart answers and misses are."""
    network.eval()
    out: dict[str, Any] = {}
    best: dict[str, np.ndarray] = {}
    for kind in sorted(set(lists.kinds[lists.measured])):
        rows = lists.measured[lists.kinds[lists.measured] == kind]
        found = []
        for part in np.array_split(rows, max(1, len(rows) // 256)):
            packed, _ = lists.read(part)
            with autocast(device):
                found.append(network(packed).float().view(len(part), -1).cpu().numpy())
        ours, theirs = np.concatenate(found), lists.scores[rows]
        best[kind] = ours.max(1)
        out[kind] = {
            "lists": len(rows),
            "same first": round(float((ours.argmax(1) == theirs.argmax(1)).mean()), 4),
            "loss": round(float(loss_of(torch.from_numpy(ours), torch.from_numpy(theirs), 0.0)), 4),
        }
    if "held out scene" in best and "held out miss" in best:
        both = np.concatenate([best["held out scene"], best["held out miss"]])
        labels = np.concatenate([np.ones(len(best["held out scene"])), np.zeros(len(best["held out miss"]))])
        out["answered or missed"] = judge.auroc(both, labels)
    log(name, json.dumps(out))
    return out


# ---- the run ------------------------------------------------------------------------------------------------------


class Sources(NamedTuple):
    """The folders of the language model, of the teacher's first corrections and of the embedder."""

    language: Path
    corrections: Path
    embedder: Path


def score_lists(work: Path, sources: Sources, config: Config, seconds: float, device: str, log: Log) -> None:
    """Write questions, tune the teacher and score lists; save `asked.xz`, the teacher and `lists.npz` in `work`.

    A second run scores the lists that the first one had no time for.
    """
    begin, rng = time.monotonic(), random.Random(config.taught.seed)
    pool = Pool.load(work / "pool.xz")
    if not (work / "lists.npz").exists():
        _prepare(work, pool, sources, config, seconds, device, log)
    pool.asks += Pool.load(work / "asked.xz").asks
    stored = np.load(work / "lists.npz")
    found, scores = stored["found"].astype(np.int64), stored["scores"].astype(np.float32)
    teacher, tokenizer = judge.open_judge(sources.language, config.judge, device)
    open_teacher(teacher, sources.corrections)
    judge.restore(teacher, work)
    teacher.merge()
    order = sorted(
        np.flatnonzero(np.isnan(scores[:, 0])).tolist(),
        key=lambda row: (pool.asks[row].kind in _OTHERS, rng.random()),
    )
    left = seconds - (time.monotonic() - begin)
    more = score(teacher, tokenizer, pool, found, order, config, left, log)
    scores = np.where(np.isnan(scores), more, scores)
    np.savez(work / "lists.npz", found=found.astype(np.int32), scores=scores.astype(np.float16))
    log("lists", int(np.isfinite(scores[:, 0]).sum()), "of", len(scores))


def _prepare(
    work: Path, pool: Pool, sources: Sources, config: Config, seconds: float, device: str, log: Log
) -> None:
    """Write questions, find candidates and tune the teacher. No list has a score yet."""
    own, rng = config.taught, random.Random(config.taught.seed)
    asked = ask(sources.language, work / "written.jsonl", pool, config, own.asking * seconds, device, log)
    Pool([], asked).save(work / "asked.xz")
    pool = Pool(pool.texts, [*pool.asks, *asked])
    log("asked", len(asked))
    count = len(pool.texts)
    vectors = embedded(sources.embedder, [*pool.texts, *(each.query for each in pool.asks)], config, device)
    found = candidates(pool, vectors[:count], vectors[count:], own)
    teacher, tokenizer = judge.open_judge(sources.language, config.judge, device)
    open_teacher(teacher, sources.corrections)
    known = scene_pairs(pool, found, rng, own.known)
    others = [place for place, each in enumerate(pool.asks) if each.kind in _OTHERS]
    kept = rng.sample(others, min(len(others), own.anchors // own.size))
    anchors = Prompts(
        tokenizer,
        [Pair(pool.texts[text], pool.asks[row].query, 0, "") for row in kept for text in found[row]],
        own.teacher_tokens,
    )
    before = judge.score(teacher, anchors, config.judge)
    labels = np.array([pair.label for pair in known])
    tune(
        teacher,
        (Prompts(tokenizer, known, own.teacher_tokens), labels),
        (anchors, before),
        own.tuning * seconds,
        config.judge,
        log,
    )
    judge.save(teacher, work)
    none = np.full(found.shape, np.nan, np.float16)
    np.savez(work / "lists.npz", found=found.astype(np.int32), scores=none)


def teach(
    work: Path, embedder: Path, out: Path, config: Config, seconds: float, device: str, log: Log
) -> None:
    """Train the reranker on the scored lists. Write the mean of the weights before and after.

    The mean finds more than either: the taught weights alone have learned the lists by heart.
    """
    from tokenizers import Tokenizer

    pool, stored = Pool.load(work / "pool.xz"), np.load(work / "lists.npz")
    pool.asks += Pool.load(work / "asked.xz").asks
    tokenizer = Tokenizer.from_file(str(embedder / "tokenizer.json"))
    found, scores = stored["found"].astype(np.int64), stored["scores"].astype(np.float32)
    lists = Lists(pool, found, scores, tokenizer, config, device)
    weights = dict(np.load(work / "start.npz"))
    network = load(weights, config).to(device)
    figures = {"before": report(lists, network, device, log, "before")}
    taught = train(lists, network, config, seconds, device, log)
    figures["after"] = report(lists, taught, device, log, "after")
    (out / "taught.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    after = {name: value.float().cpu().numpy() for name, value in taught.state_dict().items()}
    np.savez(out / "weights.npz", **{name: (weights[name] + after[name]) / 2 for name in after})


def embedded(folder: Path, texts: Sequence[str], config: Config, device: str) -> Tensor:
    """Return the embedder's vectors."""
    from tokenizers import Tokenizer

    from lab.training.prepare import load_student

    network = load_student(folder).to(device)
    found = Tokens(Tokenizer.from_file(str(folder / "tokenizer.json")), texts, config.rerank.max_text, device)
    return tokens.vectors(network, found)
