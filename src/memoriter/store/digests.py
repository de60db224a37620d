"""Keyed digests: whether two texts are the same, without keeping either.

Texts that differ only in case, width, spacing or the punctuation between sentences have one digest. A tombstone is
such a digest: it can tell that a text was forgotten, and cannot say what it was without the key.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata

_PAUSES = re.compile(
    r"""[.,;:!?…。，；：！？、"'“”‘’「」『』()（）]+(?=\s|$|[\u3400-\u9fff])|(?<![^\s])["'“‘「(（]+"""
)
_SPACES = re.compile(r"\s+")
_BETWEEN_CJK = re.compile(r"(?<=[\u3000-\u9fff]) | (?=[\u3000-\u9fff])")


def normal_form(text: str) -> str:
    """The text without what does not change its meaning. Symbols inside words stay: C++ is not C."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    spaced = _SPACES.sub(" ", _PAUSES.sub(" ", folded))
    return _BETWEEN_CJK.sub("", spaced).strip()


def digest(key: bytes, text: str) -> str:
    """The text's digest under a store's own key."""
    return hmac.new(key, normal_form(text).encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
