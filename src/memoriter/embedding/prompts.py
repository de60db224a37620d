"""What some models want to be told beside the text: whether it is a question or a passage.

Only for models that run on the user's own machine; hosted services take it as an argument of the call.
"""

from __future__ import annotations

from typing import NamedTuple


class Prompts(NamedTuple):
    """What is put before a text."""

    query: str = ""
    document: str = ""


#: By the beginning of a model's name, in small letters, with anything but letters and digits left out.
_KNOWN = {
    "nomicembed": Prompts("search_query: ", "search_document: "),
    "embeddinggemma": Prompts("task: search result | query: ", "title: none | text: "),
    "mxbaiembed": Prompts("Represent this sentence for searching relevant passages: "),
    "snowflakearcticembed2": Prompts("query: "),
    "qwen3embedding": Prompts(
        "Instruct: Given a question, retrieve passages that answer it\nQuery: ",
    ),
    "multilinguale5": Prompts("query: ", "passage: "),
    "e5": Prompts("query: ", "passage: "),
}


def prompts_for(model: str) -> Prompts:
    """The prompts that the model of this name was trained with; none for a model that is not known."""
    name = "".join(c for c in model.lower().replace("\\", "/").rpartition("/")[2] if c.isalnum())
    return next((prompts for known, prompts in _KNOWN.items() if name.startswith(known)), Prompts())
