"""The reader of changes: a small cross-encoder that says whether an earlier statement is out of date.

It reads the reranker's word vectors, which stay as they are, with layers of its own that start as the reranker's. It
learns from the judge's scores and from the labels of scenes and sentence frames.
"""

from __future__ import annotations

import copy
import json
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lab.training import judge, model, overlap, pairs, scenes
from lab.training.config import Config
from lab.training.pairs import UNKNOWN, Pair
from lab.training.tokens import Tokens, autocast, batches

SETS = Path(__file__).parents[1] / "evals" / "sets"
#: How often pairs of a source are drawn.
_SHARES = {"scene": 0.4, "attribute": 0.08, "template": 0.1, "written": 0.42}
_MASK = 4  # the number of the token [MASK]
_OWN = "reader."  # before the names of a reader's weights
_HALF = 2  # files of the weights of more than five layers


# ---- pairs to learn from and to measure ---------------------------------------------------------------------------


def prepare(work: Path, bench: Path | None, start: Path, reader: Path | None, config: Config) -> None:
    """Write pairs of scenes and frames that are in no benchmark, pairs to measure, and the weights to start from.

    With the model folder of a reader, its layers are those to start from, otherwise the reranker's.
    """
    from lab.training import export

    work.mkdir(parents=True, exist_ok=True)
    rng, own = random.Random(config.reader.seed), config.reader
    told = scenes.load(scenes.FOLDER, own.ways, own.held_out)
    drawn = pairs.from_scenes(told, told.train, own.scenes, rng) + pairs.from_templates(own.templates, rng)
    drawn += pairs.from_attributes(own.attributes, rng)
    texts = overlap.benchmark_texts(bench) if bench else iter(())
    benchmarks, counts = overlap.Benchmarks(texts, config.data), Counter[str]()
    pairs.write(work / "train.jsonl", _free(drawn, benchmarks, counts))
    measured = [("scenes", pair) for pair in pairs.from_scenes(told, told.held_out, own.measured, rng)]
    measured += [("templates", pair) for pair in pairs.from_templates(own.measured, rng, held_out=True)]
    measured += [("attributes", pair) for pair in pairs.from_attributes(own.measured, rng, held_out=True)]
    measured += [("updates", pair) for pair in _updates(SETS / "updates", own.measured)]
    measured += [("changes", pair) for pair in _changes(SETS / "changes" / "pairs.jsonl")]
    pairs.write(work / "measured.jsonl", ((*pair, name) for name, pair in measured))
    weights = dict(np.load(start)) if start.suffix == ".npz" else export.read(start)
    if reader:
        weights |= {f"{_OWN}{name}": value for name, value in export.read_reader(reader).items()}
    np.savez(work / "start.npz", **{name: value.astype(np.float16) for name, value in weights.items()})
    (work / "overlap.json").write_text(json.dumps(dict(counts), indent=1) + "\n", encoding="utf-8")


def _free(found: Sequence[Pair], benchmarks: overlap.Benchmarks, counts: Counter[str]) -> list[Pair]:
    """Return the pairs without benchmark text."""
    kept = []
    for pair in found:
        counts[f"{pair.kind}/read"] += 1
        verdict = benchmarks.verdict(pair.earlier) or benchmarks.verdict(pair.later)
        if verdict:
            counts[f"{pair.kind}/{verdict}"] += 1
        else:
            kept.append(pair)
    return kept


def _updates(folder: Path, limit: int) -> list[Pair]:
    """Return pairs of the held-out homes of `sets/updates`: what a later statement replaces, and what stands."""

    def rows(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()]

    items = {row["id"]: row for row in rows("corpus")}
    asked = [row for row in rows("queries") if row["split"] == "held-out"]
    found, replaced = [], set[tuple[str, str]]()
    for row in asked:
        if row["category"] == "update":
            for old in row["roles"]["original_info"]:
                for new in row["roles"]["updated_info"]:
                    replaced.add((old, new))
                    found.append(Pair(items[old]["text"], items[new]["text"], 1, "updates replaced"))
    for row in asked:
        if row["category"] not in ("update", "fact"):
            continue
        for one in row["relevant"]:
            for other in items.values():
                later = other["group"] == row["group"] and other["time"] > items[one]["time"]
                if later and (one, other["id"]) not in replaced:
                    near = other["topic"] == items[one]["topic"]
                    kind = "updates near" if near else "updates other"
                    found.append(Pair(items[one]["text"], other["text"], 0, kind))
    chosen = list(dict.fromkeys(found))
    random.Random(0).shuffle(chosen)
    return sorted(chosen, key=lambda pair: pair.kind == "updates other")[:limit]


def _changes(path: Path) -> list[Pair]:
    """Return the pairs of `sets/changes` that may be looked at."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [
        Pair(
            row["earlier"]["text"],
            row["later"]["text"],
            float(row["label"] == "replaced"),
            f"changes {row['kind']}",
        )
        for row in rows
        if row["split"] == "development"
    ]


@dataclass
class Measured:
    """The pairs that are only measured, by set."""

    sets: dict[str, list[Pair]]

    @staticmethod
    def read(path: Path, limit: int = 0) -> Measured:
        """Read them."""
        sets: dict[str, list[Pair]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            *pair, name = json.loads(line)
            sets.setdefault(name, []).append(Pair(*pair))
        return Measured({name: found[:limit] if limit else found for name, found in sets.items()})

    def all(self) -> list[Pair]:
        """Return the pairs of all sets."""
        return [pair for found in self.sets.values() for pair in found]

    def report(self, name: str, scores: np.ndarray, log: Any) -> dict[str, Any]:
        """Log and return the figures of all sets."""
        out, at = {}, 0
        for key, found in self.sets.items():
            out[key] = judge.figures(scores[at : at + len(found)], found)
            judge.print_figures(log, f"{name}: {key}", out[key])
            at += len(found)
        return out


# ---- the network --------------------------------------------------------------------------------------------------


class Reader(torch.nn.Module):
    """The reranker's word vectors and layers of its own."""

    def __init__(self, weights: dict[str, np.ndarray], layers: int, config: Config) -> None:
        super().__init__()
        shape, table = config.rerank, weights["encoder.word.weight"]
        given = {k: torch.from_numpy(v.astype(np.float32)) for k, v in weights.items()}
        hidden = given["encoder.position.weight"].shape[1]
        rank = table.shape[1] if table.shape[1] != hidden else 0
        self.words = model.Encoder(len(table), hidden, 0, shape.heads, rank)
        own = {k.removeprefix("encoder."): v for k, v in given.items() if k.startswith("encoder.")}
        self.words.load_state_dict({k: v for k, v in own.items() if not k.startswith("layers.")})
        self.words.requires_grad_(False)
        self.comparer = model.Comparer(hidden, layers, shape.heads, config.reader.dropout)
        count = 1 + max(int(name.split(".")[1]) for name in own if name.startswith("layers."))
        for place, source in enumerate(np.linspace(0, count - 1, layers).round().astype(int)):
            prefix = f"layers.{source}."
            stored = {k.removeprefix(prefix): v for k, v in own.items() if k.startswith(prefix)}
            self.comparer.layers[place].load_state_dict(stored)
        self.comparer.pool.load_state_dict({k: given[f"pool.{k}"] for k in ("weight", "bias")})
        if trained := {k.removeprefix(_OWN): v for k, v in given.items() if k.startswith(_OWN)}:
            self.comparer.load_state_dict(trained)
        #: What the judge thinks of a pair. Only training needs it.
        self.thought = torch.nn.Linear(hidden, config.reader.vectors)

    def forward(self, found: model.Packed) -> Tensor:
        """Return one logit per pair: whether the first text is out of date."""
        return self.comparer(self.words(found), found)

    def think(self, found: model.Packed) -> tuple[Tensor, Tensor]:
        """Return the logits, and what the judge is likely to think of each pair."""
        read = self.comparer.read(self.words(found), found)
        return self.comparer.score(self.comparer.dropout(read)).squeeze(-1), self.thought(read)


class Data:
    """Pairs by number, with what the reader shall say."""

    def __init__(self, work: Path, tokenizer: Any, config: Config, device: str) -> None:
        own = config.reader
        rows = [json.loads(line) for path in ("train", "scored") for line in _lines(work / f"{path}.jsonl")]
        self.measured = Measured.read(work / "measured.jsonl")
        late = [json.loads(line) for line in _lines(work / "scored-measured.jsonl")]
        if late:
            gold = [Pair(*row[:3], row[3]) for row in late if row[2] != UNKNOWN]
            self.measured.sets["written"] = gold[: own.measured]
        both = [*(row[:2] for row in rows), *(pair[:2] for pair in self.measured.all())]
        texts = list(dict.fromkeys(text for pair in both for text in pair))
        number = {text: place for place, text in enumerate(texts)}
        self.tokens = Tokens(tokenizer, texts, own.max_tokens + 2, device)
        self.pairs = np.array([(number[a], number[b]) for a, b in both], np.int64)
        self.count = len(rows)
        self.targets = np.array([_target(row, own.smooth, own.sure) for row in rows], np.float32)
        self.thoughts = _thoughts(work / "vectors.npy", own.vectors)
        source = np.array([row[3].split()[0] for row in rows])
        self.groups = {name: np.flatnonzero(source == name) for name in _SHARES}
        self.groups = {name: group for name, group in self.groups.items() if len(group)}

    def draw(self, rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw pairs, their targets, and what the judge thinks of the last ones."""
        whole = sum(_SHARES[name] for name in self.groups)
        parts = [
            rng.choice(group, round(size * _SHARES[name] / whole)) for name, group in self.groups.items()
        ]
        rows = np.concatenate(parts)
        first = self.count - len(self.thoughts)  # the written pairs are the last group
        return self.pairs[rows], self.targets[rows], self.thoughts[rows[rows >= first] - first]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _thoughts(path: Path, size: int) -> np.ndarray:
    """Return the judge's vectors with mean 0 and deviation 1."""
    if not path.exists():
        return np.zeros((0, size), np.float32)
    read = np.load(path).astype(np.float32)
    return (read - read.mean(0)) / (read.std(0) + 1e-6)


def _target(row: Sequence[Any], smooth: float, sure: float) -> float:
    label, score = row[2], row[4] if len(row) > 4 else None
    hard = smooth + (1 - 2 * smooth) * label
    if score is None:
        return hard
    soft = 1 / (1 + math.exp(-max(-20.0, min(20.0, score))))
    return soft if label == UNKNOWN else sure * soft + (1 - sure) * hard


def train(
    data: Data, network: Reader, seconds: float, config: Config, device: str, log: Any
) -> torch.nn.Module:
    """Train for some seconds; return the averaged weights."""
    own = config.reader
    limits = (own.max_tokens, own.max_tokens)
    weights = [value for value in network.parameters() if value.requires_grad]
    average = copy.deepcopy(network).eval()
    averaged = [value for value in average.parameters() if value.requires_grad]
    optimiser = torch.optim.AdamW(
        weights,
        lr=own.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=own.weight_decay,
        fused=device == "cuda",
    )
    rng = np.random.default_rng(own.seed)
    network.train()
    begin, step, seen, total = time.monotonic(), 0, 0, torch.zeros((), device=device)
    with ThreadPoolExecutor(1) as drawing:
        ahead = [drawing.submit(data.draw, rng, own.pairs) for _ in range(4)]
        while (done := (time.monotonic() - begin) / seconds) < 1:
            ahead.append(drawing.submit(data.draw, rng, own.pairs))
            rows, targets, thoughts = ahead.pop(0).result()
            rate = min(1, (done + 1e-3) / own.warmup) * (0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2)
            for group in optimiser.param_groups:
                group["lr"] = own.learning_rate * rate
            read = data.tokens.paired(rows[:, 0], rows[:, 1], limits)
            if own.masked:
                read = replace(read, ids=_hide(read.ids, own.masked))
            with autocast(device):
                found, thought = network.think(read)
            wanted = torch.from_numpy(targets).to(device)
            loss = functional.binary_cross_entropy_with_logits(found.float(), wanted)
            if len(thoughts):
                judged = torch.from_numpy(thoughts).to(device)
                loss = loss + own.thinking * functional.mse_loss(thought[-len(thoughts) :].float(), judged)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimiser.step()
            step, total = step + 1, total + loss.detach()
            keep = min(own.ema, step / (step + 10))
            with torch.no_grad():
                torch._foreach_lerp_(averaged, weights, 1 - keep)
            if step % 100 == 0 or step == 5:
                log("reader step", step, f"{done:.2f}", "loss", round(float(total) / (step - seen), 4))
                seen, total = step, torch.zeros((), device=device)
    log("reader trained in", step, "steps")
    return average


def _hide(ids: Tensor, share: float) -> Tensor:
    """Hide a share of the words, so that no single one decides."""
    hidden = (torch.rand(ids.shape, device=ids.device) < share) & (ids > _MASK)
    return torch.where(hidden, _MASK, ids)


@torch.no_grad()
def score(network: torch.nn.Module, data: Data, config: Config, device: str) -> np.ndarray:
    """Return the logits of the measured pairs."""
    limit = config.reader.max_tokens
    rows = data.pairs[data.count :]
    out = np.zeros(len(rows), np.float32)
    for part in batches(data.tokens.lengths[rows].sum(1), 200_000 if device == "cuda" else 8_192):
        with autocast(device):
            found = network(data.tokens.paired(rows[part, 0], rows[part, 1], (limit, limit)))
        out[part] = found.float().cpu().numpy()
    return out


def run(work: Path, embedder: Path, out: Path, config: Config, device: str, seconds: float, log: Any) -> None:
    """Train one reader for each number of layers, and write its weights and figures."""
    from tokenizers import Tokenizer

    begin, own = time.monotonic(), config.reader
    torch.manual_seed(own.seed)
    data = Data(work, Tokenizer.from_file(str(embedder / "tokenizer.json")), config, device)
    log("pairs", {name: len(group) for name, group in data.groups.items()}, "texts", len(data.tokens.lengths))
    weights = dict(np.load(work / "start.npz"))
    if device == "cuda":
        from torch import _dynamo

        _dynamo.config.suppress_errors = True  # a layer that cannot be compiled runs as it is
        model.compile_layers(device)
    figures = {}
    for place, layers in enumerate(own.layers):
        left = seconds - (time.monotonic() - begin) - 25
        rest = sum(own.seconds[place:])
        network = Reader(weights, layers, config).to(device)
        before = [value.clone() for value in network.comparer.parameters()]
        average = train(data, network, max(2.0, left * own.seconds[place] / rest), config, device, log)
        if any(name.startswith(_OWN) for name in weights):
            # A reader that was trained further has forgotten some of what it knew; the mean knows both.
            with torch.no_grad():
                torch._foreach_lerp_(list(average.comparer.parameters()), before, own.kept)  # type: ignore[union-attr]
        save(average.comparer, out, layers)  # type: ignore[arg-type]
        scores = score(average, data, config, device)
        np.save(out / f"reader-{layers}.npy", scores.astype(np.float16))
        figures[layers] = data.measured.report(f"reader {layers} layers", scores, log)
        (out / "reader.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def save(comparer: torch.nn.Module, out: Path, layers: int) -> None:
    """Write the weights in half precision, in files of less than 16 MB."""
    stored = {name: value.half().cpu().numpy() for name, value in comparer.state_dict().items()}
    count = _HALF if layers > 4 else 1
    for part, chosen in enumerate(np.array_split(sorted(stored), count)):
        np.savez(out / f"reader-{layers}_{part}.npz", **{name: stored[name] for name in chosen})
