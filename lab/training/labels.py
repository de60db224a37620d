"""The labels of pairs: tune the judge, score what the language model wrote, and write what the reader learns from."""

from __future__ import annotations

import gzip
import json
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.training import engine, judge, pairs
from lab.training.config import Config, JudgeConfig
from lab.training.pairs import UNKNOWN, Pair
from lab.training.reader import Measured

_SAMPLE = 300  # pairs of each kind to read by hand


def tune_judge(work: Path, folder: Path, out: Path, config: Config, device: str, log: Any) -> None:
    """Tune the judge on scenes and frames, measure it, and write its corrections."""
    own, rng = config.judge, random.Random(config.judge.seed)
    found = pairs.read(work / "train.jsonl")
    chosen = _known(found, own, rng)
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


def _known(found: Sequence[Pair], own: JudgeConfig, rng: random.Random) -> list[Pair]:
    """Draw the pairs to tune the judge with."""
    counts = {"scene": own.scenes, "attribute": own.attributes, "template": own.templates}
    groups = {source: [pair for pair in found if pair.kind.startswith(source)] for source in counts}
    return [
        pair
        for source, group in groups.items()
        for pair in rng.sample(group, min(counts[source], len(group)))
    ]


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
    known = _known(trained, own, rng)
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
    vectors = np.zeros((len(written), config.reader.vectors), np.float16)
    found = judge.score(teacher, prompts, own, left, log, vectors) if prompts else np.zeros(0, np.float32)
    log("scored", int(np.isfinite(found).sum()), "of", len(found), "written pairs")
    used = _write_scored(work, out, written, found, kept_out, config.reader.certain, log)
    np.save(work / "vectors.npy", vectors[used])


def _write_scored(
    work: Path,
    out: Path,
    written: list[Pair],
    scores: np.ndarray,
    kept_out: set[str],
    certain: float,
    log: Any,
) -> list[int]:
    """Write what is used, what is measured, scores of all, and some of each kind to read by hand.

    Return the numbers of the pairs that are used.
    """
    used, measured, counts, sample = [], [], Counter[str](), dict[str, list[object]]()
    numbers = list[int]()
    for number, (pair, score) in enumerate(zip(written, scores.tolist(), strict=True)):
        if not math.isfinite(score):
            counts[f"{pair.kind}: not scored"] += 1
            continue
        disagrees = pair.label != UNKNOWN and (score > 0) != (pair.label > 0.5)
        group = sample.setdefault(f"{pair.kind}{' (dropped)' if disagrees else ''}", [])
        if len(group) < _SAMPLE:
            group.append([*pair, round(score, 2), disagrees])
        counts[f"{pair.kind}: {'dropped' if disagrees else 'kept'}"] += 1
        known = pair._replace(label=UNKNOWN) if disagrees else pair
        if pair.earlier not in kept_out and (not disagrees or abs(score) >= certain):
            used.append((*known, round(score, 3)))
            numbers.append(number)
        elif not disagrees:
            measured.append((*known, round(score, 3)))
    for name in sorted(counts):
        log(f"{name:40} {counts[name]}")
    pairs.write(work / "scored.jsonl", used)
    pairs.write(work / "scored-measured.jsonl", measured)
    np.savez_compressed(out / "scores.npz", scores=scores.astype(np.float16))
    with gzip.open(out / "sample.jsonl.gz", "wt", encoding="utf-8") as lines:
        for row in (row for group in sample.values() for row in group):
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
    (out / "counts.json").write_text(json.dumps(dict(sorted(counts.items())), indent=1) + "\n", "utf-8")
    return numbers
