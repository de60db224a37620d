"""Names of settings in other programs, and the settings that they stand for.

OpenClaw and programs like it name many settings differently. Keys are in snake case; the settings file may also write
them in camel case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from memoriter.config.fields import reject_bool
from memoriter.extension import extensions, offers, resolve

Convert = Callable[[object], Mapping[str, object]]


def _divided(key: str, by: float) -> Convert:
    """Return a conversion to a larger unit. A value that is not a number stays: the check of the setting names it."""

    def convert(value: object) -> Mapping[str, object]:
        try:
            return {key: float(str(reject_bool(value))) / by}
        except ValueError:
            return {key: value}

    return convert


def _hybrid(value: object) -> Mapping[str, object]:
    """Return the weights of a search that combines vectors and keywords, or uses vectors alone."""
    if value in (False, "false", "False", "FALSE"):
        return {"search.vector_weight": 1.0, "search.text_weight": 0.0}
    return {} if value in (True, "true", "True", "TRUE") else {"search.vector_weight": value}


def _embedding_model(value: object) -> Mapping[str, object]:
    """Return the model with its provider, which the name of a well-known model reveals."""
    known = (
        name for name, offer in offers("embedders").items() if str(value).startswith(offer.models or ("\0",))
    )
    provider = next(known, None)
    return {"embedding.model": value, **({"embedding.provider": provider} if provider else {})}


OTHER_NAMES: Mapping[str, str | Convert] = {
    "sync.on_search": "search.sync_before",
    "sync.on_session_start": "watch.on_session_start",
    "sync.watch": "watch.enabled",
    "sync.interval_minutes": "watch.interval_minutes",
    "sync.interval_ms": _divided("watch.interval_minutes", 60_000),
    "sync.watch_debounce_ms": _divided("watch.debounce_s", 1000),
    "sync.sessions.delta_bytes": "sessions.delta_bytes",
    "sync.sessions.delta_messages": "sessions.delta_messages",
    "watch_debounce_ms": _divided("watch.debounce_s", 1000),
    "watch.debounce_ms": _divided("watch.debounce_s", 1000),
    "hybrid.enabled": _hybrid,
    "hybrid.vector_weight": "search.vector_weight",
    "hybrid.text_weight": "search.text_weight",
    "batch.timeout_minutes": "embedding.batch_timeout_minutes",
    "batch.concurrency": "embedding.concurrency",
    "storage.vector_db_path": "entries.index_folder",
    "storage.metadata_db_path": "entries.database",
    "storage.embedding_model": _embedding_model,
    "storage.embedding_dimension": "embedding.dimensions",
    "max_search_results": "search.max_results",
    "min_score": "search.min_score",
}
"""One setting for each name, or a function that returns the settings for its value."""


@cache
def other_names() -> Mapping[str, str | Convert]:
    """Return the names of settings in other programs, with those that extensions know."""
    added = {name: code for extension in extensions() for name, code in extension.other_names.items()}
    return {**OTHER_NAMES, **{name: resolve(code) if ":" in code else code for name, code in added.items()}}
