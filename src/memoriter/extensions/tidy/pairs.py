"""Pairs of entries that may say the same, or of which the later one may replace the earlier one.

Candidates are the nearest entries by the vectors that the index has. No text is embedded for this. Without vectors,
rare words propose candidates, as they do for a new statement. Entries with the same content words are always compared.
What a pair means is decided as for a new statement (`entries.merge`).
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from memoriter.background import check_cancelled
from memoriter.entries import merge
from memoriter.entries.adding import draft_of
from memoriter.entries.relation import relation
from memoriter.entries.statement import statement
from memoriter.entries.values import slot_words
from memoriter.records import Entry, is_trusted_like, text_hash
from memoriter.search.changes import NEAR
from memoriter.text import query_terms

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix
    from memoriter.entries.context import EntryContext

#: Number of nearest entries that an entry is compared with.
NEAREST = 3
#: Reasons for which words end an entry without a judge: both name one home or one job, or one denies the other. With
#: a judge, the least probability for which words end an entry.
CERTAIN, NOT_DENIED = ("history.slot", "history.negation", "history.comparison", "history.trusted"), 0.5
#: Number of entries that are compared with all others at once.
BLOCK = 256
#: Number of entries that are looked at for one shared word.
MAX_SHARING = 200


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entries about the same, the earlier one first."""

    earlier: Entry
    later: Entry
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a pair means."""

    kind: Literal["joined", "replaced"]
    #: The entry that ends, and the one that stays.
    ends: Entry
    stays: Entry
    why: str


def pairs_of(
    context: EntryContext, entries: Sequence[Entry], fresh: Sequence[Entry], vectors: Mapping[str, Matrix]
) -> Iterator[tuple[Entry, list[Pair]]]:
    """Yield each fresh entry with its pairs, those of the same words first. A pair is yielded once."""
    seen, words = set[frozenset[str]](), defaultdict[tuple[str, ...], list[Entry]](list)
    for entry in entries:
        check_cancelled()
        words[_words_of(entry)].append(entry)
    near = _nearest(entries, fresh, vectors)
    for entry in fresh:
        check_cancelled()
        found: dict[str, tuple[Entry, float | None]] = {
            other.id: (other, None) for other in words[_words_of(entry)]
        }
        found |= {other.id: (other, cosine) for other, cosine in next(near)}
        pairs = []
        for other, cosine in found.values():
            key = frozenset((entry.id, other.id))
            apart = context.options.workspace_only and len({entry.workspace, other.workspace} - {None}) > 1
            if len(key) == 2 and key not in seen and not apart:
                seen.add(key)
                earlier, later = sorted((entry, other), key=lambda one: (one.valid_from, one.seq))
                pairs.append(Pair(earlier, later, cosine))
        yield entry, pairs


def _words_of(entry: Entry) -> tuple[str, ...]:
    read = statement(entry.text)
    return tuple(sorted(read.sequence)) or (read.form,)


def _nearest(
    entries: Sequence[Entry], fresh: Sequence[Entry], vectors: Mapping[str, Matrix]
) -> Iterator[Sequence[tuple[Entry, float | None]]]:
    """Yield the entries near each fresh one, nearest first."""
    if not vectors:
        yield from _sharing_words(entries, fresh)
        return
    have = [entry for entry in entries if entry.id in vectors]
    matrix = np.stack([vectors[entry.id] for entry in have])
    for start in range(0, len(fresh), BLOCK):
        some = fresh[start : start + BLOCK]
        asked = [vectors[entry.id] for entry in some if entry.id in vectors]
        rows = iter(np.stack(asked) @ matrix.T if asked else ())
        for entry in some:
            yield _best(next(rows), have, entry) if entry.id in vectors else []


def _best(cosines: Matrix, have: Sequence[Entry], entry: Entry) -> Sequence[tuple[Entry, float | None]]:
    size = min(NEAREST + 1, len(have))  # one of them is the entry
    places = np.argpartition(-cosines, size - 1)[:size]
    near = sorted((-round(float(cosines[place]), 4), have[place].id, place) for place in places)
    return [(have[place], -less) for less, id_, place in near if id_ != entry.id and -less >= NEAR][:NEAREST]


def _sharing_words(
    entries: Sequence[Entry], fresh: Sequence[Entry]
) -> Iterator[Sequence[tuple[Entry, float | None]]]:
    """Yield the entries that share rare words with each fresh one, for a memory without vectors."""
    having = defaultdict[str, list[Entry]](list)
    for entry in entries:
        for term in set(query_terms(entry.text)):
            having[term].append(entry)
    for entry in fresh:
        texts = (entry.text, slot_words(entry.text))
        found = {other.id: other for text in texts for other in _sharing(having, text, entry)}
        yield [(found[id_], None) for id_ in sorted(found)]


def _sharing(having: Mapping[str, list[Entry]], text: str, entry: Entry) -> list[Entry]:
    """Return the entries that share the most with a text. A word that many entries have says little."""
    terms = sorted({*query_terms(text)} & having.keys(), key=lambda term: (len(having[term]), term))
    known, shared = dict[str, Entry](), defaultdict[str, float](float)
    for term in terms[: merge.MAX_LOOKUP_WORDS]:
        for other in having[term][-MAX_SHARING:]:
            known[other.id] = other
            shared[other.id] += 1 / len(having[term])
    near = heapq.nsmallest(merge.MAX_NEIGHBOURS + 1, known, key=lambda id_: (-shared[id_], id_))
    return [known[id_] for id_ in near if id_ != entry.id][: merge.MAX_NEIGHBOURS]


def load_vectors(context: EntryContext, entries: Sequence[Entry]) -> dict[str, Matrix]:
    """Return the vectors that the index has, by the ids of the entries."""
    embedder, index = context.follower.embedder, context.follower.index
    if embedder is None:
        return {}
    hashes = {text_hash(entry.text) for entry in entries}
    loaded = context.follower.healing(lambda: index.load(embedder.identity, hashes))
    found = ((entry.id, loaded.get(text_hash(entry.text))) for entry in entries)
    return {id_: vector for id_, vector in found if vector is not None}


def verdict_of(context: EntryContext, pair: Pair) -> Verdict | None:
    """Return what a pair means. The verdict is that of a new statement, the later of the two, but stricter.

    A statement is written when both are at hand, and a run compares everything. So words alone end an entry only if
    they are certain, or if the judge thinks so too.
    """
    earlier, later, judge = pair.earlier, pair.later, context.options.judge
    if not is_trusted_like(later.trust, earlier.trust):  # a less trusted statement adds nothing
        said = relation(earlier.text, later.text, pair.cosine)
        return Verdict("joined", later, earlier, said.why) if said.kind in ("same", "part") else None
    key, draft = (earlier.id, earlier.text), draft_of(later)
    verdict = _applied(pair, merge.judge(draft, [merge.Neighbour(earlier, pair.cosine)]))
    if verdict is None and is_readable(pair):
        sure = merge.out_of_date(judge, draft, {key: pair.cosine})
        return _applied(pair, merge.judge(draft, [merge.Neighbour(earlier, pair.cosine, key in sure)]))
    if verdict is not None and verdict.kind == "replaced":
        chance = judge.out_of_date(earlier.text, later.text) if judge else None
        is_certain = getattr(verdict.why, "code", "") in CERTAIN if chance is None else chance >= NOT_DENIED
        return verdict if is_certain else None
    return verdict


def is_readable(pair: Pair) -> bool:
    """Return whether the judge alone may end the earlier entry: near, ordered, and none of it from outside."""
    outside = "untrusted" in (pair.earlier.trust, pair.later.trust)
    return not outside and (pair.cosine or 0.0) >= NEAR and _is_ordered(pair)


def _is_ordered(pair: Pair) -> bool:
    """Return whether it is known which one was said later. Entries of one import often have the same time."""
    return pair.earlier.valid_from < pair.later.valid_from


def _applied(pair: Pair, verdict: merge.Verdict) -> Verdict | None:
    earlier, later = pair.earlier, pair.later
    match verdict.action:
        case "repeat":
            return Verdict("joined", later, earlier, verdict.why)
        case "merge":
            return Verdict("joined", earlier, later, verdict.why)
        case "supersede":
            same = relation(earlier.text, later.text, pair.cosine).kind in ("same", "refinement")
            if same:  # in the words of a more trusted speaker
                return Verdict("joined", earlier, later, verdict.why)
            return Verdict("replaced", earlier, later, verdict.why) if _is_ordered(pair) else None
    return None
