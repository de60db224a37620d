"""The description of a model, readable without loading it: dimensions, pooling, length, prompts.

A bundled model's folder has a `manifest.json`. An exported sentence-transformers folder has the same facts in
`config.json`, `1_Pooling/config.json`, `tokenizer_config.json` and other files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from memoriter.errors import EmbedderUnavailable, reason_of
from memoriter.records import Identity

POOLINGS = ("in-graph", "mean", "cls", "last")
#: Bytes to sample from each part of a file that has no digest in a manifest.
SAMPLE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Model:
    """A model folder: its files, and how to run the model."""

    folder: Path
    name: str
    dimensions: int
    onnx: str = "model.onnx"
    tokenizer: str = "tokenizer.json"
    pooling: str = "mean"
    #: Name of the graph's output. None: chosen automatically.
    output: str | None = None
    #: Maximum number of tokens. Longer texts are cut.
    max_length: int = 512
    query_prefix: str = ""
    doc_prefix: str = ""
    #: Whether to convert queries from traditional to simplified Chinese, which the model understands better.
    simplified_queries: bool = False
    #: SHA-256 by file, if the manifest has them.
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """The identity, with a digest of everything that changes vectors: weights, tokenizer, prefixes, length."""
        # Converting queries does not change stored vectors.
        others = ("folder", "digests", "simplified_queries")
        settings = {name: value for name, value in asdict(self).items() if name not in others}
        weights = {
            name: self.digests.get(name) or sample(self.folder / name) for name in (self.onnx, self.tokenizer)
        }
        text = json.dumps([settings, weights], sort_keys=True)
        return Identity("local", self.name, self.dimensions, hashlib.sha256(text.encode()).hexdigest())


def read(folder: Path) -> Model:
    """Return the model in this folder, or raise EmbedderUnavailable."""
    if not folder.is_dir():
        raise EmbedderUnavailable(f"the model folder {folder} does not exist")
    manifest = _json(folder / "manifest.json")
    try:
        model = _from_manifest(folder, manifest) if manifest else _from_sentence_transformers(folder)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EmbedderUnavailable(f"the model folder {folder} has a wrong description: {error!r}") from error
    for name in (model.onnx, model.tokenizer):
        if not (folder / name).is_file():
            raise EmbedderUnavailable(f"the model folder {folder} has no {name}")
    return model


def _from_manifest(folder: Path, manifest: dict[str, Any]) -> Model:
    digests = {str(name): str(entry["sha256"]) for name, entry in manifest.get("files", {}).items()}
    graphs = [name for name in digests if name.endswith(".onnx")]
    pooling = manifest.get("pooling", "in-graph")
    if pooling not in POOLINGS:
        raise ValueError(f"pooling is {pooling!r}, not one of {', '.join(POOLINGS)}")
    if any(Path(name).is_absolute() or ".." in Path(name).parts for name in digests):
        raise ValueError("a file is outside the folder")
    return Model(
        folder=folder,
        name=str(manifest.get("name", folder.name)),
        dimensions=int(manifest["dims"]),
        onnx=graphs[0] if graphs else _graph(folder),
        pooling=pooling,
        output=manifest.get("output"),
        max_length=int(manifest.get("max_length", 512)),
        query_prefix=str(manifest.get("query_prefix", "")),
        doc_prefix=str(manifest.get("doc_prefix", "")),
        simplified_queries=manifest.get("simplified_queries") is True,
        digests=digests,
    )


def _from_sentence_transformers(folder: Path) -> Model:
    """Read a sentence-transformers export, which spreads these facts over several files."""
    config = _json(folder / "config.json")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts", {})
    width = next((config[key] for key in ("hidden_size", "d_model", "dim", "n_embd") if key in config), None)
    if width is None:
        raise ValueError("neither manifest.json (dims) nor config.json (hidden_size) has its dimensions")
    return Model(
        folder=folder,
        name=folder.name,
        dimensions=int(width),
        onnx=_graph(folder),
        pooling=_pooling(_json(folder / "1_Pooling" / "config.json")),
        max_length=_length(folder, config),
        query_prefix=prompts.get("query", ""),
        doc_prefix=prompts.get("document", "") or prompts.get("passage", ""),
    )


def _graph(folder: Path) -> str:
    usual = [folder / "model.onnx", folder / "onnx" / "model.onnx"]
    found = (*usual, *sorted(folder.glob("*.onnx")), *sorted(folder.glob("onnx/*.onnx")))
    graph = next((path for path in found if path.is_file()), usual[0])
    return graph.relative_to(folder).as_posix()


def _pooling(config: dict[str, Any]) -> str:
    if config.get("pooling_mode_cls_token"):
        return "cls"
    return "last" if config.get("pooling_mode_lasttoken") else "mean"


def _length(folder: Path, config: dict[str, Any]) -> int:
    tokenizer = _json(folder / "tokenizer_config.json")
    stated = (
        _json(folder / "sentence_bert_config.json").get("max_seq_length"),
        tokenizer.get("model_max_length"),
        config.get("max_position_embeddings"),
    )
    # Tokenizers without a limit say about 10^30. RoBERTa's first position is 2.
    usable = [int(length) for length in stated if length and 8 <= length <= 100_000]
    positions = int(config.get("max_position_embeddings", 100_000))
    reserved = 2 if "roberta" in str(config.get("model_type", "")) else 0
    return min(usable[0], positions - reserved) if usable else 512


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise EmbedderUnavailable(f"{path} cannot be read: {reason_of(error)}") from error
    if not isinstance(data, dict):
        raise EmbedderUnavailable(f"{path} is not a JSON object")
    return data


def sample(path: Path) -> str:
    """Return a quick digest of a large file: its size, beginning, middle and end."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for offset in (0, max(0, size // 2), max(0, size - SAMPLE_BYTES)):
            file.seek(offset)
            digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()
