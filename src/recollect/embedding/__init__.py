"""What is this text's vector?

An `Embedder` turns texts into vectors of length one; `resolve` finds the one that a `Wish` names, and says
in words why it is that one, or why there is none. Wrappers add what every provider needs: `Batched` (budgets
and workers), `Cached` (never embed the same text twice), `RememberedQueries`, `Retrying`, `Deadline`, `Breaker`.
Comparing vectors is the store's duty.

Importing this room is cheap: numpy, models and vendors' clients load with the first text.

    >>> from recollect.embedding import Wish, resolve
    >>> resolve(Wish("none")).reason
    'keyword search only, as set'
"""

from __future__ import annotations

from recollect.embedding.batches import Batched
from recollect.embedding.cache import Cached, Ensured, RememberedQueries, VectorCache
from recollect.embedding.jobs import Jobs
from recollect.embedding.lookup import Choice, remake, resolve
from recollect.embedding.protocol import Embedder
from recollect.embedding.wish import Wish

__all__ = [
    "Batched",
    "Cached",
    "Choice",
    "Embedder",
    "Ensured",
    "Jobs",
    "RememberedQueries",
    "VectorCache",
    "Wish",
    "remake",
    "resolve",
]
