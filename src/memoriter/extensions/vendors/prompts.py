"""The prompts of embedding models that are known by name."""

from __future__ import annotations

from typing import NamedTuple


class Prompts(NamedTuple):
    """Texts that a model expects before a query and before a document."""

    query: str = ""
    document: str = ""


#: By the beginning of a model's name, in lower case, without punctuation. Hosted services have an argument instead.
_PROMPTS = {
    "nomicembed": Prompts("search_query: ", "search_document: "),
    "embeddinggemma": Prompts("task: search result | query: ", "title: none | text: "),
    "mxbaiembed": Prompts("Represent this sentence for searching relevant passages: "),
    "snowflakearcticembed2": Prompts("query: "),
    "qwen3embedding": Prompts("Instruct: Given a question, retrieve passages that answer it\nQuery: "),
    "multilinguale5": Prompts("query: ", "passage: "),
    "e5": Prompts("query: ", "passage: "),
}


def prompts_for(model: str) -> Prompts:
    """Return the prompts that the named model was trained with. Unknown models have none."""
    name = "".join(c for c in model.lower().replace("\\", "/").rpartition("/")[2] if c.isalnum())
    return next((prompts for known, prompts in _PROMPTS.items() if name.startswith(known)), Prompts())
