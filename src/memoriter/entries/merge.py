"""What becomes of a new statement beside the old ones: kept, counted, merged into a new version, or put in their place.

Nothing is overwritten: a merged or contradicted entry is superseded and stays as history. A statement never changes
an entry that is more trusted than itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memoriter.entries.drafts import Draft, expiry
from memoriter.entries.relation import relation, slot_words
from memoriter.records import Entry, Remembered, is_trusted_like, least_trusted
from memoriter.store import Filter
from memoriter.store.entry_store import Edit, EntryStore
from memoriter.text import query_terms

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix
    from memoriter.index.follow import Follower
    from memoriter.store.index import Index

NEIGHBOURS = 8  #: old statements that each leg proposes for comparison
TELLING = 4  #: words of a statement by which old ones are looked up
MOST_ENDED = 3  #: old statements that one new statement may put an end to


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An old statement near a new one."""

    entry: Entry
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do with a draft, and why."""

    action: str  #: "add", "repeat", "merge", "supersede"
    targets: tuple[Entry, ...] = ()
    why: str = ""


def neighbours(store: EntryStore, follower: Follower, draft: Draft, vector: Matrix | None) -> list[Neighbour]:
    """Old statements in force that might be about the same, nearest first."""
    index = follower.index
    cosines: dict[int, float] = {}
    identity = follower.embedder.identity if follower.embedder else None
    if vector is not None and identity is not None and vector.any():
        cosines = dict(index.nearest(vector, identity, limit=NEIGHBOURS))
    words = {
        match.rowid
        for text in (draft.text, slot_words(draft.text))
        for match in index.keyword(_telling(index, text), limit=NEIGHBOURS, where=Filter())
    }
    if vector is not None and identity is not None:
        more = index.vectors_of(words - cosines.keys(), identity)
        cosines |= {row: float(other @ vector) for row, other in more.items()}
    rows = index.chunks(sorted({*cosines, *words}))
    entries = store.load(stored.chunk.path for stored in rows.values())
    found = [
        Neighbour(entry, cosines.get(row))
        for row, stored in rows.items()
        if (entry := entries.get(stored.chunk.path)) and entry.state == "active"
    ]
    return sorted(found, key=lambda one: (-(one.cosine or 0.0), one.entry.id))


def _telling(index: Index, text: str) -> list[str]:
    """The rarest words of a text: they tell what it is about, and ranking by common ones costs with every entry."""
    counts = index.terms(query_terms(text))
    return sorted((term for term in counts if counts[term]), key=counts.__getitem__)[:TELLING]


def judge(draft: Draft, near: Sequence[Neighbour]) -> Verdict:
    """What to do with a draft."""
    ended: list[tuple[Entry, str]] = []
    for one in near:
        if not is_trusted_like(draft.trust, one.entry.trust):
            continue
        found = relation(one.entry.text, draft.text, one.cosine)
        if found.kind == "contradiction":
            ended.append((one.entry, found.why))
        elif found.kind == "same":
            return Verdict("repeat", (one.entry,), found.why)
        elif found.kind == "refinement" and one.entry.type == draft.type:
            return Verdict("merge", (one.entry,), found.why)
    if ended:
        return Verdict("supersede", tuple(entry for entry, _ in ended[:MOST_ENDED]), ended[0][1])
    return Verdict("add")


def edits(verdict: Verdict, draft: Draft, at: float) -> list[Edit]:
    """The change that a verdict asks for; what the draft becomes stands first."""
    if verdict.action == "repeat":
        (old,) = verdict.targets
        return [Edit("repeat", _repeated(old, draft, at), old, verdict.why)]
    return _taking_place(verdict, draft.entry(at), at)


def approval(verdict: Verdict, staged: Entry, draft: Draft, at: float) -> list[Edit]:
    """The change by which a staged entry comes into force, or into an entry that says the same already."""
    if verdict.action == "repeat":
        (old,) = verdict.targets
        ended = replace(staged, state="superseded", superseded_by=old.id, updated_at=at)
        return [
            Edit("repeat", _repeated(old, draft, at), old, verdict.why),
            Edit("absorb", ended, staged, verdict.why),
        ]
    lasting = expiry(staged.type, staged.importance, at)
    new = replace(staged, state="active", updated_at=at, expires_at=lasting, related=())
    return _taking_place(verdict, new, at, staged)


def _taking_place(verdict: Verdict, new: Entry, at: float, before: Entry | None = None) -> list[Edit]:
    """The new entry, and the end of those that it takes the place of."""
    if verdict.action == "merge":
        new = _merged(verdict.targets[0], new, at)
    new = replace(new, related=tuple(dict.fromkeys((*new.related, *(old.id for old in verdict.targets)))))
    kind = "merge" if verdict.action == "merge" else "approve" if before else "add"
    ended = [
        Edit(
            "supersede",
            replace(old, state="superseded", superseded_by=new.id, updated_at=at),
            old,
            verdict.why,
        )
        for old in verdict.targets
    ]
    return [Edit(kind, new, before, verdict.why), *ended]


def _repeated(old: Entry, draft: Draft, at: float) -> Entry:
    count = old.repetitions + 1
    if not is_trusted_like(draft.trust, old.trust):
        return replace(old, repetitions=count)
    importance = max(old.importance, draft.importance)
    return replace(
        old,
        repetitions=count,
        importance=importance,
        confidence=max(old.confidence, draft.confidence),
        trust=draft.trust,
        tags=tuple(dict.fromkeys((*old.tags, *draft.tags))),
        updated_at=at,
        expires_at=expiry(old.type, importance, at),
    )


def _merged(old: Entry, new: Entry, at: float) -> Entry:
    """The new statement with all that was known of the old one; the longer text is the one that says more."""
    importance = max(old.importance, new.importance)
    return replace(
        new,
        text=new.text if len(new.text) >= len(old.text) else old.text,
        importance=importance,
        confidence=max(old.confidence, new.confidence),
        trust=least_trusted(old.trust, new.trust),
        category=new.category or old.category,
        tags=tuple(dict.fromkeys((*old.tags, *new.tags))),
        related=old.related,
        repetitions=old.repetitions + 1,
        valid_from=old.valid_from,
        access_count=old.access_count,
        last_accessed_at=old.last_accessed_at,
        expires_at=expiry(new.type, importance, at),
    )


def outcome(verdict: Verdict, entry: Entry) -> Remembered:
    """What to say of a change that was made."""
    match verdict.action:
        case "repeat":
            return Remembered(entry, "repeated", note=verdict.why)
        case "merge":
            return Remembered(entry, "merged", verdict.targets[0].id, verdict.why)
        case "supersede":
            return Remembered(entry, "superseded", verdict.targets[0].id, verdict.why)
        case _:
            return Remembered(entry, "added")
