"""The judge of pairs: the first layers of a language model, tuned to say whether an earlier statement is out of date.

It learns from scenes and sentence frames in a minute or two, because it knows the words. In a second round it also
learns from written pairs on which it and the request agree. Its scores teach the reader (`reader.py`).
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.training import language, pairs
from lab.training.config import JudgeConfig
from lab.training.pairs import Pair

_LORA_FILES = 2  # so that each stays small
_PARTS = ("Earlier: ", "\nLater: ", "\nIs the earlier statement out of date now?")


class Judge(nn.Module):
    """The layers, and one output from the last token."""

    def __init__(self, network: language.Language) -> None:
        super().__init__()
        self.network = network
        self.head = nn.Linear(network.table.shape[1], 1).to(network.device)
        nn.init.normal_(self.head.weight, std=0.01)
        nn.init.zeros_(self.head.bias)

    def read(self, ids: Tensor, last: Tensor) -> Tensor:
        """Return the vector of the last token of each row."""
        x = self.network(ids)
        return x[torch.arange(len(ids), device=x.device), last].float()

    def forward(self, ids: Tensor, last: Tensor) -> Tensor:
        """Return one logit per row."""
        return self.head(self.read(ids, last)).squeeze(-1)

    def trained(self) -> dict[str, nn.Parameter]:
        """Return the parameters to train."""
        return {name: value for name, value in self.named_parameters() if value.requires_grad}

    def merge(self) -> None:
        """Add the corrections to the matrices. The judge cannot be trained after that."""
        for part in self.modules():
            if isinstance(part, language.Adapted):
                part.merge()


class Prompts:
    """The tokens of pairs, as prompts."""

    def __init__(
        self, tokenizer: Any, found: Sequence[Pair], limit: int, parts: Sequence[str] = _PARTS
    ) -> None:
        texts = list(dict.fromkeys(text for pair in found for text in pair[:2]))
        number = {text: place for place, text in enumerate(texts)}
        encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
        self.texts = [np.array(each.ids[:limit], np.int64) for each in encoded]
        self.rows = [(number[pair.earlier], number[pair.later]) for pair in found]
        self.parts = [np.array(tokenizer.encode(part).ids, np.int64) for part in parts]
        fixed = sum(map(len, self.parts))
        self.lengths = np.array([fixed + len(self.texts[a]) + len(self.texts[b]) for a, b in self.rows])

    def batch(self, chosen: Sequence[int] | np.ndarray, device: str) -> tuple[Tensor, Tensor]:
        """Return padded ids and the place of the last token."""
        sizes = self.lengths[chosen]
        ids = np.zeros((len(chosen), -(-int(sizes.max()) // 16) * 16), np.int64)
        first, second, third = self.parts
        for row, pair in enumerate(chosen):
            a, b = self.rows[pair]
            whole = np.concatenate([first, self.texts[a], second, self.texts[b], third])
            ids[row, : len(whole)] = whole
        return torch.from_numpy(ids).to(device), torch.from_numpy(sizes - 1).to(device)


def open_judge(
    folder: Path, config: JudgeConfig, device: str, stored: Path | None = None
) -> tuple[Judge, Any]:
    """Return a judge and its tokenizer, untrained or with the corrections in a folder."""
    torch.manual_seed(config.seed)
    network, tokenizer = language.open_folder(folder, device, config.layers, config.rank)
    judge = Judge(network)
    if stored:
        restore(judge, stored)
    return judge, tokenizer


@torch.no_grad()
def restore(judge: Judge, stored: Path) -> None:
    """Read the corrections that `save` wrote."""
    own = judge.trained()
    for path in sorted(stored.glob("judge_*.npz")):
        for name, value in np.load(path).items():
            own[name].copy_(torch.from_numpy(value))


def save(judge: Judge, out: Path) -> None:
    """Write the corrections in half precision."""
    own = {name: value.detach().half().cpu().numpy() for name, value in judge.trained().items()}
    for part, names in enumerate(np.array_split(sorted(own), _LORA_FILES)):
        np.savez(out / f"judge_{part}.npz", **{name: own[name] for name in names})


def tune(
    judge: Judge, prompts: Prompts, labels: np.ndarray, seconds: float, config: JudgeConfig, log: Any
) -> None:
    """Train for some seconds."""
    device, own = judge.network.device, list(judge.trained().values())
    optimiser = torch.optim.AdamW(own, lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.0)
    rng = np.random.default_rng(config.seed)
    wanted = torch.from_numpy(labels.astype(np.float32)).to(device)
    judge.train()
    begin, step, total = time.monotonic(), 0, torch.zeros((), device=device)
    while (done := (time.monotonic() - begin) / seconds) < 1:
        rate = min(1, (step + 1) / config.warmup) * (0.03 + 0.97 * (1 + math.cos(math.pi * done)) / 2)
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate * rate
        chosen = rng.integers(0, len(labels), config.pairs)
        loss = torch.zeros((), device=device)
        optimiser.zero_grad(set_to_none=True)
        # Short and long pairs apart: less padding.
        for part in np.array_split(chosen[np.argsort(prompts.lengths[chosen])], 2):
            found = judge(*prompts.batch(part, device))
            each = functional.binary_cross_entropy_with_logits(
                found, wanted[torch.from_numpy(part).to(device)]
            )
            share = each * len(part) / len(chosen)
            share.backward()
            loss = loss + share.detach()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimiser.step()
        step, total = step + 1, total + loss
        if step % 50 == 0 or step == 3:
            log("judge step", step, f"{done:.2f}", "loss", round(float(total) / (3 if step == 3 else 50), 4))
            total = torch.zeros((), device=device)
    log("judge tuned in", step, "steps")


@torch.no_grad()
def score(
    judge: Judge,
    prompts: Prompts,
    config: JudgeConfig,
    seconds: float = 0,
    log: Any = None,
    vectors: np.ndarray | None = None,
) -> np.ndarray:
    """Return the logits of all pairs; NaN for those that the time did not suffice for.

    With `vectors`, its rows get what the judge thinks of each pair: random projections of its last vector.
    """
    judge.eval()
    width = judge.head.in_features
    shape = (0, width) if vectors is None else (vectors.shape[1], width)
    into = torch.randn(shape, generator=torch.Generator().manual_seed(config.seed)) / math.sqrt(width)
    into = into.to(judge.network.device)
    device, lengths = judge.network.device, prompts.lengths
    out = np.full(len(lengths), np.nan, np.float32)
    # Batches of similar length, in random order, so that a cut leaves a fair sample.
    order = np.argsort(lengths, kind="stable")
    cuts = [0]
    while cuts[-1] < len(order):
        start = cuts[-1]
        size = max(1, config.budget // int(lengths[order[min(len(order) - 1, start + 1023)]]))
        cuts.append(min(len(order), start + min(size, 1024)))
    batches = [order[a:b] for a, b in pairwise(cuts)]
    random.Random(0).shuffle(batches)
    begin = time.monotonic()
    with ThreadPoolExecutor(2) as ahead:
        waiting = [ahead.submit(prompts.batch, batch, "cpu") for batch in batches[:4]]
        pending: list[tuple[np.ndarray, Tensor, Tensor]] = []

        def finish(done: np.ndarray, logits: Tensor, projected: Tensor) -> None:
            out[done] = logits.cpu().numpy()
            if vectors is not None:
                vectors[done] = projected.cpu().numpy()

        for number, batch in enumerate(batches):
            if seconds and time.monotonic() - begin > seconds:
                break
            ids, last = waiting.pop(0).result()
            if number + 4 < len(batches):
                waiting.append(ahead.submit(prompts.batch, batches[number + 4], "cpu"))
            read = judge.read(ids.to(device), last.to(device))
            pending.append((batch, judge.head(read).squeeze(-1), (read @ into.T).half()))
            if len(pending) > 8:
                finish(*pending.pop(0))
            if log and number % 200 == 199:
                log("scored", number + 1, "of", len(batches), "batches")
        for rest in pending:
            finish(*rest)
        for each in waiting:
            each.cancel()
    return out


# ---- figures ------------------------------------------------------------------------------------------------------


def auroc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of pairs of a change and one that stands in which the change has the higher score."""
    yes, no = scores[labels > 0.5], np.sort(scores[labels <= 0.5])
    if not len(yes) or not len(no):
        return math.nan
    lower = (np.searchsorted(no, yes, "left") + np.searchsorted(no, yes, "right")) / 2
    return round(float(lower.mean() / len(no)), 4)


def figures(scores: np.ndarray, found: Sequence[Pair]) -> dict[str, dict[str, float]]:
    """Return AUROC and the changes that are found at 1 % of wrong ones: by language, and for long statements."""
    labels = np.array([pair.label for pair in found])
    ways = np.array([pairs.direction(pair) for pair in found])
    long = np.array([_size(pair.earlier) > 40 or _size(pair.later) > 40 for pair in found])
    groups = {"all": np.ones(len(found), bool), "long": long}
    groups |= {way: ways == way for way in ("en", "zh", "cross")}
    return {name: _figures(scores[rows], labels[rows]) for name, rows in groups.items() if rows.sum() > 10}


def _figures(scores: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    no = scores[labels <= 0.5]
    floor = np.quantile(no, 0.99) if len(no) else math.nan
    yes = scores[labels > 0.5]
    return {
        "n": len(labels),
        "auroc": auroc(scores, labels),
        "found at 1% wrong": round(float((yes > floor).mean()), 4) if len(yes) else math.nan,
        "found above 0": round(float((yes > 0).mean()), 4) if len(yes) else math.nan,
        "wrong above 0": round(float((no > 0).mean()), 4) if len(no) else math.nan,
    }


def _size(text: str) -> int:
    """Return about how many tokens a text has."""
    return sum("\u3400" <= char <= "\u9fff" or char == " " for char in text) + 1


def print_figures(log: Any, name: str, found: Mapping[str, Mapping[str, float]]) -> None:
    """Log a table."""
    for group, row in found.items():
        log(f"{name:28} {group:6}", " ".join(f"{key} {value}" for key, value in row.items()))
