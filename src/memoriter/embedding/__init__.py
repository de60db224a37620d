"""What is this text's vector?

An `Embedder` turns texts into vectors of length one; `resolve` finds the one that a `EmbedderSpec` names, and says
in words why it is that one, or why there is none. Wrappers add what every provider needs: `Batched` (budgets
and workers), `Cached` (never embed the same text twice), `RememberedQueries`, `Retrying`, `Deadline`, `Breaker`.
Comparing vectors is the store's duty.

Importing this room is cheap: numpy, models and vendors' clients load with the first text.

    >>> from memoriter.embedding import EmbedderSpec, resolve
    >>> resolve(EmbedderSpec("none")).reason
    'keyword search only, as set'
"""

from __future__ import annotations

from memoriter.embedding.batches import Batched
from memoriter.embedding.cache import Cached, Ensured, RememberedQueries, VectorCache
from memoriter.embedding.jobs import Jobs
from memoriter.embedding.lookup import Choice, remake, resolve
from memoriter.embedding.protocol import Embedder
from memoriter.embedding.wish import EmbedderSpec

__all__ = [
    "Batched",
    "Cached",
    "Choice",
    "Embedder",
    "EmbedderSpec",
    "Ensured",
    "Jobs",
    "RememberedQueries",
    "VectorCache",
    "remake",
    "resolve",
]
