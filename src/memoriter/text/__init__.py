"""Text processing: tokens, dates, snippets, Markdown structure, encodings and redaction.

These are pure functions on the standard library.
"""

from memoriter.text.dates import date_tokens as date_tokens
from memoriter.text.tokens import TOKENIZER_VERSION as TOKENIZER_VERSION
from memoriter.text.tokens import estimate_tokens as estimate_tokens
from memoriter.text.tokens import query_terms as query_terms
from memoriter.text.tokens import snippet as snippet
from memoriter.text.tokens import split_lines as split_lines
from memoriter.text.tokens import token_set as token_set
from memoriter.text.tokens import tokenize as tokenize
from memoriter.text.tokens import width as width
