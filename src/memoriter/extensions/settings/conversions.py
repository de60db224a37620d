"""Settings of other programs that differ from ours in their unit, or that stand for several of ours."""

from __future__ import annotations

from collections.abc import Mapping

from memoriter.config.fields import reject_bool
from memoriter.config.layers import Convert
from memoriter.extension import offers


def divided(key: str, by: float) -> Convert:
    """Return a conversion to a larger unit. A value that is not a number stays: the check of the setting names it."""

    def convert(value: object) -> Mapping[str, object]:
        try:
            return {key: float(str(reject_bool(value))) / by}
        except ValueError:
            return {key: value}

    return convert


def hybrid(value: object) -> Mapping[str, object]:
    """Return the weights of a search that combines vectors and keywords, or uses vectors alone."""
    if value in (False, "false", "False", "FALSE"):
        return {"search.vector_weight": 1.0, "search.text_weight": 0.0}
    return {} if value in (True, "true", "True", "TRUE") else {"search.vector_weight": value}


def embedding_model(value: object) -> Mapping[str, object]:
    """Return the model with its provider, which the name of a well-known model reveals."""
    known = (
        name for name, offer in offers("embedders").items() if str(value).startswith(offer.models or ("\0",))
    )
    provider = next(known, None)
    return {"embedding.model": value, **({"embedding.provider": provider} if provider else {})}


interval = divided("watch.interval_minutes", 60_000)
debounce = divided("watch.debounce_s", 1000)
