"""How is language cut?

Texts and queries into tokens, dates into one form, chunks into snippets; and how long a text is for a model.
Pure functions of their arguments, on the standard library alone.
"""

from memoriter.text.dates import date_tokens
from memoriter.text.measure import estimate_tokens, split_lines, width
from memoriter.text.snippet import snippet
from memoriter.text.tokens import TOKENIZER_VERSION, query_terms, tokenize

__all__ = [
    "TOKENIZER_VERSION",
    "date_tokens",
    "estimate_tokens",
    "query_terms",
    "snippet",
    "split_lines",
    "tokenize",
    "width",
]
