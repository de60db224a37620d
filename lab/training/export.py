"""Write a model folder: an ONNX graph built by hand, in int8, and the manifest. Does not need torch.

The graph avoids two fusions of onnxruntime. It would fuse Add and LayerNormalization into
SkipLayerNormalization, which is several times slower on a CPU, so residuals are added with Sum. It
would fuse a bias into BiasGelu, so Gelu is a separate operator. int8 matrices use the reduced range:
with the full range, CPUs with AVX2 but without VNNI can overflow. The word table is only looked up,
so it uses the full range, with a scale for every row.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from lab.training import manifest
from lab.training.config import Config

_MICROSOFT = "com.microsoft"
#: The reranker's word vectors, after their norm: the output of words.onnx and an input of the reader's graph.
WORDS = "norm"
#: Bytes of a table from which on words.onnx leaves it in model.onnx.
MIN_SHARED = 4096


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
    """Build the embedder as a float model: ids and mask in, unit vectors out."""
    graph = Graph()
    _pool(graph, _encode(graph, weights, heads, reranker=False)[-1], weights)
    width = weights["project.weight"].shape[0]
    outputs = (("sentence_embedding", ["batch", width]),)
    return _model(graph, manifest.NAME, ("input_ids", "attention_mask"), outputs)


def build_reranker(weights: dict[str, np.ndarray], heads: int) -> object:
    """Build the reranker as a float model: ids, mask and token types of pairs in, one logit per pair out."""
    graph = Graph()
    outputs = _encode(graph, weights, heads, reranker=True)
    _answer(graph, outputs[-1], "logit", weights)
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    return _model(graph, manifest.RERANKER, inputs, (("logit", ["batch"]),))


def build_reader(weights: dict[str, np.ndarray], heads: int) -> object:
    """Build the reader of changes as a float model: the reranker's word vectors of pairs in, one logit per pair out."""
    from onnx import TensorProto

    graph = Graph()
    graph.node("Cast", ["attention_mask"], "mask32", to=TensorProto.INT32)
    last = _stack(graph, WORDS, weights, "layers.", heads, first_only=True)[-1]
    _answer(graph, last, "replaced", weights)
    width = weights["pool.weight"].shape[0]
    given = ((WORDS, width),)
    return _model(graph, manifest.READER, ("attention_mask",), (("replaced", ["batch"]),), given)


def _answer(graph: Graph, x: str, name: str, weights: dict[str, np.ndarray]) -> None:
    """Add the pooler and the score of the answer, from the first token."""
    along = graph.constant("axis1", np.array([1], np.int64))
    first = graph.node("Squeeze", [x, along], f"{name}.first")
    pooled = graph.node("Gemm", [first, *_parameters(graph, "pool", weights)], f"{name}.pooled")
    pooled = graph.node("Tanh", [pooled], f"{name}.tanh")
    score = graph.node("Gemm", [pooled, *_parameters(graph, "score", weights)], f"{name}.score")
    graph.node("Squeeze", [score, along], name)


def _parameters(graph: Graph, name: str, weights: dict[str, np.ndarray]) -> list[str]:
    return [
        graph.constant(f"{name}.w", weights[f"{name}.weight"].T),
        graph.constant(f"{name}.b", weights[f"{name}.bias"]),
    ]


def _encode(graph: Graph, weights: dict[str, np.ndarray], heads: int, *, reranker: bool) -> list[str]:
    """Add the embeddings and the layers. Return their outputs. A reranker needs only the last one's first token."""
    from onnx import TensorProto

    x = _embed(graph, weights, kinds=reranker)
    graph.node("Cast", ["attention_mask"], "mask32", to=TensorProto.INT32)
    return [x, *_stack(graph, x, weights, "encoder.layers.", heads, first_only=reranker)]


def _stack(
    graph: Graph, x: str, weights: dict[str, np.ndarray], prefix: str, heads: int, *, first_only: bool
) -> list[str]:
    """Add the layers whose weights have this prefix. Return the output of each."""
    outputs, count = [], _count(weights, prefix)
    for number in range(count):
        start = f"{prefix}{number}."
        own = {k.removeprefix(start): v for k, v in weights.items() if k.startswith(start)}
        x = _layer(graph, x, f"layer{number}", own, heads, first_only=first_only and number == count - 1)
        outputs.append(x)
    return outputs


def _count(weights: dict[str, np.ndarray], prefix: str) -> int:
    return 1 + max(
        int(name.removeprefix(prefix).split(".")[0]) for name in weights if name.startswith(prefix)
    )


def _model(
    graph: Graph,
    name: str,
    inputs: tuple[str, ...],
    outputs: tuple[tuple[str, list[object]], ...],
    vectors: tuple[tuple[str, int], ...] = (),
) -> object:
    from onnx import TensorProto, helper

    made = helper.make_graph(
        graph.nodes,
        name,
        [
            *(helper.make_tensor_value_info(each, TensorProto.INT64, ["batch", "length"]) for each in inputs),
            *(
                helper.make_tensor_value_info(each, TensorProto.FLOAT, ["batch", "length", width])
                for each, width in vectors
            ),
        ],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape) for output, shape in outputs],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_MICROSOFT, 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8)


def by_row(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise a table to int8, with a scale for each row."""
    scale = np.maximum(np.abs(table).max(1, keepdims=True), 1e-9) / 127
    return np.round(table / scale).astype(np.int8), scale.astype(np.float32)


def _embed(graph: Graph, weights: dict[str, np.ndarray], *, kinds: bool) -> str:
    from onnx import TensorProto

    table, scale = by_row(weights["encoder.word.weight"])
    graph.constant("word", table)
    graph.constant("word.scale", scale)
    first, second = weights["encoder.kind.weight"]
    # The vector of the first token type is added to the position table.
    graph.constant("position", weights["encoder.position.weight"] + first)
    zero = graph.constant("zero", np.array([0], np.int64))
    graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    graph.node("Slice", ["position", zero, "length", zero], "places")
    graph.node("Gather", ["word", "input_ids"], "whole")
    graph.node("Cast", ["whole"], "unscaled", to=TensorProto.FLOAT)
    graph.node("Gather", ["word.scale", "input_ids"], "scale")
    narrow = "encoder.widen.weight" in weights
    graph.node("Mul", ["unscaled", "scale"], "narrow" if narrow else "words")
    if narrow:
        widen = graph.constant("widen.w", weights["encoder.widen.weight"].T)
        graph.node("MatMul", ["narrow", widen], "words")
    graph.node("Add", ["words", "places"], "embedded" if not kinds else "placed")
    if kinds:
        last = graph.constant("axis2", np.array([2], np.int64))
        graph.node("Cast", ["token_type_ids"], "kinds", to=TensorProto.FLOAT)
        graph.node("Unsqueeze", ["kinds", last], "kinds3")
        graph.node("Mul", ["kinds3", graph.constant("kind", second - first)], "kinds.vectors")
        graph.node("Add", ["placed", "kinds.vectors"], "embedded")
    return graph.norm("embedded", "norm", weights["encoder.norm.weight"], weights["encoder.norm.bias"])


def _layer(
    graph: Graph, x: str, name: str, own: dict[str, np.ndarray], heads: int, *, first_only: bool
) -> str:
    """Add a layer. With `first_only`, the first token attends to all, and nothing else is computed."""
    asking = x
    if first_only:
        bounds = [graph.constant(f"{name}.{edge}", np.array([edge], np.int64)) for edge in (0, 1)]
        asking = graph.node("Slice", [x, *bounds, bounds[1]], f"{name}.asking")
    parts = zip(
        np.split(own["qkv.weight"], 3), np.split(own["qkv.bias"], 3), "qkv", (asking, x, x), strict=True
    )
    q, k, v = (graph.linear(given, f"{name}.{part}", w, b) for w, b, part, given in parts)
    x = asking
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


def read(folder: Path) -> dict[str, np.ndarray]:
    """Return the weights of a written model as float32, without the reranker's second answer."""
    return weights_of(_stored(folder))


def read_reader(folder: Path) -> dict[str, np.ndarray]:
    """Return the weights of a written reader as float32."""
    stored = _stored(folder)
    return _outputs(stored) | _layers(stored, "layers.")


def _stored(folder: Path) -> dict[str, np.ndarray]:
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(folder / "model.onnx")).graph
    return {each.name: numpy_helper.to_array(each) for each in graph.initializer}


def weights_of(stored: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights of a graph's initializers as float32."""
    kind = np.zeros((2, stored["position"].shape[1]), np.float32)
    kind[1] = stored.get("kind", kind[1])
    found = {
        "encoder.word.weight": stored["word"].astype(np.float32) * stored["word.scale"],
        "encoder.position.weight": stored["position"],
        "encoder.kind.weight": kind,
        "encoder.norm.weight": stored["norm.w"],
        "encoder.norm.bias": stored["norm.b"],
    }
    if "widen.w" in stored or "widen.w_quantized" in stored:
        found["encoder.widen.weight"] = _matrix(stored, "widen.w")
    return found | _outputs(stored) | _layers(stored, "encoder.layers.")


def _matrix(stored: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    if f"{name}_quantized" not in stored:
        return stored[name].T
    whole = stored[f"{name}_quantized"].astype(np.float32)
    zero = stored[f"{name}_zero_point"].astype(np.float32)
    return ((whole - zero) * stored[f"{name}_scale"]).T


def _outputs(stored: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    found = {}
    for name in ("project", "pool", "score"):
        if f"{name}.b" in stored:
            found[f"{name}.weight"] = _matrix(stored, f"{name}.w")
            found[f"{name}.bias"] = stored[f"{name}.b"]
    return found


def _layers(stored: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    found = {}
    for number in range(sum(name.startswith("layer") and name.endswith(".n1.w") for name in stored)):
        layer, own = f"layer{number}", f"{prefix}{number}"
        found[f"{own}.qkv.weight"] = np.concatenate([_matrix(stored, f"{layer}.{part}.w") for part in "qkv"])
        found[f"{own}.qkv.bias"] = np.concatenate([stored[f"{layer}.{part}.b"] for part in "qkv"])
        for part in ("o", "f1", "f2"):
            found[f"{own}.{part}.weight"] = _matrix(stored, f"{layer}.{part}.w")
            found[f"{own}.{part}.bias"] = stored[f"{layer}.{part}.b"]
        for part in ("n1", "n2"):
            found[f"{own}.{part}.weight"] = stored[f"{layer}.{part}.w"]
            found[f"{own}.{part}.bias"] = stored[f"{layer}.{part}.b"]
    return found


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
    """Write model.onnx, tokenizer.json and manifest.json of the embedder to `target`."""
    weights = _save(build, out, target, config.student.heads)
    shutil.copyfile(work / "tokenizer.json", target / "tokenizer.json")
    rows = weights["encoder.word.weight"].shape[0]
    manifest.write(target, manifest.build(target, rows, config.as_dict(), _data_digest(work)))
    manifest.check(target)


def run_reranker(work: Path, out: Path, target: Path, config: Config) -> None:
    """Write model.onnx and manifest.json of the reranker to `target`. The embedder's tokenizer serves both."""
    _save(build_reranker, out, target, config.rerank.heads)
    found = manifest.build_reranker(target, work / "tokenizer.json", config.as_dict(), _data_digest(work))
    manifest.write(target, found)
    manifest.check(target)


def run_reader(out: Path, target: Path, reranker: Path, layers: int, config: Config) -> None:
    """Write model.onnx and manifest.json of the reader of changes. The reranker in `reranker` returns its input."""
    parts = sorted(out.glob(f"reader-{layers}_*.npz"))
    np.savez(out / "weights.npz", **{k: v for part in parts for k, v in np.load(part).items()})
    _save(build_reader, out, target, config.rerank.heads)
    share_words(reranker)
    manifest.write(target, manifest.build_reader(target, reranker, layers, config.as_dict()))
    manifest.check(target)


def share_words(folder: Path) -> None:
    """Write words.onnx: the reranker's graph up to its word vectors, which the reader reads.

    onnxruntime computes a whole graph, whichever output is asked for. The tables stay in model.onnx, and the new graph
    names their places there.
    """
    import onnx
    from onnx.external_data_helper import set_external_data
    from onnx.utils import Extractor

    data = (folder / "model.onnx").read_bytes()
    whole = onnx.load_model_from_string(data)
    if all(output.name != WORDS for output in whole.graph.output):
        width = next(list(t.dims)[1] for t in whole.graph.initializer if t.name == "position")
        shape = ["batch", "length", width]
        whole.graph.output.append(onnx.helper.make_tensor_value_info(WORDS, onnx.TensorProto.FLOAT, shape))
    words = Extractor(whole).extract_model(["input_ids", "token_type_ids"], [WORDS])
    del words.graph.value_info[:]
    for table in words.graph.initializer:
        if len(table.raw_data) >= MIN_SHARED:
            set_external_data(table, "model.onnx", data.index(table.raw_data), len(table.raw_data))
            table.ClearField("raw_data")
    (folder / "words.onnx").write_bytes(words.SerializeToString())
    stored = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    stored["files"]["words.onnx"] = {"sha256": manifest.digest(folder / "words.onnx")}
    manifest.write(folder, stored)


def _save(
    build_graph: Callable[[dict[str, np.ndarray], int], object], out: Path, target: Path, heads: int
) -> dict[str, np.ndarray]:
    import onnx

    weights = {k: v.astype(np.float32) for k, v in np.load(out / "weights.npz").items()}
    target.mkdir(parents=True, exist_ok=True)
    whole = out / "model-float.onnx"
    onnx.save(build_graph(weights, heads), str(whole))
    quantise(whole, target / "model.onnx")
    return weights


def _data_digest(work: Path) -> str:
    return str(json.loads((work / "counts.json").read_text(encoding="utf-8"))["digest"])
