"""The networks, in torch: an encoder for all teachers and for the student.

Post-norm transformer layers as in BERT, over concatenated texts: there is no padding, and a step's
texts run through the layers together. The student adds mean pooling, a projection and normalisation.
The cross-encoder adds its pooler and score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.varlen import varlen_attn

_EPSILON = 1e-12


@dataclass(frozen=True)
class Packed:
    """Concatenated texts, without padding."""

    ids: Tensor  # [tokens]
    places: Tensor  # [tokens], from 0 in every text
    bounds: Tensor  # [texts + 1], int32: the start of each text, and the end
    longest: int
    kinds: Tensor | None = None  # [tokens], if texts have two parts

    @property
    def starts(self) -> Tensor:
        """The first token of every text."""
        return self.bounds[:-1].long()


def packed(texts: Sequence[Sequence[int]]) -> Packed:
    """Pack the token ids of a few texts."""
    sizes = torch.tensor([len(ids) for ids in texts])
    bounds = functional.pad(sizes.cumsum(0), (1, 0)).int()
    ids = torch.tensor([i for ids in texts for i in ids])
    places = torch.cat([torch.arange(int(size)) for size in sizes])
    return Packed(ids, places, bounds, int(sizes.max()))


def attend(q: Tensor, k: Tensor, v: Tensor, bounds: Tensor, longest: int) -> Tensor:
    """Attention within every text; q, k and v are [tokens, heads, size]."""
    if q.device.type == "cuda":
        return varlen_attn(q, k, v, bounds, bounds, longest, longest)
    place = torch.arange(longest)
    mask = place < bounds.diff()[:, None]
    at = (bounds[:-1, None] + place).clamp(max=len(q) - 1)
    padded = (part[at].transpose(1, 2) for part in (q, k, v))
    mixed = functional.scaled_dot_product_attention(*padded, attn_mask=mask[:, None, None])
    return mixed.transpose(1, 2)[mask]


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

    def forward(self, x: Tensor, bounds: Tensor, longest: int) -> Tensor:
        """Transform [tokens, hidden]. Input and output have the same precision."""
        size, hidden = x.shape
        q, k, v = self.qkv(x).view(size, 3, self.heads, hidden // self.heads).unbind(1)
        mixed = attend(q, k, v, bounds, longest).reshape(size, hidden)
        x = self.n1(x + self.o(mixed)).to(x.dtype)
        return self.n2(x + self.f2(functional.gelu(self.f1(x)))).to(x.dtype)


class Encoder(nn.Module):
    """Embeddings and layers. With `rank`, the word table is narrower than the layers and is widened by a product."""

    def __init__(self, vocabulary: int, hidden: int, layers: int, heads: int, rank: int = 0) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, rank or hidden)
        self.widen = nn.Linear(rank, hidden, bias=False) if rank else None
        self.position = nn.Embedding(512, hidden)
        self.kind = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=_EPSILON)
        self.layers = nn.ModuleList(Layer(hidden, heads) for _ in range(layers))

    def forward(self, texts: Packed, count: int | None = None) -> Tensor:
        """Return [tokens, hidden] after the first `count` layers, or after all."""
        kind = self.kind.weight[0] if texts.kinds is None else self.kind(texts.kinds)
        words = self.word(texts.ids)
        words = words if self.widen is None else self.widen(words)
        x = self.norm(words + self.position(texts.places) + kind)
        device = x.device.type
        if torch.is_autocast_enabled(device):
            x = x.to(torch.get_autocast_dtype(device))
        for layer in self.layers[:count]:
            x = layer(x, texts.bounds, texts.longest)
        return x

    def first(self, texts: Packed) -> Tensor:
        """Return the first token's vector of every text."""
        return self(texts)[texts.starts]

    def fill(self, weights: Mapping[str, np.ndarray], layers: Sequence[int]) -> None:
        """Copy a teacher's weights. `layers` names the layers to copy."""
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


def compile_layers(device: str) -> None:
    """Compile the layers of all networks on a GPU."""
    if device == "cuda":
        Layer.forward = torch.compile(Layer.forward, dynamic=True)  # type: ignore


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

    def forward(self, texts: Packed) -> Tensor:
        """Return one score per text."""
        return self.score(torch.tanh(self.pool(self.encoder.first(texts)))).squeeze(-1)


class Reranker(nn.Module):
    """The released reranker: a cross-encoder of few layers."""

    def __init__(self, vocabulary: int, hidden: int, layers: int, heads: int, rank: int) -> None:
        super().__init__()
        self.encoder = Encoder(vocabulary, hidden, layers, heads, rank)
        self.pool = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, pairs: Packed) -> Tensor:
        """Return one logit per pair: how well the text answers the query."""
        return self.score(torch.tanh(self.pool(self.encoder.first(pairs)))).squeeze(-1)


class Comparer(nn.Module):
    """The layers of the reader of changes, after word vectors of the reranker, which stay as they are."""

    def __init__(self, hidden: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(hidden, heads) for _ in range(layers))
        self.pool = nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1)
        self.dropout = nn.Dropout(dropout)

    def read(self, x: Tensor, pairs: Packed) -> Tensor:
        """Return one vector per pair."""
        for layer in self.layers:
            x = layer(self.dropout(x), pairs.bounds, pairs.longest)
        return torch.tanh(self.pool(self.dropout(x[pairs.starts])))

    def forward(self, x: Tensor, pairs: Packed) -> Tensor:
        """Return one logit per pair."""
        return self.score(self.dropout(self.read(x, pairs))).squeeze(-1)


class Student(nn.Module):
    """The student, which is the released embedding model."""

    def __init__(self, vocabulary: int, hidden: int, layers: int, heads: int) -> None:
        super().__init__()
        self.encoder = Encoder(vocabulary, hidden, layers, heads)
        self.project = nn.Linear(hidden, hidden)

    def mean(self, texts: Packed) -> Tensor:
        """Return the mean over every text's tokens."""
        x = self.encoder(texts).float()
        sizes = texts.bounds.diff()
        owner = torch.repeat_interleave(torch.arange(len(sizes), device=x.device), sizes, output_size=len(x))
        sums = torch.zeros(len(sizes), x.shape[1], device=x.device).index_add(0, owner, x)
        return sums / sizes[:, None]

    def forward(self, texts: Packed) -> Tensor:
        """Return unit vectors."""
        return functional.normalize(self.project(self.mean(texts)).float(), dim=-1)


def start(
    student: Student,
    minilm: Mapping[str, np.ndarray],
    chinese: Mapping[str, np.ndarray],
    pieces: Mapping[str, int],
    english_pieces: Mapping[str, int],
    chinese_pieces: Mapping[str, int],
) -> None:
    """Start from MiniLM. Chinese rows come from bge-small-zh through a map fitted on shared pieces."""
    count = len(student.encoder.layers)
    # With fewer layers than MiniLM's six, the last one is kept, because its output was trained.
    order = [*range(count - 1), 5] if count < 6 else list(range(count))
    student.encoder.fill(minilm, order)
    rows = word_rows(minilm["word"], chinese["word"], pieces, english_pieces, chinese_pieces)
    _copy(student.encoder.word.weight, rows)


def word_rows(
    english: np.ndarray,
    other: np.ndarray,
    pieces: Mapping[str, int],
    english_pieces: Mapping[str, int],
    other_pieces: Mapping[str, int],
) -> np.ndarray:
    """Return a word table: rows of the English table, and rows of the other one, mapped by their shared pieces."""
    shared = [p for p in english_pieces if p in other_pieces and not p.startswith("[")]
    target = english[[english_pieces[p] for p in shared]]
    given = other[[other_pieces[p] for p in shared]]
    middle, centre = given.mean(0), target.mean(0)
    given, target = given - middle, target - centre
    ridge = 0.05 * len(given) * given.var(0).mean() * np.eye(given.shape[1], dtype=np.float32)
    mapped = (other - middle) @ np.linalg.solve(given.T @ given + ridge, given.T @ target)
    mapped *= np.linalg.norm(target, axis=1).mean() / np.linalg.norm(mapped, axis=1).mean()
    rows = np.zeros((len(pieces), target.shape[1]), np.float32)
    for piece, number in pieces.items():
        han = len(piece) == 1 and "\u3400" <= piece <= "\u9fff"
        if piece in english_pieces and not han:
            rows[number] = english[english_pieces[piece]]
        elif piece in other_pieces:
            rows[number] = mapped[other_pieces[piece]] + centre
    return rows
