"""What a conversation asks of a memory: what the person said last, and the words that its last messages come back to.

Hosts hand over messages, a search takes one text. What is found for it, and what is told, is not decided here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from recollect.records import Turn
from recollect.sources import turns_of_messages
from recollect.text import query_terms
from recollect.text.tokens import find_words

MAX_QUERY = 1000  #: characters of what the person said
RECENT = 10  #: messages that say what the conversation is about
KEYWORDS = 8  #: the person's own words must weigh more than what was talked about before
AGAIN = 3  #: messages that must have a word in common: an answer repeats its question's words, and that says little
FEW = 20  #: characters; so few alone are joined with what the person said before


def question(messages: Sequence[Mapping[str, object]]) -> str:
    """What the person said last; then what the last messages keep coming back to, the words of most of them first."""
    turns = turns_of_messages(messages)[-RECENT:]
    said = [turn.text for turn in turns if turn.role == "user"]
    if not said:
        return ""
    newest = "\n".join(said[-2:] if len(said[-1]) < FEW else said[-1:])[-MAX_QUERY:]
    return " ".join([newest, *_recurring(turns, besides=newest)])


def _recurring(turns: Sequence[Turn], besides: str) -> list[str]:
    """Words that several turns have in common, as they were written; text from outside does not steer a memory."""
    held, written = Counter[str](), dict[str, str]()
    for turn in turns:
        if turn.trust != "untrusted":
            text = turn.text[:MAX_QUERY]
            held.update(query_terms(text))
            written |= {token: text[start:end] for start, end, tokens in find_words(text) for token in tokens}
    known = set(query_terms(besides))
    again = (term for term, turns_with in held.most_common() if turns_with >= AGAIN and term not in known)
    return list(dict.fromkeys(written[term] for term in again if term in written))[:KEYWORDS]
