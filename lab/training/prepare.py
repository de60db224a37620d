"""The teachers' view of the data: tokens, target vectors, clusters, and well-aligned pairs.

English targets are bge-small-en's vectors, centred. Chinese targets are bge-small-zh's, centred
and mapped into the English space by a ridge regression fitted on the parallel pairs. Both
languages share one space from the first step.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lab.training import export, manifest, teachers
from lab.training.config import Config
from lab.training.dataset import LANGUAGES, Dataset
from lab.training.model import Student, teacher
from lab.training.tokens import Tokens, vectors

_WEAK_PAIRS = 0.06  # share of the parallel pairs dropped as badly aligned
_WORD_PAIR = 0.12  # minimum similarity of the two texts of a dictionary entry
_WEAK_ASK = 0.25  # minimum similarity of a query and its text, by the teacher
_CLUSTER = 300  # texts in a cluster, on average


@dataclass
class View:
    """The input of lists and training. Texts have the numbers of the data set."""

    digest: str
    student: Tokens  # English texts first, Chinese after them
    english: Tokens  # bge-small-en's tokens, which the cross-encoder shares
    chinese: Tokens
    target: dict[str, Tensor]  # unit vectors in the student's space
    native: dict[str, Tensor]  # unit vectors in each teacher's own centred space
    clusters: dict[str, tuple[np.ndarray, np.ndarray]]  # members in order, bounds
    asks: dict[str, np.ndarray]
    pairs: np.ndarray  # numbers of the pairs kept
    held_out: np.ndarray
    pair_asks: np.ndarray

    @property
    def offset(self) -> int:
        """The position of the first Chinese text in the student's tokens."""
        return len(self.target["en"])


def open_tokenizer(work: Path, name: str) -> Any:
    """Open a teacher's tokenizer."""
    path = work / "teachers" / f"{name}.tokenizer.json"
    return teachers.tokenizer(path, teachers.SOURCES[name])


def run(work: Path, data: Dataset, config: Config, device: str) -> View:
    """Compute the view, or read it if the work folder has it for this data."""
    cache = work / "view.pt"
    if cache.exists():
        view: View = torch.load(cache, map_location=device, weights_only=False)
        if view.digest == data.digest():
            return view
    torch.manual_seed(config.train.seed)
    view = _compute(work, data, config, device)
    torch.save(view, cache)
    return view


def _compute(work: Path, data: Dataset, config: Config, device: str) -> View:
    from tokenizers import Tokenizer

    limit = config.student.max_length
    student = Tokenizer.from_file(str(work / "tokenizer.json"))
    tokens = {
        "en": Tokens(open_tokenizer(work, "bge-small-en"), data.texts["en"], limit, device),
        "zh": Tokens(open_tokenizer(work, "bge-small-zh"), data.texts["zh"], limit, device),
    }
    raw = {}
    for language, name in (("en", "bge-small-en"), ("zh", "bge-small-zh")):
        encoder = teacher(teachers.load(work / "teachers" / f"{name}.npz")).to(device)
        raw[language] = vectors(encoder.first, tokens[language])
    native = {language: _centred(raw[language]) for language in LANGUAGES}
    mapped, agreement = _map(native, data)
    target = {"en": native["en"], "zh": mapped}
    pairs = _good_pairs(data, agreement)
    held = min(1_000, len(pairs) // 10)
    clusters = {language: _clusters(native[language]) for language in LANGUAGES}
    return View(
        digest=data.digest(),
        student=Tokens(student, data.texts["en"] + data.texts["zh"], limit, device),
        english=tokens["en"],
        chinese=tokens["zh"],
        target=target,
        native=native,
        clusters=clusters,
        asks={lang: _good_asks(data.asks[lang], native[lang]) for lang in LANGUAGES},
        pairs=pairs[held:],
        held_out=pairs[:held],
        pair_asks=_good_pair_asks(data, native["en"]),
    )


def run_own(work: Path, data: Dataset, embedder: Path, config: Config, device: str) -> View:
    """Compute the view of a finished embedder, whose search finds the candidates for the reranker.

    Chinese texts are converted to simplified characters, as the search does before reranking.
    """
    from tokenizers import Tokenizer

    from memoriter.text.tokens import to_simplified

    limit = config.student.max_length
    own = Tokenizer.from_file(str(embedder / "tokenizer.json"))
    texts = data.texts["en"] + [to_simplified(text) for text in data.texts["zh"]]
    student = Tokens(own, texts, limit, device)
    encoder = load_student(embedder).to(device)
    found = vectors(encoder, student)
    count = len(data.texts["en"])
    native = {"en": found[:count], "zh": found[count:]}
    both = data.pairs + np.array([0, count])
    pairs = _good_pairs(data, _agree(found, both))
    held = min(1_000, len(pairs) // 10)
    return View(
        digest=f"{data.digest()}-{manifest.digest(embedder / 'model.onnx')[:16]}",
        student=student,
        english=Tokens(open_tokenizer(work, "cross-encoder"), data.texts["en"], limit, device),
        chinese=student.part(count),
        target=native,
        native=native,
        clusters={},
        asks={lang: _good_asks(data.asks[lang], native[lang]) for lang in LANGUAGES},
        pairs=pairs[held:],
        held_out=pairs[:held],
        pair_asks=_good_pair_asks(data, native["en"]),
    )


def load_student(folder: Path) -> Student:
    """Open a written embedder as a network."""
    weights = export.read(folder)
    shape = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    student = Student(len(weights["encoder.word.weight"]), shape["hidden"], shape["layers"], shape["heads"])
    student.load_state_dict({k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in weights.items()})
    return student.eval()


def _centred(found: Tensor) -> Tensor:
    mean = torch.stack([part.float().sum(0) for part in found.split(100_000)]).sum(0) / len(found)
    out = torch.empty_like(found)
    for begin in range(0, len(found), 100_000):
        part = found[begin : begin + 100_000].float() - mean
        out[begin : begin + 100_000] = functional.normalize(part, dim=-1).half()
    return out


def _map(native: dict[str, Tensor], data: Dataset) -> tuple[Tensor, np.ndarray]:
    """Fit Chinese onto English twice, the second time without the worst pairs."""
    device = native["en"].device
    english, chinese = (native[k][torch.from_numpy(data.pairs[:, i]).to(device)].float()
                        for i, k in enumerate(LANGUAGES))  # fmt: skip
    plain = torch.from_numpy(data.pair_plain).to(device)
    keep = plain
    for _ in range(2):
        given, wanted = chinese[keep], english[keep]
        ridge = 1e-3 * len(given) / given.shape[1] * torch.eye(given.shape[1], device=device)
        matrix = torch.linalg.solve(given.T @ given + ridge, given.T @ wanted)
        agreement = (functional.normalize(chinese @ matrix, dim=-1) * english).sum(-1)
        floor = np.quantile(agreement[plain].cpu().numpy(), _WEAK_PAIRS)
        keep = plain & (agreement > float(floor))
    mapped = torch.cat(
        [functional.normalize(part.float() @ matrix, dim=-1).half() for part in native["zh"].split(100_000)]
    )
    return mapped, agreement.cpu().numpy()


def _good_pairs(data: Dataset, agreement: np.ndarray) -> np.ndarray:
    floor = np.quantile(agreement[data.pair_plain], _WEAK_PAIRS)
    good = np.where(data.pair_plain, agreement > floor, agreement > _WORD_PAIR)
    return np.random.default_rng(0).permutation(np.flatnonzero(good))


def _agree(found: Tensor, rows: np.ndarray) -> np.ndarray:
    index = torch.from_numpy(rows).to(found.device)
    return (found[index[:, 0]].float() * found[index[:, 1]].float()).sum(-1).cpu().numpy()


def _good_asks(asks: np.ndarray, native: Tensor) -> np.ndarray:
    return asks[_agree(native, asks) >= _WEAK_ASK]


def _good_pair_asks(data: Dataset, native: Tensor) -> np.ndarray:
    good = _agree(native, data.pairs[data.pair_asks][:, :, 0]) >= _WEAK_ASK
    return data.pair_asks[good]


def _clusters(found: Tensor, rounds: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """k-means by cosine; return the members ordered by cluster, and the clusters' bounds."""
    count = max(2, len(found) // _CLUSTER)
    centres = found[torch.randperm(len(found), device=found.device)[:count]].float()
    for _ in range(rounds):
        belongs = torch.cat([(p.float() @ centres.T).argmax(1) for p in found.split(100_000)])
        sums = torch.zeros_like(centres).index_add_(0, belongs, found.float())
        centres = functional.normalize(sums + 1e-6 * torch.randn_like(sums), dim=-1)
    order = torch.argsort(belongs, stable=True)
    bounds = torch.searchsorted(belongs[order].contiguous(), torch.arange(count + 1, device=found.device))
    return order.cpu().numpy(), bounds.cpu().numpy()
