"""Confidence: the probability that a hit answers the query, on one scale for notes, sessions and entries.

A score orders the hits of one query. It does not say whether the best of them is an answer, because the nearest line to
"thanks, that works" has a score too. The probability comes from a logistic model of a few features:

- ``rerank``: the reranker's logit. It has read the query and the text together.
- ``meaning``: the cosine of the query and the text.
- ``words``: the share of the query's words that the text contains, weighted by how rare they are.
- ``gap``: how far the score is behind the best score of the answer.

``python -m lab.evals.calibrate`` fits the model and writes ``confidence.json``. There is one set of coefficients for
each combination of features, since a search may have no reranker or no vectors. Other embedders have cosines on another
scale, so beside a reranker only those of the bundled embedder count.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from memoriter.records import MEDIUM_CONFIDENCE, Answer, EntryHit, Explanation, Hit, level_of
from memoriter.sentences import join, sentence
from memoriter.text.tokens import find_words, query_terms

TABLE = Path(__file__).with_name("confidence.json")

#: The embedder whose cosines the coefficients are fitted to.
FITTED_MODEL = "memoriter-embed-1"
#: The number of nearest lines in an answer in which nothing is relevant.
NEAREST = 3
#: A hit with less than this share of the best confidence is left out, because relevance ends before it.
MIN_SHARE = 0.1
#: The coverage of a hit that contains every word of the query, with room for rounding.
ALL_WORDS = 0.999
#: Words, or pairs of Chinese characters, of a query that can be a list of keywords.
MAX_KEYWORDS = 4
#: Confidence below `MEDIUM_CONFIDENCE`, for hits that lack the identifier that the query asks for.
_CAPPED = MEDIUM_CONFIDENCE / 2

Features = Mapping[str, float]
AnyHit = TypeVar("AnyHit", Hit, EntryHit)


# ---- the probability ----------------------------------------------------------------------------------------------


def confidences(found: Sequence[tuple[Explanation, float]], model: str, query: str) -> list[float | None]:
    """Return the confidence of each hit of one answer, from explanations and scores; None for external engines.

    ``model`` is the embedder that computed the cosines. A hit with all keywords of a query may always answer it: the
    coefficients are fitted to questions, and the models do not know every name.
    """
    best = max((score for explain, score in found if _is_ours(explain)), default=0.0)
    is_exact = are_keywords(query)
    fitted = model in ("", FITTED_MODEL)
    confidence: list[float | None] = []
    for explain, score in found:
        least = MEDIUM_CONFIDENCE if is_exact and explain.coverage >= ALL_WORDS else 0.0
        value = probability(features_of(explain, best - score, fitted=fitted)) if _is_ours(explain) else None
        confidence.append(value and max(value, least))
    return confidence


def _is_ours(explain: Explanation) -> bool:
    return any(part.name in ("vector", "keyword") for part in explain.parts)


def features_of(explain: Explanation, behind: float, *, fitted: bool = True) -> dict[str, float]:
    """Return the features of a hit. ``fitted``: its cosine has the scale of the bundled embedder."""
    parts = {part.name: part.value for part in explain.parts}
    features = {"words": explain.coverage, "gap": max(-2.0, -8 * behind)}
    if explain.logit is not None:
        features["rerank"] = max(-2.0, min(2.0, explain.logit / 5))
    if "vector" in parts and (fitted or explain.logit is None):
        features["meaning"] = 4 * parts["vector"]
    return features


def probability(features: Features) -> float:
    """Return the probability that a hit with these features answers the query."""
    coefficients = _coefficients()[name_of(features)]
    total = coefficients["bias"] + sum(coefficients[name] * value for name, value in features.items())
    return 1 / (1 + math.exp(-total))


def name_of(features: Collection[str]) -> str:
    """Return the name of the set of coefficients for these features."""
    return "+".join(name for name in ("rerank", "meaning") if name in features) or "words"


@cache
def _coefficients() -> Mapping[str, Mapping[str, float]]:
    coefficients: Mapping[str, Mapping[str, float]] = json.loads(TABLE.read_text("utf-8"))["coefficients"]
    return coefficients


# ---- the answer ---------------------------------------------------------------------------------------------------


def judge(answer: Answer, query: str) -> Answer:
    """Return the answer with the confidence of each hit."""
    found = confidences([(hit.explain, hit.score) for hit in answer.hits], answer.model, query)
    if answer.unknown:
        found = [value and min(value, _CAPPED) for value in found]
    hits = (replace(hit, confidence=value) for hit, value in zip(answer.hits, found, strict=True))
    return replace(answer, hits=tuple(hits))


def conclude(answer: Answer, *, cut: bool) -> Answer:
    """Return a judged answer with its notice. ``cut`` leaves out what is not relevant.

    If nothing is relevant, the nearest lines stay, and the notice says so.
    """
    concluded = replace(answer, hits=tuple(relevant(answer.hits))) if cut else answer
    return replace(concluded, notice=_notice(concluded))


def relevant(hits: Sequence[AnyHit]) -> Sequence[AnyHit]:
    """Drop hits that are far less likely to answer than the best. If all are unlikely, return the nearest."""
    best = max((hit.confidence or 0.0 for hit in hits), default=0.0)
    if all(level_of(hit.confidence) == "low" for hit in hits):
        return hits[:NEAREST]
    return [hit for hit in hits if hit.confidence is None or hit.confidence >= MIN_SHARE * best]


def _notice(answer: Answer) -> str | None:
    """Return what a reader must know before the hits; None if there is nothing to say."""
    unknown = sentence("search.unknown", names=", ".join(answer.unknown)) if answer.unknown else None
    nothing = "search.nothing_relevant" if answer.hits else "search.nothing"
    return join(unknown, None if answer.relevant else sentence(nothing))


# ---- keywords and identifiers -------------------------------------------------------------------------------------

_LETTER, _DIGITS = re.compile("[a-z]"), re.compile(r"\d.*\d.*\d|_.*\d|\d.*_")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def are_keywords(query: str) -> bool:
    """Return whether a query consists of a few keywords, without a word such as "the", "what" or 的."""
    words, terms = list(find_words(query)), set(query_terms(query))
    return 0 < len(words) <= MAX_KEYWORDS and all(terms.intersection(tokens) for *_, tokens in words)


def identifiers(query: str) -> tuple[str, ...]:
    """Return the names such as OPS-1077 or ERR_CONN_42 in a query, as they are written.

    Names with fewer digits, such as UTF-8, often have another spelling, and a description finds them too.
    """
    return tuple(_identifiers(query).values())


def unknown_identifiers(query: str, unknown: Collection[str]) -> tuple[str, ...]:
    """Return the identifiers in a query that are among the unknown tokens."""
    return tuple(name for token, name in _identifiers(query).items() if token in unknown)


def _identifiers(query: str) -> dict[str, str]:
    """Return identifiers by their token."""
    words = ((tokens[0], query[start:end]) for start, end, tokens in find_words(query) if tokens)
    return {token: word for token, word in words if _is_identifier(token)}


def _is_identifier(token: str) -> bool:
    is_name = _LETTER.search(token) and _DIGITS.search(token) and not _DATE.match(token)
    return token.isascii() and bool(is_name)
