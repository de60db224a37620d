"""How is language cut? Texts and queries into tokens, dates into one form, chunks into snippets; and how long is a text.

Pure functions of their arguments, on the standard library alone.
"""

from recollect.text.dates import date_tokens
from recollect.text.tokens import TOKENIZER_VERSION, query_terms, tokenize

__all__ = ["TOKENIZER_VERSION", "date_tokens", "query_terms", "tokenize"]
