"""Turn text into vectors.

An `Embedder` returns vectors of length one. `resolve` chooses the embedder of an `EmbedderSpec` and gives the reason.
Wrappers add what every provider needs: `Guarded` (checked vectors, time limits, cooldown, remembered
queries), `Batched` (batches and workers) and `Cached` (no text is embedded twice).

Importing this package is cheap: numpy, models and vendors' clients load with the first text.

    >>> from memoriter.embedding import EmbedderSpec, resolve
    >>> resolve(EmbedderSpec("none")).reason
    'keyword search only, as configured'
"""

from __future__ import annotations

from memoriter.embedding.cache import Batched, Cached, Ensured, VectorCache
from memoriter.embedding.guarded import Guarded
from memoriter.embedding.lookup import Choice, remake, resolve
from memoriter.embedding.protocol import Embedder, EmbedderSpec

__all__ = [
    "Batched",
    "Cached",
    "Choice",
    "Embedder",
    "EmbedderSpec",
    "Ensured",
    "Guarded",
    "VectorCache",
    "remake",
    "resolve",
]
