"""A model small enough to be written by hand: a table of word vectors as an ONNX graph, and its tokenizer.

ONNX is a protobuf message; the dozen fields that a table needs are written here byte by byte, so that no further
package is needed. It tests how graphs are fed and read, not what models know.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

DIMS = 8
WORDS = ["[UNK]", "the", "database", "backup", "runs", "at", "night", "数据库", "备份", "query:", "passage:"]


def vector_of(word: str) -> np.ndarray:
    """The row of the table for this word."""
    return table()[WORDS.index(word) if word in WORDS else 0]


def table() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(len(WORDS), DIMS)).astype(np.float32)


def write(
    folder: Path, *, in_graph: bool = False, inputs: tuple[str, ...] = ("input_ids", "attention_mask")
) -> None:
    """Put `model.onnx` and `tokenizer.json` into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(graph(in_graph, inputs))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER), "utf-8")


def write_manifest(folder: Path, **changes: object) -> None:
    files = {
        name: {"sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest()}
        for name in ("model.onnx", "tokenizer.json")
    }
    manifest = {"name": "tiny", "dims": DIMS, "pooling": "mean", "files": files} | changes
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": {
        "strategy": {"Fixed": 16},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[UNK]",
    },
    "added_tokens": [],
    "normalizer": {"type": "Lowercase"},
    "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
}


# ---- protobuf -------------------------------------------------------------------------------------------------


def number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(tag: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(data)) + data


FLOAT, INT64 = 1, 7


def value_info(name: str, kind: int, *shape: int | str) -> bytes:
    dims = b"".join(field(1, field(1, size) if isinstance(size, int) else field(2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


def node(kind: str, inputs: tuple[str, ...], output: str, attributes: bytes = b"") -> bytes:
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind) + attributes


def graph(in_graph: bool, inputs: tuple[str, ...]) -> bytes:
    rows = table()
    tensor = field(1, rows.shape[0]) + field(1, rows.shape[1]) + field(2, FLOAT) + field(8, "table")
    nodes = field(1, node("Gather", ("table", "input_ids"), "last_hidden_state"))
    output = value_info("last_hidden_state", FLOAT, "batch", "length", DIMS)
    if in_graph:
        axes = field(5, field(1, "axes") + field(8, 1) + field(20, 7))
        keep = field(5, field(1, "keepdims") + field(3, 0) + field(20, 2))
        nodes += field(1, node("ReduceMean", ("last_hidden_state",), "sentence_embedding", axes + keep))
        output = value_info("sentence_embedding", FLOAT, "batch", DIMS)
    body = nodes + field(2, "tiny") + field(5, tensor + field(9, rows.tobytes()))
    body += b"".join(field(11, value_info(name, INT64, "batch", "length")) for name in inputs)
    return field(1, 8) + field(7, body + field(12, output)) + field(8, field(1, "") + field(2, 17))
