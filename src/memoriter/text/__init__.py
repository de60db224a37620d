"""Text processing: tokens, dates, snippets, Markdown structure, encodings and redaction.

These are pure functions on the standard library.
"""

from memoriter.text.dates import date_tokens
from memoriter.text.measure import estimate_tokens, snippet, split_lines, width
from memoriter.text.tokens import TOKENIZER_VERSION, query_terms, terms_in, token_set, tokenize

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
