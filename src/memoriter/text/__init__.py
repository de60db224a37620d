"""Text processing: tokens, dates, snippets, Markdown structure, encodings and redaction.

These are pure functions on the standard library.
"""

from memoriter.text.dates import date_tokens
from memoriter.text.tokens import (
    TOKENIZER_VERSION,
    estimate_tokens,
    query_terms,
    snippet,
    split_lines,
    terms_in,
    token_set,
    tokenize,
    width,
)

__all__ = [
    "TOKENIZER_VERSION",
    "date_tokens",
    "estimate_tokens",
    "query_terms",
    "snippet",
    "split_lines",
    "terms_in",
    "token_set",
    "tokenize",
    "width",
]
