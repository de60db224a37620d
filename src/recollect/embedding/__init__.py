"""What is this text's vector?

An `Embedder` turns texts into vectors of length one; `resolve` finds the one that the settings name, and says
in words why it is that one, or why there is none. Wrappers add what every provider needs: `Batched` (budgets
and workers), `Cached` (never embed the same text twice), `RememberedQueries`. Comparing vectors is the
store's duty.

Importing this room is cheap: numpy, onnxruntime and tokenizers load with the first text.

    >>> from recollect.embedding import resolve
    >>> resolve("none").reason
    'keyword search only, as set'
"""

from __future__ import annotations

from recollect.embedding.batches import Batched
from recollect.embedding.cache import Cached, Ensured, RememberedQueries, VectorCache
from recollect.embedding.lookup import Choice, resolve
from recollect.embedding.protocol import Embedder

__all__ = [
    "Batched",
    "Cached",
    "Choice",
    "Embedder",
    "Ensured",
    "RememberedQueries",
    "VectorCache",
    "resolve",
]
