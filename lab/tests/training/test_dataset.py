"""Building, writing and reading the numbered data; the tokenizer's pieces; the manifest."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lab.training import dataset, manifest, tokenizer
from lab.training.config import FINAL, DataConfig
from lab.training.corpus import Line

PARAGRAPH = "Every object has an owner, and an owner can have dependents that go when it goes. "


def built() -> tuple[dataset.Dataset, Counter[str]]:
    config = DataConfig(long_min=30, long_max=90)
    english = [Line("sgd", "Which song is it?"), Line("sgd", "It is a slow one from the nineties.")]
    chinese = [
        Line("drcd", "這座城市位於島嶼的最北端，人口約有四百萬。"),
        Line("drcd", "哪一座城市位於最北端？"),
    ]
    pairs = [Line("k8s", "Owners and dependents", "属主与附属")]
    pairs += [Line("k8s", PARAGRAPH + str(i), f"每个对象都有属主，属主可以有附属对象。{i}") for i in range(6)]
    return dataset.build(english, chinese, pairs, config)


def test_build_numbers_texts_pairs_and_asks() -> None:
    data, kinds = built()
    assert kinds["en/turn"] == 1
    assert kinds["zh/passage"] == 1
    question, answer = data.asks["zh"][0]
    assert data.texts["zh"][question].endswith("？")
    assert data.texts["zh"][answer].startswith("這座城市")
    assert len(data.pair_asks) == 1
    heading, section = data.pairs[data.pair_asks[0]][:, 0]
    assert data.texts["en"][heading] == "Owners and dependents"
    assert data.texts["en"][section].startswith(PARAGRAPH)
    assert data.pair_long.any()


def test_the_same_lines_give_the_same_data() -> None:
    assert built()[0].digest() == built()[0].digest()


def test_save_and_load(tmp_path: Path) -> None:
    data, kinds = built()
    dataset.save(data, tmp_path, dict(kinds))
    again = dataset.load(tmp_path)
    assert again.texts == data.texts
    assert np.array_equal(again.pairs, data.pairs)
    assert again.digest() == data.digest()
    report = json.loads((tmp_path / "counts.json").read_text(encoding="utf-8"))
    assert report["digest"] == data.digest()
    assert report["counts"]["pairs"] == len(data.pairs)


def test_the_vocabulary_has_frequent_pieces_and_every_han_character() -> None:
    english = {"[PAD]": 0, "a": 1, "##b": 2, "rare": 3, "common": 4, "中": 5, "[unused1]": 6}
    chinese = {"[PAD]": 0, "中": 1, "国": 2, "，": 3, "中国": 4}
    pieces = tokenizer.vocabulary(english, chinese, Counter({4: 9, 3: 1}), size=8)
    assert pieces == [*tokenizer.SPECIAL, "a", "##b", "common", "中", "国", "，"]


def test_manifest_is_checked(tmp_path: Path) -> None:
    for name in manifest.FILES:
        (tmp_path / name).write_text(name, encoding="utf-8")
    manifest.write(tmp_path, manifest.build(tmp_path, 30_000, FINAL.as_dict(), "digest"))
    manifest.check(tmp_path)
    (tmp_path / "model.onnx").write_text("another", encoding="utf-8")
    with pytest.raises(ValueError, match=r"model\.onnx"):
        manifest.check(tmp_path)


def test_the_committed_model_matches_its_manifest() -> None:
    root = Path(__file__).parents[3]
    folder = root / "src" / "memoriter" / "embedding" / "models" / manifest.NAME
    manifest.check(folder)
    stored = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert stored["training"]["steps"] == FINAL.train.steps
    assert stored["layers"] == FINAL.student.layers
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 30_000_000
