"""Models in folders: what is read from them, how graphs get their inputs, and which errors are reported."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest
import tiny_model

from memoriter.embedding import local, manifest
from memoriter.embedding.local import LocalEmbedder
from memoriter.embedding.lookup import bundled_model
from memoriter.embedding.manifest import Model
from memoriter.errors import EmbedderUnavailable, EmbeddingError

WORDS = "the database backup"


def unit(vector: np.ndarray) -> np.ndarray:
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def rows_of(text: str) -> np.ndarray:
    return np.stack([tiny_model.vector_of(word) for word in text.split()])


@pytest.mark.parametrize(
    ("pooling", "in_graph", "expected"),
    [
        ("mean", False, unit(rows_of(WORDS).mean(axis=0))),
        ("cls", False, unit(rows_of(WORDS)[0])),
        ("last", False, unit(rows_of(WORDS)[-1])),
        ("in-graph", True, unit(rows_of(WORDS).mean(axis=0))),
    ],
)
def test_vectors_are_pooled_according_to_the_manifest(
    tmp_path: Path, pooling: str, in_graph: bool, expected: np.ndarray
) -> None:
    tiny_model.write(tmp_path, in_graph=in_graph)
    tiny_model.write_manifest(tmp_path, pooling=pooling)
    np.testing.assert_allclose(LocalEmbedder(tmp_path).embed([WORDS])[0], expected, atol=1e-6)


def test_a_graph_gets_the_inputs_that_it_needs(tmp_path: Path) -> None:
    tiny_model.write(tmp_path, inputs=("input_ids", "attention_mask", "token_type_ids", "position_ids"))
    tiny_model.write_manifest(tmp_path)
    assert LocalEmbedder(tmp_path).embed([WORDS]).any()
    tiny_model.write(tmp_path, inputs=("input_ids", "pixel_values"))
    tiny_model.write_manifest(tmp_path)
    with pytest.raises(EmbeddingError, match=r"^the model tiny needs an unknown input 'pixel_values'$"):
        LocalEmbedder(tmp_path).embed([WORDS])


def test_prefixes_are_put_before_queries_and_documents(tmp_path: Path) -> None:
    tiny_model.write(tmp_path)
    tiny_model.write_manifest(tmp_path, query_prefix="query: ", doc_prefix="passage: ")
    embedder = LocalEmbedder(tmp_path)
    np.testing.assert_allclose(
        [embedder.embed_query("night"), embedder.embed(["night"])[0]],
        [unit(rows_of("query: night").mean(axis=0)), unit(rows_of("passage: night").mean(axis=0))],
        atol=1e-6,
    )


def test_a_query_is_converted_to_simplified_chinese_if_the_manifest_says_so(
    tmp_path: Path,
) -> None:
    tiny_model.write(tmp_path)
    tiny_model.write_manifest(tmp_path)
    plain = LocalEmbedder(tmp_path)
    tiny_model.write_manifest(tmp_path, simplified_queries=True)
    converting = LocalEmbedder(tmp_path)
    np.testing.assert_array_equal(converting.embed_query("備份"), plain.embed_query("备份"))
    np.testing.assert_array_equal(converting.embed(["備份"]), plain.embed(["備份"]))
    assert not np.array_equal(plain.embed_query("備份"), plain.embed_query("备份"))
    assert converting.identity == plain.identity  # stored vectors do not change


def test_a_text_is_cut_at_the_models_length(tmp_path: Path) -> None:
    tiny_model.write(tmp_path)
    tiny_model.write_manifest(tmp_path, max_length=2)
    np.testing.assert_array_equal(*LocalEmbedder(tmp_path).embed(["the backup", "the backup runs at night"]))


def test_a_sentence_transformers_folder_works_without_a_manifest(tmp_path: Path) -> None:
    folder = tmp_path / "bge-tiny"
    tiny_model.write(folder)
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model_quantized.onnx")
    (folder / "1_Pooling").mkdir()
    facts = {
        "config.json": {"hidden_size": tiny_model.DIMS, "max_position_embeddings": 512, "model_type": "bert"},
        "1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        "tokenizer_config.json": {"model_max_length": 10**30},
        "sentence_bert_config.json": {"max_seq_length": 128},
        "config_sentence_transformers.json": {"prompts": {"query": "query: ", "passage": "passage: "}},
    }
    for name, fact in facts.items():
        (folder / name).write_text(json.dumps(fact))
    assert manifest.read(folder) == Model(
        folder=folder,
        name="bge-tiny",
        dimensions=tiny_model.DIMS,
        onnx="onnx/model_quantized.onnx",
        pooling="cls",
        max_length=128,
        query_prefix="query: ",
        doc_prefix="passage: ",
    )
    np.testing.assert_allclose(
        LocalEmbedder(folder).embed(["the night"])[0], unit(tiny_model.vector_of("passage:")), atol=1e-6
    )


def test_the_length_of_a_roberta_model_excludes_reserved_positions(tmp_path: Path) -> None:
    tiny_model.write(tmp_path)
    config = {"hidden_size": 8, "max_position_embeddings": 514, "model_type": "xlm-roberta"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert manifest.read(tmp_path).max_length == 512


class TestIdentity:
    def test_depends_on_the_files_and_not_on_the_path(self, tiny_folder: Path, tmp_path: Path) -> None:
        copy = shutil.copytree(tiny_folder, tmp_path / "copy")
        assert LocalEmbedder(copy).identity == LocalEmbedder(tiny_folder).identity

    @pytest.mark.parametrize("change", [{"query_prefix": "query: "}, {"max_length": 64}, {"pooling": "cls"}])
    def test_changes_with_everything_that_changes_vectors(
        self, tiny_folder: Path, tmp_path: Path, change: dict[str, object]
    ) -> None:
        copy = shutil.copytree(tiny_folder, tmp_path / "copy")
        tiny_model.write_manifest(copy, **change)
        assert LocalEmbedder(copy).identity != LocalEmbedder(tiny_folder).identity

    def test_changes_with_the_weights_if_the_manifest_has_no_digest(self, tmp_path: Path) -> None:
        tiny_model.write(tmp_path)
        (tmp_path / "config.json").write_text('{"hidden_size": 8}')
        before = LocalEmbedder(tmp_path).identity
        data = (tmp_path / "model.onnx").read_bytes()
        (tmp_path / "model.onnx").write_bytes(data[:-20] + bytes(20))
        assert LocalEmbedder(tmp_path).identity != before


class TestErrors:
    def error_of(self, folder: Path) -> str:
        with pytest.raises(EmbedderUnavailable) as caught:
            LocalEmbedder(folder).embed(["the"])
        return str(caught.value).replace(str(folder), "FOLDER").replace("FOLDER\\", "FOLDER/")

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        tiny_model.write(tmp_path)
        tiny_model.write_manifest(tmp_path)
        return tmp_path

    def test_a_missing_folder(self, tmp_path: Path) -> None:
        assert self.error_of(tmp_path / "gone") == "the model folder FOLDER does not exist"

    def test_a_folder_without_a_graph(self, folder: Path) -> None:
        (folder / "model.onnx").unlink()
        assert self.error_of(folder) == "the model folder FOLDER has no model.onnx"

    def test_a_folder_without_dimensions(self, folder: Path) -> None:
        (folder / "manifest.json").unlink()
        assert "neither manifest.json (dims) nor config.json (hidden_size)" in self.error_of(folder)

    def test_weights_that_do_not_match_the_manifest(self, folder: Path) -> None:
        data = (folder / "model.onnx").read_bytes()
        (folder / "model.onnx").write_bytes(data[:-1] + b"\1")
        assert self.error_of(folder).startswith(
            "the model file FOLDER/model.onnx does not match its manifest.json (sha256 "
        )

    def test_an_invalid_manifest(self, folder: Path) -> None:
        tiny_model.write_manifest(folder, pooling="max")
        assert "pooling is 'max', not one of in-graph, mean, cls, last" in self.error_of(folder)
        tiny_model.write_manifest(folder, files={"../../secret.onnx": {"sha256": "0"}})
        assert "a file is outside the folder" in self.error_of(folder)
        (folder / "manifest.json").write_text("[]")
        assert self.error_of(folder) == "FOLDER/manifest.json is not a JSON object"
        (folder / "manifest.json").write_text("{")
        assert self.error_of(folder).startswith("FOLDER/manifest.json cannot be read: ")

    def test_a_missing_output(self, folder: Path) -> None:
        tiny_model.write_manifest(folder, output="pooled")
        assert self.error_of(folder) == "the model tiny has no output 'pooled'; it has last_hidden_state"

    def test_an_invalid_graph_and_an_invalid_tokenizer(self, folder: Path) -> None:
        (folder / "model.onnx").write_bytes(b"not a graph")
        tiny_model.write_manifest(folder)
        assert self.error_of(folder).startswith("FOLDER/model.onnx cannot be loaded: ")
        (folder / "tokenizer.json").write_text("{}")
        tiny_model.write_manifest(folder)
        assert self.error_of(folder).startswith("FOLDER/tokenizer.json is not a tokenizer: ")

    def test_vectors_with_wrong_dimensions(self, folder: Path) -> None:
        tiny_model.write_manifest(folder, dims=12)
        with pytest.raises(EmbeddingError) as caught:
            LocalEmbedder(folder).embed(["the"])
        assert str(caught.value) == "the embedder returned vectors with 8 dimensions instead of 12"


def test_many_threads_load_the_model_once(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    session = local.open_session
    monkeypatch.setattr(local, "open_session", lambda *arguments: loads.append(1) or session(*arguments))
    embedder = LocalEmbedder(tiny_folder)
    threads = [threading.Thread(target=embedder.embed_query, args=("the night",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    embedder.embed(["the night", "the backup"])
    assert len(loads) == 1


def test_after_closing_the_next_text_loads_the_model_again(tiny_folder: Path) -> None:
    embedder = LocalEmbedder(tiny_folder)
    before = embedder.embed(["the night"])
    embedder.close()
    embedder.close()
    np.testing.assert_array_equal(embedder.embed(["the night"]), before)


def test_a_paraphrase_is_closer_than_another_topic(real: LocalEmbedder) -> None:
    notes = real.embed(
        ["数据库每天凌晨自动备份到另一个城市。", "我最喜欢喝普洱茶。", "The half marathon is in October."]
    )
    for query in ("资料多久保存一次副本？", "How often do we copy our data off site?"):
        assert np.argmax(notes @ real.embed_query(query)) == 0


def test_the_runtime_sends_no_telemetry(tiny_folder: Path, tmp_path: Path) -> None:
    """onnxruntime may send telemetry from the import on, and stores an id of the machine for it."""
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import sys; from pathlib import Path; from memoriter.embedding import EmbedderSpec, resolve;"
        "resolve(EmbedderSpec(model_path=Path(sys.argv[1]))).embedder.embed_query('heron')"
    )
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tiny_folder)],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(home.rglob("*")) == []


def test_closing_after_an_interruption_does_not_compute_the_texts_that_wait() -> None:
    folder = bundled_model()
    assert folder is not None
    embedder = LocalEmbedder(folder, threads=1)
    embedder.embed(["the model is loaded"])

    def interrupt() -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(embedder.embed, ["a text that takes a while " * 20] * 400)
        wait([running], timeout=0.05)
        try:
            interrupt()
        except KeyboardInterrupt:
            embedder.close()
        with pytest.raises(CancelledError):
            running.result()
