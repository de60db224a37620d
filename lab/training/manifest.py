"""The manifest of a model folder: facts for the loader, and digests of the files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

NAME = "memoriter-embed-1"
RERANKER = "memoriter-rerank-1"
READER = "memoriter-changes-1"
FILES = ("model.onnx", "tokenizer.json")

_QUANTIZATION = "int8: matrices dynamic, per channel, reduced range; word table per row"
_NEEDS = "onnxruntime >= 1.20 (com.microsoft MultiHeadAttention, Gelu), tokenizers"


def digest(path: Path) -> str:
    """Return a file's sha256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build(folder: Path, vocabulary: int, settings: dict[str, Any], data: str) -> dict[str, Any]:
    """Describe the model in `folder`."""
    student, train = settings["student"], settings["train"]
    return {
        "name": NAME,
        "version": "1",
        "dims": student["hidden"],
        "truncatable_dims": [256, 128],
        "pooling": "in-graph",
        "output": "sentence_embedding",
        "inputs": ["input_ids (int64)", "attention_mask (int64)"],
        "token_type_ids": False,
        "normalized": True,
        "similarity": "dot = cosine",
        "max_length": student["max_length"],
        "trained_max_length": student["max_length"],
        "query_prefix": "",
        "doc_prefix": "",
        "simplified_queries": True,  # its training data has little traditional Chinese
        "layers": student["layers"],
        "hidden": student["hidden"],
        "heads": student["heads"],
        "vocab": vocabulary,
        "lowercase": True,
        "languages": ["zh", "en"],
        "licence": "Apache-2.0",
        "quantization": _QUANTIZATION,
        "opset": 17,
        "needs": _NEEDS,
        "files": {name: {"sha256": digest(folder / name)} for name in FILES},
        "training": {
            "steps": train["steps"],
            "seed": train["seed"],
            "data_digest": data,
            "card": "lab/models.md",
        },
    }


def build_reranker(folder: Path, tokenizer: Path, settings: dict[str, Any], data: str) -> dict[str, Any]:
    """Describe the reranker in `folder`. It reads pairs with the tokenizer of the embedder."""
    rerank = settings["rerank"]
    return {
        "name": RERANKER,
        "version": "1",
        "outputs": ["logit"],
        "inputs": ["input_ids (int64)", "attention_mask (int64)", "token_type_ids (int64)"],
        "pair": "[CLS] query [SEP] text [SEP]",
        "max_query": rerank["max_query"],
        "max_text": rerank["max_text"],
        "simplified": True,  # query and text are converted to simplified Chinese
        "layers": rerank["layers"],
        "hidden": rerank["hidden"],
        "heads": rerank["heads"],
        "lowercase": True,
        "languages": ["zh", "en"],
        "licence": "Apache-2.0",
        "quantization": _QUANTIZATION,
        "opset": 17,
        "needs": _NEEDS,
        "tokenizer": {"of": NAME, "sha256": digest(tokenizer)},
        "files": {"model.onnx": {"sha256": digest(folder / "model.onnx")}},
        "training": {
            "steps": rerank["steps"],
            "seed": rerank["seed"],
            "data_digest": data,
            "card": "lab/models.md",
        },
    }


def build_reader(folder: Path, reranker: Path, layers: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Describe the reader of changes in `folder`. It reads word vectors of the reranker."""
    reader = settings["reader"]
    return {
        "name": READER,
        "version": "1",
        "outputs": ["replaced"],
        "inputs": ["norm (float, of the reranker)", "attention_mask (int64)"],
        "pair": "[CLS] earlier [SEP] later [SEP]",
        "max_earlier": reader["max_tokens"],
        "max_later": reader["max_tokens"],
        "simplified": True,  # both statements are converted to simplified Chinese
        "layers": layers,
        "hidden": settings["rerank"]["hidden"],
        "heads": settings["rerank"]["heads"],
        "languages": ["zh", "en"],
        "licence": "Apache-2.0",
        "quantization": _QUANTIZATION,
        "opset": 17,
        "needs": _NEEDS,
        "words": {"of": RERANKER, "sha256": digest(reranker / "model.onnx")},
        "files": {"model.onnx": {"sha256": digest(folder / "model.onnx")}},
        "training": {"seed": reader["seed"], "card": "lab/models.md"},
    }


def write(folder: Path, manifest: dict[str, Any]) -> None:
    """Write manifest.json."""
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")


def check(folder: Path) -> None:
    """Raise ValueError if a file does not match the manifest."""
    stored = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name, entry in stored["files"].items():
        if digest(folder / name) != entry["sha256"]:
            raise ValueError(f"{name} does not match the manifest")
