"""Decides what a new statement does to known entries: add, repeat, merge or supersede.

Nothing is overwritten and nothing that was said is lost: a merged or contradicted entry is superseded and stays in the
history, and a repetition in other words keeps its words there. Text and trust move together: a statement never changes
a more trusted entry, and it never lends its trust to other words. If a more trusted statement says the same as an entry
or more, it replaces the entry with its own words and takes nothing from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memoriter.entries.drafts import MAX_TAGS, Draft, expiry, later
from memoriter.entries.relation import relation
from memoriter.entries.values import slot_words
from memoriter.records import AGENTS, Entry, Remembered, Trust, is_trusted_like, least_trusted
from memoriter.search.changes import NEAR, Judge, change
from memoriter.sentences import join, sentence
from memoriter.store import Filter, Index
from memoriter.store.entry_store import Edit, EntryStore
from memoriter.text import query_terms

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix
    from memoriter.index.follow import Follower

#: Number of known entries that each leg proposes for comparison. Some of them may be superseded.
MAX_NEIGHBOURS = 16
#: Number of words of a statement that known entries are looked up by.
MAX_LOOKUP_WORDS = 4
#: Number of entries that a statement is compared with although the index does not contain them yet, newest first.
MAX_UNINDEXED = 256
#: Number of known entries, the nearest ones, that a judge reads together with a statement.
MAX_JUDGED = 5
#: Maximum number of entries that one statement may supersede.
MAX_SUPERSEDED = 3


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A known entry near a draft."""

    entry: Entry
    cosine: float | None
    #: Whether the judge is sure that the draft puts it out of date.
    out_of_date: bool = False


@dataclass(frozen=True, slots=True)
class Nearby:
    """The entries near a draft, from the index. Entries may have changed since."""

    #: Cosines by the id and the text of an entry; None if only words match.
    cosines: Mapping[tuple[str, str], float | None]
    #: The index contains every change up to this one.
    seq: int
    #: The vector of the draft, if it was computed.
    vector: Matrix | None = None
    #: The entries, by id and text, that the draft puts out of date according to the judge.
    out_of_date: Collection[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The action for a draft, and its reason."""

    #: "add", "repeat", "merge", "supersede".
    action: str
    targets: tuple[Entry, ...] = ()
    why: str = ""
    #: Number of entries that the draft should have been compared with, and was not.
    uncompared: int = 0


def cosines_near(
    follower: Follower, draft: Draft, vector: Matrix | None
) -> dict[tuple[str, str], float | None]:
    """Return the cosines of the entries that might be about the same, by id and text, as the index has them."""
    index = follower.index
    cosines: dict[int, float] = {}
    identity = follower.embedder.identity if follower.embedder else None
    if vector is not None and identity is not None and vector.any():
        cosines = dict(index.nearest(vector, identity, limit=MAX_NEIGHBOURS))
    words = {
        match.rowid
        for text in (draft.text, slot_words(draft.text))
        for match in index.keyword(_rare_words(index, text), limit=MAX_NEIGHBOURS, where=Filter())
    }
    if vector is not None and identity is not None:
        more = index.vectors_of(words - cosines.keys(), identity)
        cosines |= {row: float(other @ vector) for row, other in more.items()}
    rows = index.chunks(sorted({*cosines, *words}))
    return {(stored.chunk.path, stored.chunk.text): cosines.get(row) for row, stored in rows.items()}


def out_of_date(
    judge: Judge | None, draft: Draft, cosines: Mapping[tuple[str, str], float | None]
) -> set[tuple[str, str]]:
    """Return which of the nearest entries the draft puts out of date. Only a sure answer of the judge counts."""
    near = [key for key, cosine in cosines.items() if (cosine or 0.0) >= NEAR]
    nearest = sorted(near, key=lambda key: (-(cosines[key] or 0.0), key))[:MAX_JUDGED]
    return {key for key in nearest if change(judge, key[1], draft.text)[0] == "retired"}


def neighbours(store: EntryStore, near: Nearby) -> tuple[list[Neighbour], int]:
    """Return the active entries that might be about the same, nearest first, as they are stored now.

    Entries that are not in the index yet are all compared, up to `MAX_UNINDEXED`. The second value is the number of
    older ones that are left out.
    """
    new = store.changed_since(near.seq)
    entries = store.load({*(id_ for id_, _ in near.cosines), *new[-MAX_UNINDEXED:]})
    found = [
        Neighbour(entry, near.cosines.get(key := (entry.id, entry.text)), key in near.out_of_date)
        for entry in entries.values()
        if entry.state == "active"
    ]
    return sorted(found, key=lambda one: (-(one.cosine or 0.0), one.entry.id)), len(new[:-MAX_UNINDEXED])


def _rare_words(index: Index, text: str) -> list[str]:
    """Return the rarest words of a text. They say what it is about, and common words are expensive to rank."""
    counts = index.terms(query_terms(text))
    return sorted((term for term in counts if counts[term]), key=counts.__getitem__)[:MAX_LOOKUP_WORDS]


def judge(draft: Draft, near: Sequence[Neighbour]) -> Verdict:
    """Compare a draft with its neighbours and return the verdict."""
    ended: list[tuple[Entry, str]] = []
    for one in near:
        if not is_trusted_like(draft.trust, one.entry.trust):
            continue
        found = relation(one.entry.text, draft.text, one.cosine)
        if found.kind == "contradiction":
            ended.append((one.entry, found.why))
        elif found.kind == "same":
            return repetition(draft, one.entry, found.why)
        elif not _is_same_side(draft.trust, one.entry.trust):
            if found.kind == "refinement":
                return repetition(draft, one.entry, found.why)
        elif found.kind == "part":
            return Verdict("repeat", (one.entry,), found.why)
        elif found.kind == "refinement":
            return Verdict("merge", (one.entry,), found.why)
        elif one.out_of_date and not _said_before(draft, one.entry):
            ended.append((one.entry, sentence("history.out_of_date")))
    if ended:
        return Verdict("supersede", tuple(entry for entry, _ in ended[:MAX_SUPERSEDED]), ended[0][1])
    return Verdict("add")


def _said_before(draft: Draft, entry: Entry) -> bool:
    """Return whether a draft, such as an imported one, is older than an entry."""
    return draft.said_at is not None and draft.said_at < entry.valid_from


def _is_same_side(trust: Trust, other: Trust) -> bool:
    """Return whether two texts may be merged. An agent that repeats what it relayed does not raise its trust."""
    return trust == other or (trust in AGENTS and other in AGENTS)


def repetition(draft: Draft, known: Entry, why: str) -> Verdict:
    """Return the verdict on a statement that says at least what an entry says."""
    if is_trusted_like(known.trust, draft.trust) or _is_same_side(known.trust, draft.trust):
        return Verdict("repeat", (known,), why)
    return Verdict("supersede", (known,), sentence("history.trusted"))


def edits(verdict: Verdict, draft: Draft, at: float) -> list[Edit]:
    """Return the edits of a verdict. The first one is the entry that the draft becomes."""
    if verdict.action == "repeat":
        (old,) = verdict.targets
        return [_repeat_edit(old, draft, verdict.why, at)]
    return _superseding(verdict, draft.entry(at), at)


def approval(verdict: Verdict, staged: Entry, draft: Draft, at: float) -> list[Edit]:
    """Return the edits that approve a staged entry, or that count it as a repetition of a known one."""
    if verdict.action == "repeat":
        (old,) = verdict.targets
        ended = replace(staged, state="superseded", superseded_by=old.id, updated_at=at)
        return [_repeat_edit(old, draft, verdict.why, at), Edit("absorb", ended, staged, verdict.why)]
    lasting = None if staged.expires_at is None else expiry(staged.type, staged.importance, at)
    new = replace(staged, state="active", updated_at=at, expires_at=lasting, related=())
    return _superseding(verdict, new, at, staged)


def _superseding(verdict: Verdict, new: Entry, at: float, before: Entry | None = None) -> list[Edit]:
    """Return the edits that add the new entry and supersede the targets of the verdict."""
    known = [old.type for old in verdict.targets if old.trust == new.trust]
    if new.type == "other" and known:  # no rule knows its type, but it is about the same
        new = replace(new, type=known[0])
    if verdict.action == "merge":
        new = _merge_entries(verdict.targets[0], new, at)
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


def _repeat_edit(old: Entry, draft: Draft, why: str, at: float) -> Edit:
    said = draft.text if draft.text != old.text else None
    return Edit("repeat", _count_repeat(old, draft, at), old, why, said)


def _count_repeat(old: Entry, draft: Draft, at: float) -> Entry:
    count = old.repetitions + 1
    if draft.trust != old.trust:  # a less trusted speaker
        return replace(old, repetitions=count)
    importance = max(old.importance, draft.importance)
    return replace(
        old,
        repetitions=count,
        importance=importance,
        confidence=max(old.confidence, draft.confidence),
        tags=_union_of_tags(old.tags, draft.tags),
        updated_at=at,
        expires_at=later(old.expires_at, draft.expiry_at(at), expiry(old.type, importance, at)),
    )


def _merge_entries(old: Entry, new: Entry, at: float) -> Entry:
    """Combine a new entry with an old one of the same side that it refines. The text is that of the new one."""
    importance = max(old.importance, new.importance)
    return replace(
        new,
        trust=least_trusted(old.trust, new.trust),
        importance=importance,
        confidence=max(old.confidence, new.confidence),
        category=new.category or old.category,
        tags=_union_of_tags(old.tags, new.tags),
        related=old.related,
        repetitions=old.repetitions + 1,
        valid_from=old.valid_from,
        access_count=old.access_count,
        last_accessed_at=old.last_accessed_at,
        expires_at=later(old.expires_at, new.expires_at, expiry(new.type, importance, at)),
    )


def _union_of_tags(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))[:MAX_TAGS]


def outcome(verdict: Verdict, entry: Entry) -> Remembered:
    """Return the result to report for a verdict."""
    note: str | None = verdict.why or None
    if verdict.uncompared:
        note = join(note, sentence("entry.uncompared", count=verdict.uncompared))
    match verdict.action:
        case "repeat":
            return Remembered(entry, "repeated", note=note)
        case "merge":
            return Remembered(entry, "merged", verdict.targets[0].id, note)
        case "supersede":
            return Remembered(entry, "superseded", verdict.targets[0].id, note)
        case _:
            return Remembered(entry, "added", note=note)
