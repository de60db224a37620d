"""Which recall a sentence of the agent came from: by the words that went into a prompt, and by their meaning."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memoriter import logs
from memoriter.entries.collection import context_of
from memoriter.errors import MemoriterError
from memoriter.memory import Memory, parts_of
from memoriter.records import Considered, Recall
from memoriter.text import query_terms
from memoriter.text.redaction import redact

log = logs.get("about")

#: Recalls that are read, the newest first.
MAX_RECALLS = 500
#: Lines whose meaning is compared, the best by words first.
MAX_EMBEDDED = 32
MAX_SOURCES = 5
#: The least share of words, or the least similarity, of a line that may be the source.
MIN_SCORE = 0.2


@dataclass(frozen=True, slots=True)
class Source:
    """A line of a recall that the sentence may come from."""

    recall: Recall
    line: Considered
    #: From 0 to 1.
    score: float


def sources_of(memory: Memory, sentence: str) -> list[Source]:
    """Return the lines that entered prompts and say the most of a sentence, best first; each line once."""
    if not parts_of(memory).entries_exist:
        return []
    heads = memory.entries.recalls(limit=MAX_RECALLS).recalls
    # By text without secrets, so that a score tells nothing about them; the first is the newest.
    newest = dict[str, tuple[Recall, Considered]]()
    for head in heads:
        recall = memory.entries.get_recall(head.id)
        for line in recall.considered:
            if line.entered and line.text:
                newest.setdefault(redact(line.text), (recall, line))
    texts = list(newest)
    words = _by_words(sentence, texts)
    best = sorted(texts, key=lambda text: -words[text])[:MAX_EMBEDDED]
    meanings = _by_meaning(memory, sentence, best)
    scores = {text: max(words[text], 0.5 * words[text] + 0.5 * meanings.get(text, 0.0)) for text in best}
    found = sorted((text for text in best if scores[text] >= MIN_SCORE), key=lambda text: -scores[text])
    return [Source(*newest[text], scores[text]) for text in found[:MAX_SOURCES]]


def _by_words(sentence: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the share of a sentence's words that each text contains. Rare words weigh more."""
    terms = {text: set(query_terms(text)) for text in texts}
    counts = Counter(term for some in terms.values() for term in some)
    wanted = set(query_terms(sentence))
    weights = {term: math.log(1 + len(texts) / (1 + counts[term])) for term in wanted}
    # Words that no line contains are the agent's own.
    total = sum(weight for term, weight in weights.items() if counts[term]) or 1.0
    return {text: sum(weights[term] for term in wanted & some) / total for text, some in terms.items()}


def _by_meaning(memory: Memory, sentence: str, texts: Sequence[str]) -> dict[str, float]:
    embedder = context_of(memory.entries).embedder
    if embedder is None or not texts:
        return {}
    try:
        asked, rows = embedder.embed_query(sentence), embedder.embed(list(texts))
    except (MemoriterError, OSError) as error:
        log.warning("compared by words only: %s", error)
        return {}
    return {text: max(0.0, float(row @ asked)) for text, row in zip(texts, rows, strict=True)}
