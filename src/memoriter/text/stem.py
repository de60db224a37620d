"""Light English stemming: one form for a word's plural, past, progressive and adverb.

Conservative on purpose: inflections only, never derivations ("creation" stays apart from "create"), because a
note that matches a word with another meaning costs more than one that is missed by one leg of two. It takes
lower-case ASCII letters; which words are plain enough to be stemmed is for ``tokens`` to say.
"""

from __future__ import annotations

import re

_IRREGULAR = {
    "used": "use",
    "uses": "use",
    "using": "use",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "buses": "bus",
    "children": "child",
    "men": "man",
    "women": "woman",
}
# Words that only look inflected; stemming them would join them to a stranger ("evening" to "even").
_NOT_INFLECTED = """
    always anomaly evening family italy lens morning news perhaps physics politics sales series species united
    wedding wednesday
"""
_AS_THEY_ARE = frozenset(_NOT_INFLECTED.split())

_VOWEL = re.compile(r"[aeiouy]")
_VOWEL_THEN_CONSONANT = re.compile(r"[aeiouy]+[^aeiouy]+")
# "mak", "writ", "hop": a short stem that lost its e; "fix", "show" and "play" never had one.
_LOST_E = re.compile(r"[^aeiouy]*[aeiouy][^aeiouywx]")


def stem(word: str) -> str:
    """The form under which the inflections of an English word meet.

    >>> [stem(word) for word in ("backups", "running", "making", "studied", "quickly", "news")]
    ['backup', 'run', 'make', 'study', 'quick', 'news']
    """
    if len(word) <= 3 or word in _AS_THEY_ARE:
        return word
    return _IRREGULAR.get(word) or _without_final_e(_without_adverb(_without_tense(_without_plural(word))))


def _without_plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_tense(word: str) -> str:
    if word.endswith("ied"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and _VOWEL.search(base) and not word.endswith("eed"):
            return _restored(base)
    return word


def _restored(base: str) -> str:
    """The verb that "-ing" or "-ed" was put on: "runn" was "run", "mak" was "make"."""
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz":
        return base[:-1]
    return base + "e" if _LOST_E.fullmatch(base) else base


def _without_adverb(word: str) -> str:
    if len(word) < 6 or not word.endswith("ly"):
        return word
    if word.endswith("ily"):
        return word[:-3] + "y"
    return word if word[-3] in "aeiofpb" else word[:-2]  # "reply", "assembly", "butterfly"


def _without_final_e(word: str) -> str:
    """Drop the e that "-ing" drops, so that "schedule" meets "scheduling"; short verbs have got it back."""
    base = word[:-1]
    if len(word) < 5 or word[-1] != "e" or _LOST_E.fullmatch(base) or not _VOWEL_THEN_CONSONANT.search(base):
        return word
    return base
