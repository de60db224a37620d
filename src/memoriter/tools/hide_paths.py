"""What callers who are not the owner are told of the machine: the names of files, never where they are.

Only our own sentences are shortened. What stands in notes and entries is shown as it stands: whether a caller may read
it at all is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoriter.sentences import Sentence

#: Of any result, what is a sentence of ours.
SENTENCES = frozenset({"error", "degraded", "note"})

# The folders of a path, up to its last part; no relative path, no address, nothing that we write with "~" ourselves.
_FOLDERS = re.compile(r"(?<![\w.:/\\~…-])(?:/(?:[^\s/]+/)+|[A-Za-z]:\\(?:[^\s\\]+\\)+)")
_OWN = "/\x00"  #: stands for the owner's own folder while the folders in it are looked for


def shortened(text: str, places: Sequence[Path] = ()) -> str:
    """The text, in which paths have lost the folders that they are in.

    Where a name ends that holds a space nothing in a text says: ``places`` are folders that are known to be in use.
    """
    for place in sorted(places, key=lambda one: -len(str(one))):
        if place.name:
            text = text.replace(f"{place}/", f"{_OWN}/")
            text = f"…/{place.name}".join(re.split(rf"{re.escape(str(place))}(?![\w-])", text))
    own = str(Path.home())  # first, because a name in it may hold a space
    if len(own) > 1:
        text = re.sub(rf"{re.escape(own)}(?![\w-])", _OWN, text)
    return _FOLDERS.sub("…/", text).replace(_OWN, "~")


def sentences_shortened(result: Mapping[str, Any], places: Sequence[Path] = ()) -> dict[str, Any]:
    """A result, of which our own sentences are shortened."""
    return {
        key: shortened_within(value, places) if key in SENTENCES else value for key, value in result.items()
    }


def shortened_within(value: Any, places: Sequence[Path] = ()) -> Any:
    """The same of every text in plain data."""
    if isinstance(value, Sentence):
        return Sentence(shortened(value, places), value.code, shortened_within(value.details, places))
    if isinstance(value, str):
        return shortened(value, places)
    if isinstance(value, Mapping):
        return {key: shortened_within(one, places) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [shortened_within(one, places) for one in value]
    return value
