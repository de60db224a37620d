"""The networks, in torch: an encoder that holds any of the teachers and the student.

Post-norm transformer layers as in BERT. The student adds mean pooling, a projection and unit
length; the cross-encoder adds its pooler and score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

_EPSILON = 1e-12


class Layer(nn.Module):
    """Self-attention and feed-forward, each followed by its norm."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.o = nn.Linear(hidden, hidden)
        self.n1 = nn.LayerNorm(hidden, eps=_EPSILON)
        self.f1 = nn.Linear(hidden, 4 * hidden)
        self.f2 = nn.Linear(4 * hidden, hidden)
        self.n2 = nn.LayerNorm(hidden, eps=_EPSILON)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Transform [batch, length, hidden]; `mask` is [batch, 1, 1, length], True = read."""
        batch, size, hidden = x.shape
        split = self.qkv(x).view(batch, size, 3, self.heads, hidden // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.n1(x + self.o(mixed.transpose(1, 2).reshape(batch, size, hidden)))
        return self.n2(x + self.f2(functional.gelu(self.f1(x))))


class Encoder(nn.Module):
    """Embeddings and layers."""

    def __init__(self, vocabulary: int, hidden: int, layers: int, heads: int) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, hidden)
        self.position = nn.Embedding(512, hidden)
        self.kind = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=_EPSILON)
        self.layers = nn.ModuleList(Layer(hidden, heads) for _ in range(layers))

    def forward(
        self, ids: Tensor, mask: Tensor, kinds: Tensor | None = None, places: Tensor | None = None
    ) -> Tensor:
        """Return [batch, length, hidden]."""
        if places is None:
            places = torch.arange(ids.shape[1], device=ids.device)[None]
        kind = self.kind.weight[0] if kinds is None else self.kind(kinds)
        x = self.norm(self.word(ids) + self.position(places) + kind)
        read = mask[:, None, None, :]
        for layer in self.layers:
            x = layer(x, read)
        return x

    def fill(self, weights: Mapping[str, np.ndarray], layers: Sequence[int]) -> None:
        """Copy a teacher's weights; `layers` names which of its layers to take."""
        table = weights["word"]
        if self.word.weight.shape == table.shape:
            _copy(self.word.weight, table)
        _copy(self.position.weight, weights["position"])
        _copy(self.kind.weight, weights["type"])
        _copy(self.norm.weight, weights["norm.w"])
        _copy(self.norm.bias, weights["norm.b"])
        for layer, number in zip(self.layers, layers, strict=True):
            get = {k.partition(".")[2]: v for k, v in weights.items() if k.startswith(f"{number}.")}
            _copy(layer.qkv.weight, np.concatenate([get[f"{n}.w"].T for n in "qkv"]))
            _copy(layer.qkv.bias, np.concatenate([get[f"{n}.b"] for n in "qkv"]))
            for name in ("o", "f1", "f2"):
                _copy(getattr(layer, name).weight, get[f"{name}.w"].T)
                _copy(getattr(layer, name).bias, get[f"{name}.b"])
            for name in ("n1", "n2"):
                _copy(getattr(layer, name).weight, get[f"{name}.w"])
                _copy(getattr(layer, name).bias, get[f"{name}.b"])


def _copy(parameter: Tensor, value: np.ndarray) -> None:
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(np.ascontiguousarray(value)))


def teacher(weights: Mapping[str, np.ndarray]) -> Encoder:
    """Build the encoder that fits a teacher's weights."""
    vocabulary, hidden = weights["word"].shape
    layers = 1 + max(int(name.split(".")[0]) for name in weights if name[0].isdigit())
    built = Encoder(vocabulary, hidden, layers, heads=hidden // (64 if hidden == 512 else 32))
    built.fill(weights, range(layers))
    return built.eval()


class CrossEncoder(nn.Module):
    """Scores a query and a text read together."""

    def __init__(self, weights: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.encoder = teacher(weights)
        self.pool = nn.Linear(*weights["pool.w"].shape)
        self.score = nn.Linear(weights["score.w"].shape[0], 1)
        for part, name in ((self.pool, "pool"), (self.score, "score")):
            _copy(part.weight, weights[f"{name}.w"].T)
            _copy(part.bias, weights[f"{name}.b"])

    def forward(self, ids: Tensor, mask: Tensor, kinds: Tensor, places: Tensor) -> Tensor:
        """Return one score a row."""
        first = self.encoder(ids, mask, kinds, places)[:, 0]
        return self.score(torch.tanh(self.pool(first))).squeeze(-1)


class Student(nn.Module):
    """The model that is shipped."""

    def __init__(self, vocabulary: int, hidden: int, layers: int, heads: int) -> None:
        super().__init__()
        self.encoder = Encoder(vocabulary, hidden, layers, heads)
        self.project = nn.Linear(hidden, hidden)

    def mean(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the mean over the tokens that are read."""
        x = self.encoder(ids, mask)
        weight = mask[..., None].to(x.dtype)
        return (x * weight).sum(1) / weight.sum(1)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return unit vectors."""
        return functional.normalize(self.project(self.mean(ids, mask)).float(), dim=-1)


def start(
    student: Student,
    minilm: Mapping[str, np.ndarray],
    chinese: Mapping[str, np.ndarray],
    pieces: Mapping[str, int],
    english_pieces: Mapping[str, int],
    chinese_pieces: Mapping[str, int],
) -> None:
    """Start from MiniLM; Chinese rows come from bge-small-zh through a map fitted on shared pieces."""
    count = len(student.encoder.layers)
    # With fewer layers than MiniLM's six, the last one stays: its output is what was trained.
    order = [*range(count - 1), 5] if count < 6 else list(range(count))
    student.encoder.fill(minilm, order)
    shared = [p for p in english_pieces if p in chinese_pieces and not p.startswith("[")]
    target = minilm["word"][[english_pieces[p] for p in shared]]
    given = chinese["word"][[chinese_pieces[p] for p in shared]]
    middle, centre = given.mean(0), target.mean(0)
    given, target = given - middle, target - centre
    ridge = 0.05 * len(given) * given.var(0).mean() * np.eye(given.shape[1], dtype=np.float32)
    mapped = (chinese["word"] - middle) @ np.linalg.solve(given.T @ given + ridge, given.T @ target)
    mapped *= np.linalg.norm(target, axis=1).mean() / np.linalg.norm(mapped, axis=1).mean()
    rows = np.zeros((len(pieces), target.shape[1]), np.float32)
    for piece, number in pieces.items():
        han = len(piece) == 1 and "\u3400" <= piece <= "\u9fff"
        if piece in english_pieces and not han:
            rows[number] = minilm["word"][english_pieces[piece]]
        elif piece in chinese_pieces:
            rows[number] = mapped[chinese_pieces[piece]] + centre
    _copy(student.encoder.word.weight, rows)
