"""The bundled reranker as a GGUF file, so that llama.cpp can run a real cross-encoder without a download.

llama.cpp gives both texts of a pair the same kind, which this model tells apart, so its scores are weaker there. The
order of clear cases stays.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from memoriter.embedding.lookup import bundled_model
from memoriter.search.rerank import BUNDLED

LAYERS, HEADS, WIDTH = 4, 12, 384
MATRICES = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "f1": "ffn_up", "f2": "ffn_down"}
NORMS = {"n1": "attn_output_norm", "n2": "layer_output_norm"}


def write(path: Path) -> None:
    """Write the file."""
    import gguf
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(BUNDLED / "model.onnx").graph
    weights = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    writer = gguf.GGUFWriter(path, "bert")
    add_settings(writer)
    for name, values in tensors(weights).items():
        writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_settings(writer: Any) -> None:
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(4 * WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_uint32("bert.pooling_type", 4)
    writer.add_array("bert.classifier.output_labels", ["score"])
    folder = bundled_model()
    assert folder is not None
    vocabulary = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([word[2:] if word.startswith("##") else marked(word) for word in words])
    writer.add_token_types([3 if special(word) else 1 for word in words])
    writer.add_token_type_count(2)
    writer.add_unk_token_id(vocabulary["[UNK]"])
    writer.add_sep_token_id(vocabulary["[SEP]"])
    writer.add_pad_token_id(vocabulary["[PAD]"])
    writer.add_bos_token_id(vocabulary["[CLS]"])
    writer.add_eos_token_id(vocabulary["[SEP]"])


def special(word: str) -> bool:
    return word.startswith("[") and word.endswith("]") and len(word) > 2


def marked(word: str) -> str:
    """A word as llama.cpp names it: one that starts a word has a mark, one that goes on has none."""
    return word if special(word) else f"▁{word}"


def tensors(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    def matrix(name: str) -> np.ndarray:
        zero, scale = weights[f"{name}.w_zero_point"], weights[f"{name}.w_scale"]
        values: np.ndarray = (weights[f"{name}.w_quantized"].astype(np.float32) - zero) * scale
        return values.T

    words = weights["word"].astype(np.float32) * weights["word.scale"]
    found = {
        "token_embd.weight": words @ matrix("widen").T,
        "position_embd.weight": weights["position"],
        "token_types.weight": np.stack([np.zeros(WIDTH), weights["kind"]]),
        "token_embd_norm.weight": weights["norm.w"],
        "token_embd_norm.bias": weights["norm.b"],
        "cls.weight": matrix("pool"),
        "cls.bias": weights["pool.b"],
        "cls.output.weight": matrix("score"),
        "cls.output.bias": weights["score.b"],
    }
    for layer in range(LAYERS):
        for ours, theirs in MATRICES.items():
            found[f"blk.{layer}.{theirs}.weight"] = matrix(f"layer{layer}.{ours}")
            found[f"blk.{layer}.{theirs}.bias"] = weights[f"layer{layer}.{ours}.b"]
        for ours, theirs in NORMS.items():
            found[f"blk.{layer}.{theirs}.weight"] = weights[f"layer{layer}.{ours}.w"]
            found[f"blk.{layer}.{theirs}.bias"] = weights[f"layer{layer}.{ours}.b"]
    return found
