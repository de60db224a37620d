"""The ways to search that an evaluation compares: the modes, the default without one part, and other weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

Overrides = Mapping[str, object]

#: The variant with default settings.
DEFAULT = "hybrid"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to search. All variants of a run share one index."""

    name: str
    settings: Overrides = field(default_factory=dict)
    #: Fields of `memoriter.search.Options` that no setting names.
    options: Overrides = field(default_factory=dict)
    #: Ask at most this many queries of each group. None: all.
    sample: int | None = None


MODES: Mapping[str, Variant] = {
    "keyword": Variant("keyword", {"embedding.provider": "none"}),
    "vector": Variant("vector", {"search.vector_weight": 1.0, "search.text_weight": 0.0}),
    DEFAULT: Variant(DEFAULT),
}

#: What an ablation switches off.
PARTS: Mapping[str, Variant] = {
    "keyword": MODES["vector"],
    "vector": MODES["keyword"],
    "rerank": Variant("rerank", {"search.rerank": False}),
    "context": Variant("context", options={"context_share": 0.0}),
    "date": Variant("date", options={"date_weight": 0.0}),
    "weighted": Variant("weighted", {"search.fusion": "rrf"}),
}

#: Values among which the cross-validation chooses: the weight of meaning against words, and how much of the reranker's
#: weight counts.
VECTOR_WEIGHTS = (0.5, 0.6, 0.7)
RERANK_SHARES = (0.5, 1.0, 2.0)


def without(part: str, sample: int | None) -> Variant:
    """Return the default search without this part."""
    chosen = PARTS[part]
    return Variant(f"without {part}", chosen.settings, chosen.options, sample)


def grid(sample: int | None) -> list[Variant]:
    """Return the default search with every combination of other weights."""
    return [
        Variant(
            f"vector {vector:g}, rerank {rerank:g}",
            {"search.vector_weight": vector, "search.text_weight": round(1 - vector, 6)},
            {"rerank_share": rerank},
            sample,
        )
        for vector, rerank in product(VECTOR_WEIGHTS, RERANK_SHARES)
    ]
