"""Tokens of many texts on the device, and batches of similar length cut from them."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

_STEP = 16  # lengths are rounded up to this, so that few shapes occur
_texts: Sequence[str] = ()
_tokenizer: Any = None


def _encode(span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    found = [_tokenizer.encode(text).ids for text in _texts[span[0] : span[1]]]
    flat = np.fromiter((i for ids in found for i in ids), np.int32)
    return np.array([len(ids) for ids in found], np.int64), flat


def encode(tokenizer: Any, texts: Sequence[str], limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokenise on all cores; return lengths and one flat array."""
    global _texts, _tokenizer  # inherited by the forked workers
    tokenizer.enable_truncation(limit)
    _texts, _tokenizer = texts, tokenizer
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    spans = [(i, min(len(texts), i + 5_000)) for i in range(0, len(texts), 5_000)]
    if len(spans) < 4:
        parts = [_encode(span) for span in spans]
    else:
        with multiprocessing.get_context("fork").Pool(min(16, os.cpu_count() or 1)) as pool:
            parts = pool.map(_encode, spans, chunksize=1)
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


class Tokens:
    """The token ids of a list of texts, ready to be gathered on the device."""

    def __init__(self, tokenizer: Any, texts: Sequence[str], limit: int, device: str) -> None:
        lengths, flat = encode(tokenizer, texts, limit)
        self.lengths = lengths
        self.device = device
        self.flat = torch.from_numpy(flat).to(device)
        self.sizes = torch.from_numpy(lengths).to(device)
        self.starts = self.sizes.cumsum(0) - self.sizes

    def rows(self, chosen: np.ndarray, limit: int = 512) -> tuple[Tensor, Tensor]:
        """Return ids and mask of the chosen texts, padded to the longest."""
        longest = min(int(self.lengths[chosen].max()), limit)
        width = -(-longest // _STEP) * _STEP
        index = torch.from_numpy(chosen).to(self.device, non_blocking=True)
        place = torch.arange(width, device=self.device)
        mask = place < self.sizes[index].clamp(max=limit)[:, None]
        at = (self.starts[index][:, None] + place).clamp(max=len(self.flat) - 1)
        return (self.flat[at] * mask).long(), mask

    def batches(self, chosen: np.ndarray, budget: int) -> Iterator[np.ndarray]:
        """Yield positions within `chosen`, by length, at most `budget` padded tokens each."""
        yield from batches(self.lengths[chosen], budget)


def batches(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Cut positions, ordered by length, into batches of at most `budget` padded tokens."""
    order = np.argsort(lengths, kind="stable")
    end = len(order)
    while end > 0:
        width = -(-int(lengths[order[end - 1]]) // _STEP) * _STEP
        begin = max(0, end - max(1, budget // width))
        yield order[begin:end]
        end = begin


def autocast(device: str) -> torch.autocast:
    """bf16 on a GPU, plain float32 on a CPU."""
    return torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda")


@torch.no_grad()
def vectors(
    encode_rows: Callable[[Tensor, Tensor], Tensor],
    tokens: Tokens,
    chosen: np.ndarray | None = None,
    budget: int = 262_144,
    unit: bool = True,
) -> Tensor:
    """Encode the chosen texts (all by default) into vectors of half precision."""
    chosen = np.arange(len(tokens.lengths)) if chosen is None else chosen
    budget = budget if tokens.device == "cuda" else 16_384
    out: Tensor | None = None
    for part in tokens.batches(chosen, budget):
        with autocast(tokens.device):
            found = encode_rows(*tokens.rows(chosen[part]))
        found = found.float()
        found = (torch.nn.functional.normalize(found, dim=-1) if unit else found).half()
        if out is None:
            out = torch.empty(len(chosen), found.shape[1], dtype=found.dtype, device=found.device)
        out[torch.from_numpy(part).to(found.device)] = found
    assert out is not None
    return out
