"""Tokens of many texts on the device, and batches of texts of similar length."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lab.training.model import Packed

_texts: Sequence[str] = ()
_tokenizer: Any = None


def _encode(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    found = [_tokenizer.encode(text).ids for text in _texts[span[0] : span[1]]]
    flat = np.fromiter((i for ids in found for i in ids), np.int32)
    return np.array([len(ids) for ids in found], np.int64), flat


def tokenise(tokenizer: Any, texts: Sequence[str], limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokenise on all cores; return lengths and one flat array."""
    global _texts, _tokenizer  # inherited by the forked workers
    tokenizer.enable_truncation(limit)
    tokenizer.no_padding()
    _texts, _tokenizer = texts, tokenizer
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    spans = [(i, min(len(texts), i + 5_000)) for i in range(0, len(texts), 5_000)]
    if len(spans) < 4:
        parts = [_encode(span) for span in spans]
    else:
        with multiprocessing.get_context("fork").Pool(min(16, os.cpu_count() or 1)) as pool:
            parts = pool.map(_encode, spans, chunksize=1)
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def to_device(found: np.ndarray | Tensor, device: str) -> Tensor:
    """Move an array to the device, unless it is already there."""
    return (torch.from_numpy(found) if isinstance(found, np.ndarray) else found).to(device, non_blocking=True)


class Tokens:
    """The token ids of a list of texts, on the device."""

    def __init__(self, tokenizer: Any, texts: Sequence[str], limit: int, device: str) -> None:
        lengths, flat = tokenise(tokenizer, texts, limit)
        self.lengths = lengths
        self.device = device
        self.flat = torch.from_numpy(flat).to(device)
        self.sizes = torch.from_numpy(lengths).to(device)
        self.starts = self.sizes.cumsum(0) - self.sizes

    def part(self, first: int) -> Tokens:
        """Return the texts from number `first` on, sharing their tokens."""
        tail = object.__new__(Tokens)
        tail.lengths, tail.device = self.lengths[first:], self.device
        start = int(self.starts[first])
        tail.flat, tail.sizes = self.flat[start:], self.sizes[first:]
        tail.starts = self.starts[first:] - start
        return tail

    def packed(self, chosen: np.ndarray | Tensor, sizes: np.ndarray) -> Packed:
        """Concatenate the chosen texts. `sizes` are their lengths, known without a query to the device."""
        index = to_device(chosen, self.device)
        total = int(sizes.sum())
        size = self.sizes[index]
        bounds = functional.pad(size.cumsum(0), (1, 0))
        shift = self.starts[index] - bounds[:-1]
        owner = torch.repeat_interleave(torch.arange(len(index), device=self.device), size, output_size=total)
        flat = torch.arange(total, device=self.device)
        ids = self.flat[flat + shift[owner]].long()
        return Packed(ids, flat - bounds[owner], bounds.int(), int(sizes.max()))

    def paired(self, first: np.ndarray, second: np.ndarray, limits: tuple[int, int]) -> Packed:
        """Concatenate pairs of texts, each cut to its limit, for a cross-encoder."""
        before = to_device(np.minimum(self.lengths[first], limits[0]), self.device)
        after = to_device(np.minimum(self.lengths[second], limits[1]) - 1, self.device)
        lengths = np.minimum(self.lengths[first], limits[0]) + np.minimum(self.lengths[second], limits[1]) - 1
        total = int(lengths.sum())
        bounds = functional.pad((before + after).cumsum(0), (1, 0))
        owner = torch.repeat_interleave(
            torch.arange(len(first), device=self.device), before + after, output_size=total
        )
        place = torch.arange(total, device=self.device) - bounds[owner]
        one, two = (self.starts[to_device(rows, self.device)] for rows in (first, second))
        kinds = place >= before[owner]
        # Without the start token of the second text.
        at = torch.where(kinds, two[owner] + place - before[owner] + 1, one[owner] + place)
        longest = int(lengths.max())
        return Packed(self.flat[at].long(), place.clamp(max=511), bounds.int(), longest, kinds.long())

    def batches(self, chosen: np.ndarray, budget: int) -> Iterator[np.ndarray]:
        """Yield positions within `chosen`, by length, about `budget` tokens each."""
        yield from batches(self.lengths[chosen], budget)


def batches(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Cut positions, ordered by length, into batches of about `budget` tokens."""
    order = np.argsort(lengths, kind="stable")
    so_far = lengths[order].cumsum()
    cuts = np.searchsorted(so_far, np.arange(budget, int(so_far[-1]), budget), side="right")
    yield from filter(len, np.split(order, np.unique(cuts)))


def autocast(device: str) -> torch.autocast:
    """Return bf16 on a GPU and float32 on a CPU."""
    return torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda")


@torch.no_grad()
def vectors(
    encode: Callable[[Packed], Tensor],
    tokens: Tokens,
    chosen: np.ndarray | None = None,
    budget: int = 262_144,
    unit: bool = True,
) -> Tensor:
    """Encode the chosen texts (all by default) into half-precision vectors."""
    chosen = np.arange(len(tokens.lengths)) if chosen is None else chosen
    budget = budget if tokens.device == "cuda" else 16_384
    out: Tensor | None = None
    for part in tokens.batches(chosen, budget):
        with autocast(tokens.device):
            found = encode(tokens.packed(chosen[part], tokens.lengths[chosen[part]]))
        found = found.float()
        found = (torch.nn.functional.normalize(found, dim=-1) if unit else found).half()
        if out is None:
            out = torch.empty(len(chosen), found.shape[1], dtype=found.dtype, device=found.device)
        out[to_device(part, tokens.device)] = found
    assert out is not None
    return out
