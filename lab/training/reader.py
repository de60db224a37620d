"""The reader of changes: a small cross-encoder that says whether an earlier statement is out of date.

It reads the reranker's word vectors, which stay as they are, with layers of its own that start as the reranker's. It
learns from the judge's scores and from the labels of scenes and sentence frames.
"""

from __future__ import annotations

import copy
import gzip
import json
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lab.training import engine, judge, model, overlap, pairs, scenes
from lab.training.config import Config
from lab.training.pairs import UNKNOWN, Pair
from lab.training.tokens import Tokens, autocast, batches

SETS = Path(__file__).parents[1] / "evals" / "sets"
#: How often pairs of a source are drawn.
_SHARES = {"scene": 0.4, "template": 0.1, "written": 0.5}
_MASK = 4  # the number of the token [MASK]
_SAMPLE = 300  # pairs of each kind to read by hand
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
    texts = overlap.benchmark_texts(bench) if bench else iter(())
    benchmarks, counts = overlap.Benchmarks(texts, config.data), Counter[str]()
    pairs.write(work / "train.jsonl", _free(drawn, benchmarks, counts))
    measured = [("scenes", pair) for pair in pairs.from_scenes(told, told.held_out, own.measured, rng)]
    measured += [("templates", pair) for pair in pairs.from_templates(own.measured, rng, held_out=True)]
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


def tune_judge(work: Path, folder: Path, out: Path, config: Config, device: str, log: Any) -> None:
    """Tune the judge on scenes and frames, measure it, and write its corrections."""
    own, rng = config.judge, random.Random(config.judge.seed)
    found = pairs.read(work / "train.jsonl")
    chosen = _some(found, "scene", own.scenes, rng) + _some(found, "template", own.templates, rng)
    measured = Measured.read(work / "measured.jsonl")
    teacher, tokenizer = judge.open_judge(folder, own, device)
    log("the judge is ready;", len(chosen), "pairs")
    prompts = judge.Prompts(tokenizer, chosen, own.max_tokens)
    log("mean length", round(float(prompts.lengths.mean()), 1))
    judge.tune(teacher, prompts, np.array([pair.label for pair in chosen]), own.seconds, own, log)
    judge.save(teacher, out)
    scores = judge.score(teacher, judge.Prompts(tokenizer, measured.all(), own.max_tokens), own)
    figures = measured.report("judge", scores, log)
    (out / "judge.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _some(found: Sequence[Pair], source: str, count: int, rng: random.Random) -> list[Pair]:
    group = [pair for pair in found if pair.kind.startswith(source)]
    return rng.sample(group, min(count, len(group)))


class Sources(NamedTuple):
    """The folders of the pairs, of the written text and of the judge's corrections."""

    work: Path
    written: Path
    judge: Path


def label_pairs(
    sources: Sources, folder: Path, out: Path, config: Config, device: str, seconds: float, log: Any
) -> None:
    """Score written pairs with the judge, after a second round of tuning. Write pairs with scores for the reader.

    If score and request disagree, the request is dropped, and with a score that is not certain the pair too.
    """
    begin, own, rng = time.monotonic(), config.judge, random.Random(config.judge.seed)
    work, path = sources.work, sources.written / "written.jsonl"
    trained = pairs.read(work / "train.jsonl")
    rows = engine.read(path) if path.exists() else []
    written = list(dict.fromkeys(pairs.from_written(rows, random.Random(0))))
    held = {topic.names["en"] for topic in pairs.topics() if topic.held_out}
    kept_out = {row["text"] for row in rows if row["role"] == "text" and row["topic"] in held}
    rng.shuffle(written)
    log("written pairs", len(written), dict(Counter(pair.kind for pair in written)))
    teacher, tokenizer = judge.open_judge(folder, own, device, sources.judge)
    prompts = judge.Prompts(tokenizer, written, own.max_tokens) if written else None
    log("the judge is ready")
    known = _some(trained, "scene", own.scenes, rng) + _some(trained, "template", own.templates, rng)
    agreed: list[Pair] = []
    first_round = not any(sources.judge.glob("judge_*.npz"))
    if prompts and not first_round:
        sample = judge.Prompts(tokenizer, written[: own.scenes], own.max_tokens)
        first = judge.score(teacher, sample, own, 0.06 * seconds)
        agreed = [
            p for p, z in zip(written, first, strict=False) if abs(z) > 1 and (z > 0) == (p.label > 0.5)
        ]
        agreed = [pair for pair in agreed if pair.label != UNKNOWN]
        log("second round:", len(agreed), "of", int(np.isfinite(first).sum()), "written pairs agree")
    both = known + agreed[: len(known)]
    if agreed or first_round:
        labels = np.array([pair.label for pair in both])
        limit = own.seconds if first_round else own.second_seconds
        judge.tune(teacher, judge.Prompts(tokenizer, both, own.max_tokens), labels, limit, own, log)
        judge.save(teacher, out)
    measured = Measured.read(work / "measured.jsonl")
    teacher.merge()
    scores = judge.score(teacher, judge.Prompts(tokenizer, measured.all(), own.max_tokens), own)
    figures = measured.report("judge, second round", scores, log)
    (out / "judge.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    left = max(1.0, seconds - (time.monotonic() - begin) - 12)
    found = judge.score(teacher, prompts, own, left, log) if prompts else np.zeros(0, np.float32)
    log("scored", int(np.isfinite(found).sum()), "of", len(found), "written pairs")
    _write_scored(work, out, written, found, kept_out, config.reader.certain, log)


def _write_scored(
    work: Path,
    out: Path,
    written: list[Pair],
    scores: np.ndarray,
    kept_out: set[str],
    certain: float,
    log: Any,
) -> None:
    """Write what is used, what is measured, scores of all, and some of each kind to read by hand."""
    used, measured, counts, sample = [], [], Counter[str](), dict[str, list[object]]()
    for pair, score in zip(written, scores.tolist(), strict=True):
        if not math.isfinite(score):
            counts[f"{pair.kind}: not scored"] += 1
            continue
        disagrees = pair.label != UNKNOWN and (score > 0) != (pair.label > 0.5)
        group = sample.setdefault(f"{pair.kind}{' (dropped)' if disagrees else ''}", [])
        if len(group) < _SAMPLE:
            group.append([*pair, round(score, 2), disagrees])
        counts[f"{pair.kind}: {'dropped' if disagrees else 'kept'}"] += 1
        if not disagrees:
            (measured if pair.earlier in kept_out else used).append((*pair, round(score, 3)))
        elif abs(score) >= certain and pair.earlier not in kept_out:
            used.append((*pair._replace(label=UNKNOWN), round(score, 3)))
    for name in sorted(counts):
        log(f"{name:40} {counts[name]}")
    pairs.write(work / "scored.jsonl", used)
    pairs.write(work / "scored-measured.jsonl", measured)
    np.savez_compressed(out / "scores.npz", scores=scores.astype(np.float16))
    with gzip.open(out / "sample.jsonl.gz", "wt", encoding="utf-8") as lines:
        for row in (row for group in sample.values() for row in group):
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
    (out / "counts.json").write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n", "utf-8")


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

    def forward(self, found: model.Packed) -> Tensor:
        """Return one logit per pair: whether the first text is out of date."""
        return self.comparer(self.words(found), found)


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
        source = np.array([row[3].split()[0] for row in rows])
        self.groups = {name: np.flatnonzero(source == name) for name in _SHARES}
        self.groups = {name: group for name, group in self.groups.items() if len(group)}

    def draw(self, rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw pairs and their targets."""
        whole = sum(_SHARES[name] for name in self.groups)
        parts = [
            rng.choice(group, round(size * _SHARES[name] / whole)) for name, group in self.groups.items()
        ]
        rows = np.concatenate(parts)
        return self.pairs[rows], self.targets[rows]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


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
            rows, targets = ahead.pop(0).result()
            rate = min(1, (done + 1e-3) / own.warmup) * (0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2)
            for group in optimiser.param_groups:
                group["lr"] = own.learning_rate * rate
            read = data.tokens.paired(rows[:, 0], rows[:, 1], limits)
            if own.masked:
                read = replace(read, ids=_hide(read.ids, own.masked))
            with autocast(device):
                found = network(read).float()
            wanted = torch.from_numpy(targets).to(device)
            loss = functional.binary_cross_entropy_with_logits(found, wanted)
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
                torch._foreach_lerp_(list(average.comparer.parameters()), before, 0.5)  # type: ignore[union-attr]
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
