"""Reading with a model that people bring: scores of any scale, a deadline, and a cooldown after a failure."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from memoriter import logs
from memoriter.errors import EmbeddingError, first_line
from memoriter.search.rerank import CACHED_PAIRS, SPREAD, PairCache, Reading
from memoriter.sentences import sentence

if TYPE_CHECKING:
    from memoriter.extensions.rerankers.settings import RerankerSettings

log = logs.get("search")

#: Seconds without a call after a failure. They double with each failure in a row.
COOLDOWN_S, MAX_COOLDOWN_S = 15.0, 600.0
#: Scores are divided by at least this, so that texts that answer alike do not get far apart.
LEAST_SPREAD = 0.05

#: A function: query and texts → the score of each text, in order.
Scores: TypeAlias = Callable[[str, Sequence[str]], Iterable[float]]


class OwnReranker:
    """A reranker from a function that returns scores. ``load`` returns this function when the first query comes.

    Models have scales of their own: probabilities, logits, or similarities that are all close to 1. So only the
    order and the distances within one answer count, and the labels of confidence do without the score.
    """

    def __init__(
        self,
        load: Callable[[], Scores],
        settings: RerankerSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._score: Scores | None = None
        self._settings = settings
        self._clock = clock
        self._cache = PairCache(CACHED_PAIRS)
        self._lock = threading.Lock()
        self._failures = 0
        self._retry_at = float("-inf")
        self._degraded: str | None = None

    def read(self, query: str, texts: Mapping[int, str]) -> Reading:
        """Return how well each text answers the query, relative to the others."""
        if not query.strip() or not texts:
            return Reading()
        with self._lock:
            if self._clock() < self._retry_at:
                return Reading(degraded=self._degraded)
        known = {row: self._cache.get(query, text) for row, text in texts.items()}
        missing = [row for row, score in known.items() if score is None]
        try:
            for row, score in self._until_deadline(missing, query, texts):
                known[row] = score
                self._cache.put(query, texts[row], score)
        except (EmbeddingError, ImportError) as error:
            return Reading(degraded=self._fail(error))
        with self._lock:
            self._failures = 0
        found = {row: score for row, score in known.items() if score is not None}
        return Reading(standardised(found), weight=self._settings.weight, is_calibrated=False)

    def _until_deadline(
        self, rows: Sequence[int], query: str, texts: Mapping[int, str]
    ) -> Iterable[tuple[int, float]]:
        if not rows:
            return
        ends = self._clock() + self._settings.timeout_s
        with self._lock:
            score_all = self._score = self._score or self._load()
        for row, score in zip(rows, score_all(query, [texts[row] for row in rows]), strict=True):
            yield row, score
            if self._clock() > ends:
                return

    def _fail(self, error: Exception) -> str:
        with self._lock:
            pause = min(MAX_COOLDOWN_S, COOLDOWN_S * 2**self._failures)
            self._failures += 1
            self._retry_at = self._clock() + pause
            self._degraded = sentence("search.not_reranked", why=first_line(error))
        log.warning("searching without the reranker for %g s: %s", pause, first_line(error))
        return self._degraded


def standardised(scores: Mapping[int, float]) -> dict[int, float]:
    """Return logits from scores of any scale: zero for their mean, and `SPREAD` for each standard deviation."""
    if not scores:
        return {}
    mean = statistics.fmean(scores.values())
    deviation = max(statistics.pstdev(scores.values(), mean), LEAST_SPREAD * max(abs(mean), 1e-3))
    return {row: SPREAD * (score - mean) / deviation for row, score in scores.items()}
