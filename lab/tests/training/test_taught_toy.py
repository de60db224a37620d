"""The reranker's second teacher at toy size on a CPU: written questions, scored lists, training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.training import config as configuration
from lab.training.__main__ import main
from memoriter.search.rerank import BUNDLED as RERANKER

torch = pytest.importorskip("torch", reason="lab/training/requirements.txt is not installed")
pytest.importorskip("onnx", reason="lab/training/requirements.txt is not installed")

from lab.tests.training.test_reader_toy import EMBEDDER, HIDDEN, WIDE, write_language_model  # noqa: E402
from lab.training.pool import Ask, Pool  # noqa: E402

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]


def write_corrections(folder: Path, layers: int) -> None:
    """Write random corrections of a cross-encoder."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    shapes = {"q": (HIDDEN, HIDDEN), "k": (128, HIDDEN), "v": (128, HIDDEN), "o": (HIDDEN, HIDDEN)}
    shapes |= {"gate": (WIDE, HIDDEN), "up": (WIDE, HIDDEN), "down": (HIDDEN, WIDE)}
    made = {"head.weight": (1, HIDDEN), "head.bias": (1,)}
    for number in range(layers):
        for name, (outputs, inputs) in shapes.items():
            made[f"blocks.{number}.{name}.A"] = 4, inputs
            made[f"blocks.{number}.{name}.B"] = outputs, 4
    np.savez(folder / "lora_0.npz", **{name: rng.normal(0, 0.05, shape) for name, shape in made.items()})


def test_questions_to_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = replace(configuration.TOY, rerank=replace(configuration.FINAL.rerank))
    monkeypatch.setitem(configuration.CONFIGS, "toy", toy)
    work, llm, lora = tmp_path / "work", tmp_path / "language", tmp_path / "lora"
    write_language_model(llm)
    write_corrections(lora, toy.judge.layers)
    work.mkdir()
    places = ("Rome", "Oslo", "Lyon", "Bonn", "Turin", "Ghent", "Cork", "Graz")
    texts = [
        f"{name}{n} lives in {place}" for name in ("Ada", "Ben", "Cem") for place in places for n in range(4)
    ]
    asks = [Ask(f"Where is the person of line {n}?", (n,), ((n + 1) % 12,), "scene") for n in range(12)]
    asks += [Ask(f"How old is the person of line {n}?", (), (n,), "held out miss") for n in range(4)]
    asks += [Ask(f"line {n}", (n,), (), "en") for n in range(12)]
    Pool(texts, asks).save(work / "pool.xz")
    rows = [
        {"id": n, "role": "text", "lang": "en", "topic": "home", "text": text} for n, text in enumerate(texts)
    ]
    (work / "written.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    common = ["--config", "toy", "--work", str(work), "--language", str(llm), "--model", str(EMBEDDER)]

    main(["lists", *common, "--judge", str(lora), "--seconds", "0.01"])
    begun = np.load(work / "lists.npz")["scores"]
    assert np.isnan(begun).all()

    main(["lists", *common, "--judge", str(lora), "--seconds", "300"])
    scores = np.load(work / "lists.npz")["scores"]
    assert np.isfinite(scores).all()
    assert scores.shape == (len(asks) + len(Pool.load(work / "asked.xz").asks), toy.taught.size)

    main(["pairs", *common, "--start", str(RERANKER)])
    main(["taught", *common, "--seconds", "2"])
    before, after = np.load(work / "start.npz"), np.load(work / "taught" / "weights.npz")
    changed = {name for name in after.files if not np.array_equal(before[name], after[name])}
    assert changed
    assert not any(name.startswith("encoder.word") for name in changed)
