"""Write the model folder: an ONNX graph built by hand, in int8, and the manifest. Does not need torch.

The graph avoids two fusions of onnxruntime. It would fuse Add and LayerNormalization into
SkipLayerNormalization, which is several times slower on a CPU, so residuals are added with Sum. It
would fuse a bias into BiasGelu, so Gelu is a separate operator. int8 matrices use the reduced range:
with the full range, CPUs with AVX2 but without VNNI can overflow. The word table is only looked up,
so it uses the full range, with a scale for every row.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from training import manifest
from training.config import Config

_MICROSOFT = "com.microsoft"


class Graph:
    """Collects nodes and constants."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes: list[object] = []
        self.constants: list[object] = []

    def constant(self, name: str, value: np.ndarray) -> str:
        """Add a constant; floats as float32."""
        kind = np.float32 if value.dtype.kind == "f" else value.dtype
        tensor = np.ascontiguousarray(value, dtype=kind)
        self.constants.append(self.numpy_helper.from_array(tensor, name))
        return name

    def node(self, operator: str, inputs: list[str], output: str, **attributes: object) -> str:
        """Add a node with one output."""
        domain = str(attributes.pop("domain", ""))
        made = self.helper.make_node(
            operator, inputs, [output], name=output + "/" + operator, domain=domain, **attributes
        )
        self.nodes.append(made)
        return output

    def linear(self, x: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """Multiply by [out, in] weights and add the bias."""
        product = self.node("MatMul", [x, self.constant(f"{name}.w", weight.T)], f"{name}.product")
        return self.node("Add", [product, self.constant(f"{name}.b", bias)], name)

    def norm(self, x: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """Normalise the last axis."""
        inputs = [x, self.constant(f"{name}.w", weight), self.constant(f"{name}.b", bias)]
        return self.node("LayerNormalization", inputs, name, axis=-1, epsilon=1e-12)


def build(weights: dict[str, np.ndarray], heads: int) -> object:
    """Build the float model: ids and mask in, unit vectors out."""
    from onnx import TensorProto, helper

    graph = Graph()
    x = _embed(graph, weights)
    graph.node("Cast", ["attention_mask"], "mask32", to=TensorProto.INT32)
    count = 1 + max(int(k.split(".")[2]) for k in weights if k.startswith("encoder.layers."))
    for number in range(count):
        prefix = f"encoder.layers.{number}."
        own = {k.removeprefix(prefix): v for k, v in weights.items() if k.startswith(prefix)}
        x = _layer(graph, x, f"layer{number}", own, heads)
    _pool(graph, x, weights)
    width = weights["project.weight"].shape[0]
    made = helper.make_graph(
        graph.nodes,
        manifest.NAME,
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", width])],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_MICROSOFT, 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8)


def by_row(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise a table to int8, with a scale for each row."""
    scale = np.maximum(np.abs(table).max(1, keepdims=True), 1e-9) / 127
    return np.round(table / scale).astype(np.int8), scale.astype(np.float32)


def _embed(graph: Graph, weights: dict[str, np.ndarray]) -> str:
    from onnx import TensorProto

    table, scale = by_row(weights["encoder.word.weight"])
    graph.constant("word", table)
    graph.constant("word.scale", scale)
    # There is only one token type, so its vector is added to the position table.
    places = weights["encoder.position.weight"] + weights["encoder.kind.weight"][0]
    graph.constant("position", places)
    zero = graph.constant("zero", np.array([0], np.int64))
    graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    graph.node("Slice", ["position", zero, "length", zero], "places")
    graph.node("Gather", ["word", "input_ids"], "whole")
    graph.node("Cast", ["whole"], "unscaled", to=TensorProto.FLOAT)
    graph.node("Gather", ["word.scale", "input_ids"], "scale")
    graph.node("Mul", ["unscaled", "scale"], "words")
    graph.node("Add", ["words", "places"], "embedded")
    return graph.norm("embedded", "norm", weights["encoder.norm.weight"], weights["encoder.norm.bias"])


def _layer(graph: Graph, x: str, name: str, own: dict[str, np.ndarray], heads: int) -> str:
    parts = zip(np.split(own["qkv.weight"], 3), np.split(own["qkv.bias"], 3), "qkv", strict=True)
    q, k, v = (graph.linear(x, f"{name}.{part}", w, b) for w, b, part in parts)
    mixed = graph.node(
        "MultiHeadAttention",
        [q, k, v, "", "mask32"],
        f"{name}.mixed",
        domain=_MICROSOFT,
        num_heads=heads,
    )
    out = graph.linear(mixed, f"{name}.o", own["o.weight"], own["o.bias"])
    x = graph.node("Sum", [x, out], f"{name}.first")
    x = graph.norm(x, f"{name}.n1", own["n1.weight"], own["n1.bias"])
    wide = graph.linear(x, f"{name}.f1", own["f1.weight"], own["f1.bias"])
    wide = graph.node("Gelu", [wide], f"{name}.gelu", domain=_MICROSOFT)
    out = graph.linear(wide, f"{name}.f2", own["f2.weight"], own["f2.bias"])
    x = graph.node("Sum", [x, out], f"{name}.second")
    return graph.norm(x, f"{name}.n2", own["n2.weight"], own["n2.bias"])


def _pool(graph: Graph, x: str, weights: dict[str, np.ndarray]) -> None:
    from onnx import TensorProto

    last = graph.constant("axis2", np.array([2], np.int64))
    along = graph.constant("axis1", np.array([1], np.int64))
    graph.node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
    graph.node("Unsqueeze", ["mask", last], "mask3")
    graph.node("Mul", [x, "mask3"], "read")
    graph.node("ReduceSum", ["read", along], "sum", keepdims=0)
    graph.node("ReduceSum", ["mask3", along], "count", keepdims=0)
    graph.node("Div", ["sum", "count"], "mean")
    matrix = graph.constant("project.w", weights["project.weight"].T)
    bias = graph.constant("project.b", weights["project.bias"])
    graph.node("Gemm", ["mean", matrix, bias], "projected")
    graph.node("LpNormalization", ["projected"], "sentence_embedding", axis=-1, p=2)


def quantise(source: Path, target: Path) -> None:
    """Quantise matrix products to int8. The word table is already int8."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        source,
        target,
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
    )


def run(work: Path, out: Path, target: Path, config: Config) -> None:
    """Write model.onnx, tokenizer.json and manifest.json to `target`."""
    import onnx

    weights = {k: v.astype(np.float32) for k, v in np.load(out / "weights.npz").items()}
    target.mkdir(parents=True, exist_ok=True)
    whole = out / "model-float.onnx"
    onnx.save(build(weights, config.student.heads), str(whole))
    quantise(whole, target / "model.onnx")
    shutil.copyfile(work / "tokenizer.json", target / "tokenizer.json")
    data = json.loads((work / "counts.json").read_text(encoding="utf-8"))["digest"]
    rows = weights["encoder.word.weight"].shape[0]
    manifest.write(target, manifest.build(target, rows, config.as_dict(), data))
    manifest.check(target)
