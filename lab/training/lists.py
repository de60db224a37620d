"""Candidate lists: found by the teacher, by BM25 and later by the student, scored by the cross-encoder.

Also hard negatives for Chinese, for which there is not a cross-encoder.

BM25 runs on the device as a sparse product over the teacher's word pieces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lab.training import teachers
from lab.training.config import Config, ListConfig
from lab.training.dataset import Dataset
from lab.training.model import CrossEncoder
from lab.training.prepare import View
from lab.training.tokens import Tokens, autocast, batches, to_device

_QUESTION = re.compile(
    r"\?\s*$|^(who|what|when|where|why|how|which|does|did|is|are|can|tell|list|explain)\b",
    re.IGNORECASE,
)
_SHARES = (0.4, 0.3, 0.24, 0.06)  # of the queries, by kind
_LONG = 120  # tokens
_NEGATIVES = 7
_CHINESE_ASKS = 100_000
# Ranks that candidates are drawn from, one draw per span.
_TEACHER_RANKS = ((0, 3), (1, 6), (3, 10), (6, 20), (12, 40), (30, 90), (60, 150))
_WORD_RANKS = ((0, 3), (1, 6), (3, 12), (6, 20), (10, 30))
STUDENT_RANKS = ((0, 2), (1, 4), (2, 6), (4, 9), (6, 14), (10, 24), (20, 60), (40, 120))


@dataclass
class Lists:
    """Queries, candidates [n, size] and scores; numbers are those of texts, or of pairs in parallel lists."""

    queries: np.ndarray
    candidates: np.ndarray
    scores: np.ndarray


class Words:
    """BM25 over a pool of texts: a sparse matrix of term weights."""

    def __init__(self, tokens: Tokens, pool: np.ndarray) -> None:
        self.tokens, device = tokens, tokens.device
        size = int(tokens.flat.max()) + 1
        row = torch.repeat_interleave(torch.arange(len(tokens.lengths), device=device), tokens.sizes)
        place = torch.full((len(tokens.lengths),), -1, dtype=torch.long, device=device)
        place[torch.from_numpy(pool).to(device)] = torch.arange(len(pool), device=device)
        inside = place[row] >= 0
        key, count = torch.unique(place[row[inside]] * size + tokens.flat[inside].long(), return_counts=True)
        document, term = key // size, key % size
        length = tokens.sizes[torch.from_numpy(pool).to(device)].float()
        norm = 1.2 * (0.25 + 0.75 * length / length.mean())
        frequency = torch.bincount(term, minlength=size).float()
        self.idf = torch.log1p((len(pool) - frequency + 0.5) / (frequency + 0.5))
        # Pieces in more than a tenth of the texts mean little and would fill the matrix.
        self.idf[frequency > 0.1 * len(pool)] = 0
        use = self.idf[term] > 0
        weight = (count * 2.2 / (count + norm[document]))[use]
        bounds = torch.zeros(len(pool) + 1, dtype=torch.long, device=device)
        bounds[1:] = torch.bincount(document[use], minlength=len(pool)).cumsum(0)
        self.matrix = torch.sparse_csr_tensor(
            bounds, term[use], weight, (len(pool), size), check_invariants=False
        )

    def scores(self, chosen: np.ndarray) -> Tensor:
        """Return BM25 scores [queries, pool]."""
        lengths = self.tokens.lengths[chosen]
        ids = self.tokens.packed(chosen, lengths).ids
        asked = torch.zeros(len(self.idf), len(chosen), device=ids.device)
        column = to_device(np.repeat(np.arange(len(chosen)), lengths), self.tokens.device)
        asked[ids, column] = self.idf[ids]
        return (self.matrix @ asked).T


def _draw(ranked: Tensor, ranks: tuple[tuple[int, int], ...]) -> Tensor:
    """Draw one column from each span of ranks, row by row."""
    last = ranked.shape[1] - 1
    columns = [
        torch.randint(min(a, last), min(b, last) + 1, (len(ranked),), device=ranked.device) for a, b in ranks
    ]
    return ranked.gather(1, torch.stack(columns, 1))


def mine(
    queries: np.ndarray,
    gold: np.ndarray,
    pool: np.ndarray,
    found: Tensor,
    words: Words | None,
    config: ListConfig,
    ranks: tuple[tuple[int, int], ...] = _TEACHER_RANKS,
) -> np.ndarray:
    """Return candidates [queries, size]: gold first (where >= 0), then mined, then random ones.

    `found` are unit vectors by text number. A query is never its own candidate.
    """
    device = found.device
    texts = torch.from_numpy(pool).to(device)
    matrix = found[texts]
    out = []
    for begin in range(0, len(queries), config.chunk):
        part = queries[begin : begin + config.chunk]
        near = (found[torch.from_numpy(part).to(device)] @ matrix.T).topk(min(152, len(pool)), 1)
        drawn = [_draw(near.indices, ranks)]
        if words is not None:
            drawn.append(_draw(words.scores(part).topk(min(32, len(pool)), 1).indices, _WORD_RANKS))
        mined = torch.cat(drawn, 1)[:, : config.size - 1]
        spare = config.size - mined.shape[1]
        random = torch.randint(0, len(pool), (len(part), spare), device=device)
        rows = texts[torch.cat([random[:, :1], mined, random[:, 1:]], 1)]
        wanted = torch.from_numpy(gold[begin : begin + config.chunk]).to(device)
        rows[:, 0] = torch.where(wanted >= 0, wanted, rows[:, 0])
        other = texts[torch.randint(0, len(pool), rows.shape, device=device)]
        same = rows == torch.from_numpy(part).to(device)[:, None]
        out.append(torch.where(same, other, rows).cpu())
    return torch.cat(out).numpy()


class Scorer:
    """The cross-encoder over numbered English texts."""

    def __init__(self, work: Path, tokens: Tokens, limit: int) -> None:
        weights = teachers.load(work / "teachers" / "cross-encoder.npz")
        self.model = CrossEncoder(weights).to(tokens.device).eval()
        self.tokens, self.limit = tokens, limit

    @torch.no_grad()
    def __call__(self, queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
        """Return scores of the same shape as `candidates`."""
        size = candidates.shape[1]
        asked, texts = np.repeat(queries, size), candidates.reshape(-1)
        lengths = self.tokens.lengths[asked] + self.tokens.lengths[texts].clip(max=self.limit)
        scores = torch.zeros(len(asked), device=self.tokens.device)
        budget = 393_216 if self.tokens.device == "cuda" else 16_384
        for part in batches(lengths, budget):
            scores[torch.from_numpy(part).to(scores.device)] = self._score(asked[part], texts[part])
        return scores.half().cpu().numpy().reshape(candidates.shape)

    def _score(self, asked: np.ndarray, texts: np.ndarray) -> Tensor:
        with autocast(self.tokens.device):
            return self.model(self.tokens.paired(asked, texts, (64, self.limit))).float()


def english_queries(
    data: Dataset, view: View, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose queries for English lists: questions with a text, other queries, questions, short texts.

    Returns queries, gold texts (-1 where unknown) and the pool to search.
    """
    lengths = view.english.lengths
    asks = {int(q): int(d) for q, d in rng.permutation(view.asks["en"])}
    question = np.array([bool(_QUESTION.search(text)) for text in data.texts["en"]])
    usable = (lengths >= 6) & (lengths <= 40)
    real = {int(q) for q in np.flatnonzero(question & usable)}
    asked = np.array([q for q in asks if lengths[q] <= 48], np.int64)
    wordy = asked[~question[asked]]
    # Few queries have a long text, so those come first.
    wordy = wordy[np.argsort(lengths[[asks[int(q)] for q in wordy]] <= _LONG, kind="stable")]
    others = rng.permutation(sorted(real - asks.keys()))
    short = rng.permutation(np.flatnonzero(~question & usable & (lengths <= 20)))
    kinds = zip((asked[question[asked]], wordy, others, short), _SHARES, strict=True)
    chosen = [found[: int(count * share)] for found, share in kinds]
    queries = np.concatenate(chosen).astype(np.int64)
    gold = np.array([asks.get(int(q), -1) for q in queries], np.int64)
    pool = np.flatnonzero((lengths >= 7) & ~(question & (lengths <= 40)))
    return queries, gold, pool


def _parallel(
    data: Dataset, view: View, scorer: Scorer, config: ListConfig, rng: np.random.Generator
) -> Lists:
    """Build lists over the English texts of parallel pairs, stored by pair so that they can become Chinese."""
    english = data.pairs[:, 0]
    kept = view.pairs
    lengths = view.english.lengths[english[kept]]
    pair_of = np.full(len(data.texts["en"]), -1, np.int64)
    pair_of[english[kept]] = kept
    asks = dict(rng.permutation(view.pair_asks))
    plain = rng.permutation(kept[(lengths >= 5) & (lengths <= 32)])
    first = np.array([q for q in asks if pair_of[english[q]] >= 0], np.int64)
    chosen = np.concatenate([first, plain])[: config.parallel_queries]
    gold = np.array([english[asks[q]] if q in asks else -1 for q in chosen], np.int64)
    pool = np.unique(english[kept[lengths >= 7]])
    words = Words(view.english, pool)
    found = mine(english[chosen], gold, pool, view.native["en"], words, config)
    scores = scorer(english[chosen], found)
    # A gold text may be in a pair that was dropped as badly aligned. Its rivals stay.
    pairs = pair_of[found]
    scores = np.where(pairs >= 0, scores, np.float16(-1e4))
    return Lists(chosen, np.maximum(pairs, 0), scores)


def _chinese_negatives(
    view: View, config: ListConfig, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return hard negatives for Chinese queries, without those that the teacher scores almost like the gold."""
    asks = rng.permutation(view.asks["zh"])[:_CHINESE_ASKS]
    pool = np.flatnonzero((view.chinese.lengths >= 8) & (view.chinese.lengths <= 300))
    native, device = view.native["zh"], view.native["zh"].device
    words = Words(view.chinese, pool)
    found = mine(asks[:, 0], asks[:, 1], pool, native, words, config)
    found = found[:, 1 + rng.permutation(found.shape[1] - 1)[:_NEGATIVES]]
    for begin in range(0, len(asks), 4_096):
        rows = torch.from_numpy(found[begin : begin + 4_096]).to(device)
        both = torch.from_numpy(asks[begin : begin + 4_096]).to(device)
        query = native[both[:, 0]].float()
        best = (query * native[both[:, 1]].float()).sum(-1, keepdim=True)
        near = (query[:, None] * native[rows].float()).sum(-1) > 0.9 * best
        other = torch.from_numpy(rng.choice(pool, rows.shape)).to(device)
        found[begin : begin + 4_096] = torch.where(near, other, rows).cpu().numpy()
    return asks, found


def run(work: Path, data: Dataset, view: View, config: Config, name: str = "lists") -> dict[str, np.ndarray]:
    """Build all lists, or read them if the work folder has them for this data."""
    cache = work / f"{name}.npz"
    if cache.exists():
        stored = dict(np.load(cache))
        if str(stored.pop("digest")) == view.digest:
            return stored
    torch.manual_seed(config.train.seed)
    rng = np.random.default_rng(config.train.seed)
    scorer = Scorer(work, view.english, config.lists.max_tokens)
    queries, gold, pool = english_queries(data, view, config.lists.queries, rng)
    words = Words(view.english, pool)
    found = mine(queries, gold, pool, view.native["en"], words, config.lists)
    english = Lists(queries, found, scorer(queries, found))
    parallel = _parallel(data, view, scorer, config.lists, rng)
    asks, negatives = _chinese_negatives(view, config.lists, rng)
    out = {
        "queries": english.queries, "candidates": english.candidates, "scores": english.scores,
        "gold": gold, "pool": pool,
        "parallel_queries": parallel.queries, "parallel_candidates": parallel.candidates,
        "parallel_scores": parallel.scores, "chinese_asks": asks, "chinese_negatives": negatives,
    }  # fmt: skip
    small = {k: v.astype(np.int32) if v.dtype == np.int64 else v for k, v in out.items()}
    np.savez(cache, digest=np.array(view.digest), **small)
    return small
