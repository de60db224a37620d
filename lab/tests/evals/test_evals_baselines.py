"""Packaged weights become folders that our own loader reads."""

from __future__ import annotations

import json

from lab.evals import baselines
from memoriter.embedding import manifest


def unpacked(cache, name):
    source = baselines.PACKAGED[name]
    for path in (source.model, source.tokenizer):
        file = cache / "packages" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('{"normalizer": {"type": "BertNormalizer"}}')
    return source


def test_a_packaged_model_is_laid_out_with_a_manifest(tmp_path):
    source = unpacked(tmp_path, "bge-small-zh")
    model = manifest.read(baselines.lay_out("bge-small-zh", tmp_path))
    assert (model.name, model.dimensions, model.pooling) == ("bge-small-zh", source.dims, "cls")


def test_a_tokenizer_without_lowercasing_is_fixed(tmp_path):
    unpacked(tmp_path, "bge-small-zh")
    folder = baselines.lay_out("bge-small-zh", tmp_path)
    steps = json.loads((folder / "tokenizer.json").read_text())["normalizer"]["normalizers"]
    assert [step["type"] for step in steps] == ["Lowercase", "BertNormalizer"]


def test_a_folder_may_be_named_and_no_folder_means_the_bundled_model(tmp_path):
    given = baselines.setup_for("mine", "some/folder", tmp_path)
    assert given.overrides["embedding.model_path"] == "some/folder"
    assert baselines.setup_for("ours", "", tmp_path).overrides == {}


def test_models_stand_below_each_other_in_one_table():
    value = {"mean": 0.5, "low": 0.4, "high": 0.6}
    modes = {mode: {"measures": {"nDCG@10": value}} for mode in baselines.MODES}
    table = baselines.markdown({"ours": [{"set": "toy", "modes": modes}]})
    assert "| ours | 50.0 ± 10.0 / 50.0 ± 10.0 |" in table
