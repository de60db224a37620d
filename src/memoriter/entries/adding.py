"""Adding statements: a draft is judged against what is known, and written as an entry, as a change of one, or staged.

`_look_up` asks the derived index, before the transaction. An embedder may be slow, and another process may be writing
the index. `_judge` decides inside the transaction, from the entries as they are stored then: those that the index
proposed, and those that have changed since the index was written. So no writer waits for the index.

A staged entry waits for the owner's approval. It is stored like any other, with events and undo, but only active
entries are found or recalled. Approving an entry judges it against what is known then, as if it had just been said. A
rejected text is not staged again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.entries import merge
from memoriter.entries.drafts import Draft, draft_from
from memoriter.entries.merge import Nearby, Verdict
from memoriter.entries.statement import same_words
from memoriter.errors import NotFound, StoreError, WriteError
from memoriter.records import TRUST_LEVELS, Entry, Remembered, is_trusted_like, text_hash
from memoriter.sentences import join, sentence
from memoriter.store.entry_store import Edit, EntryStore, Tombstone
from memoriter.text.words import split_sentences

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix
    from memoriter.entries.context import EntryContext


#: Changes every draft before it is judged, for a caller that knows where it was said.
change_draft: ContextVar[Callable[[Draft], Draft]] = ContextVar("change_draft", default=lambda draft: draft)


def add_draft(context: EntryContext, draft: Draft, *, actor: str, replaces: str | None = None) -> Remembered:
    """Add a draft and return the outcome."""
    draft = change_draft.get()(draft)
    clean = replace(draft.clean(), workspace=draft.workspace or context.options.workspace)
    outcome = _add_clean(context, clean, actor, replaces)
    if not draft.loses_text(clean):
        return outcome
    return replace(outcome, note=join(outcome.note, sentence("entry.redacted")))


def _add_clean(context: EntryContext, draft: Draft, actor: str, replaces: str | None) -> Remembered:
    start_seq = context.store.seq()
    if requires_approval(context, draft):
        return _stage(context, draft, start_seq, actor=actor, replaces=replaces)
    with context.judging:
        near = _look_up(context, draft)
        with context.store.transaction():  # other processes wait: nothing inside uses the index or a model
            remembered = _judge_and_write(context, draft, start_seq, actor, replaces, near)
        new = {} if near.vector is None else {text_hash(draft.text): near.vector}
        context.follower.try_follow(new, embed=False)  # a search computes the vectors of others
        return remembered


def _judge_and_write(
    context: EntryContext, draft: Draft, start_seq: int, actor: str, replaces: str | None, near: merge.Nearby
) -> Remembered:
    if why := _refusal(context.store, draft, start_seq):
        return Remembered(None, "refused", note=why)
    context.store.clear_tombstone(draft.text)
    verdict = _judge(context, draft, replaces, near)
    at = context.clock()
    edits = merge.edits(verdict, draft, at)
    edits = [*edits, *_replace_rejected(context, draft, edits[0].entry_id, at)]
    entries = context.store.apply(edits, at=at, by=actor)
    return merge.outcome(verdict, entries[0])


def _replace_rejected(context: EntryContext, draft: Draft, by_id: str, at: float) -> list[Edit]:
    """Supersede rejected entries that say the same. A cleanup would otherwise erase the new one with them."""
    return [
        Edit("supersede", replace(one, state="superseded", superseded_by=by_id, updated_at=at), one)
        for one in context.store.same_text(draft.text)
        if one.state == "rejected" and one.id != by_id
    ]


log = logs.get("entries")


def _look_up(context: EntryContext, draft: Draft) -> Nearby:
    """Return what the index knows near a draft. If it cannot be used, the newest entries are compared instead."""
    seq = context.store.seq()
    if _same(context, draft):
        return Nearby({}, seq)  # no model is needed
    vector = context.follower.vector(draft.text)
    context.follower.try_follow(embed=False)
    try:
        return context.follower.healing(lambda: _near(context, draft, vector))
    except StoreError as error:
        log.warning("a statement is compared with the newest entries only: %s", error)
        return Nearby({}, 0, vector)


def _near(context: EntryContext, draft: Draft, vector: Matrix | None) -> Nearby:
    seq = context.follower.indexed_seq()  # before the lookup, which may see later changes
    found = merge.cosines_near(context.follower, draft, vector)
    known = context.store.load(id_ for id_, _ in found)
    active = {id_ for id_, entry in known.items() if entry.state == "active"}
    cosines = {key: cosine for key, cosine in found.items() if key[0] in active}
    return Nearby(cosines, seq, vector, merge.out_of_date(context.options.judge, draft, cosines))


def _judge(context: EntryContext, draft: Draft, replaces: str | None, near: Nearby) -> Verdict:
    """Decide what to do with a draft. ``replaces`` is the id of an entry that it should supersede."""
    if same := _same(context, draft):
        known = min(same, key=lambda entry: TRUST_LEVELS.index(entry.trust))
        return merge.repetition(draft, known, sentence("history.repeated"))
    known_near, uncompared = merge.neighbours(context.store, near)
    verdict = merge.judge(draft, [one for one in known_near if context.where.admits_workspace(one.entry)])
    if replaces and verdict.action == "add":
        verdict = _replace_verdict(context, draft, replaces)
    return replace(verdict, uncompared=uncompared)


def _same(context: EntryContext, draft: Draft) -> list[Entry]:
    """Return the entries in force that say exactly this."""
    return [entry for entry in context.store.same_text(draft.text) if context.where.admits(entry)]


def _replace_verdict(context: EntryContext, draft: Draft, entry_id: str) -> Verdict:
    old = context.store.load([entry_id]).get(entry_id)
    if old is None or old.state != "active" or not is_trusted_like(draft.trust, old.trust):
        return Verdict("add")
    return Verdict("supersede", (old,), sentence("history.no_longer"))


STAGED_NOTE = sentence("entry.staged")


def requires_approval(context: EntryContext, draft: Draft) -> bool:
    """Return whether a draft needs the owner's approval. A draft that the owner adds on purpose never does."""
    if draft.held or context.options.approval == "all":
        return draft.trust != "owner" or not draft.on_purpose
    return context.options.approval == "agent" and draft.trust != "owner"


def _stage(
    context: EntryContext, draft: Draft, start_seq: int, *, actor: str, replaces: str | None = None
) -> Remembered:
    """Store a draft as a staged entry. It is on disk when this returns."""
    with context.store.transaction():
        if why := _refusal(context.store, draft, start_seq):
            return Remembered(None, "refused", note=why)
        known = {one.state: one for one in context.store.same_text(draft.text)}
        if "active" in known and is_trusted_like(known["active"].trust, draft.trust):
            return Remembered(known["active"], "repeated", note=sentence("history.repeated"))
        if "rejected" in known:
            return Remembered(None, "refused", note=sentence("entry.rejected"))
        at, old = context.clock(), known.get("staged")
        if old is not None:
            edit = _stage_again(old, draft, at)
        else:
            related = (replaces,) if replaces else ()
            edit = Edit("stage", replace(draft.entry(at), state="staged", related=related), note=draft.held)
        (made,) = context.store.apply([edit], at=at, by=actor)
    return Remembered(made, "staged", note=draft.held or STAGED_NOTE)


def approve(context: EntryContext, ids: str | Sequence[str], *, actor: str = "owner") -> list[Remembered]:
    """Put staged entries in force and return the outcome for each. Each is judged against what is known now."""
    return [_approve(context, entry, actor) for entry in _load_staged(context, ids)]


def reject(context: EntryContext, ids: str | Sequence[str], *, actor: str = "owner") -> tuple[Entry, ...]:
    """Reject staged entries, all of them or none. They are erased after the retention time."""
    with context.store.transaction():
        at = context.clock()
        edits = [rejection(one, at) for one in _load_staged(context, ids)]
        return context.store.apply(edits, at=at, by=actor)


def rejection(entry: Entry, at: float) -> Edit:
    """Return the change that hides an entry."""
    return Edit("reject", replace(entry, state="rejected", updated_at=at), entry)


def hide(context: EntryContext, ids: Sequence[str], *, actor: str, dry_run: bool = False) -> tuple[str, ...]:
    """Reject entries in any state, with the versions merged with them. Return their ids.

    `undo` restores them until a cleanup erases them after the retention time. Their texts are not captured again.
    """
    with context.store.transaction():
        known, at = context.store.load(context.store.family(ids)), context.clock()
        edits = [rejection(one, at) for one in known.values() if one.state != "rejected"]
        for one in context.store.apply(edits, at=at, by=actor) if edits and not dry_run else ():
            context.store.add_tombstone(one.text, at=at, seq=one.seq)
    context.follower.try_follow()
    return tuple(edit.entry_id for edit in edits) or tuple(known)


def propose_forgetting(
    context: EntryContext, ids: Sequence[str], *, actor: str, dry_run: bool = False
) -> tuple[str, ...]:
    """Stage the entries of the owner that an agent wants to forget. Return the ids that only the owner may erase.

    An entry that shares its history with one of the owner counts as the owner's.
    """
    if actor != "agent":
        return ()
    with context.store.transaction():
        families = {id_: context.store.family([id_]) for id_ in ids}
        known = context.store.load({id_ for family in families.values() for id_ in family})
        owned = {id_ for id_, entry in known.items() if entry.trust == "owner"}
        owners = tuple(id_ for id_, family in families.items() if not owned.isdisjoint(family))
        at, note = context.clock(), sentence("history.proposed")
        edits = [
            Edit("stage", replace(known[id_], state="staged", updated_at=at), known[id_], note)
            for id_ in owners
            if known[id_].state == "active" and not dry_run
        ]
        if edits:
            context.store.apply(edits, at=at, by=actor)
    context.follower.try_follow()
    return owners


def _load_staged(context: EntryContext, ids: str | Sequence[str]) -> list[Entry]:
    """Return the entries with these ids, or prefixes of ids. All of them must be staged."""
    whole = list(
        dict.fromkeys(context.store.complete_id(one) for one in ([ids] if isinstance(ids, str) else ids))
    )
    found = context.store.load(whole)
    for entry_id in whole:
        if entry_id not in found:
            raise NotFound(sentence("entry.not_found", id=entry_id))
        if found[entry_id].state != "staged":
            state = found[entry_id].state
            raise WriteError(sentence("entry.not_staged", id=entry_id, state=state))
    return [found[entry_id] for entry_id in whole]


def foresee(context: EntryContext, entry_id: str) -> Verdict:
    """Return what the approval of a staged entry would do now."""
    (staged,) = _load_staged(context, [entry_id])
    draft = draft_of(staged)
    return _judge(context, draft, staged.related[0] if staged.related else None, _look_up(context, draft))


def _approve(context: EntryContext, found: Entry, actor: str) -> Remembered:
    near = _look_up(context, draft_of(found))
    with context.store.transaction():
        (staged,) = _load_staged(context, [found.id])
        draft = draft_of(staged)
        verdict = _judge(context, draft, staged.related[0] if staged.related else None, near)
        context.store.clear_tombstone(draft.text)
        at = context.clock()
        entries = context.store.apply(merge.approval(verdict, staged, draft, at), at=at, by=actor)
    context.follower.try_follow({} if near.vector is None else {text_hash(found.text): near.vector})
    return merge.outcome(verdict, entries[0])


#: Characters and sentences of a note in which forgotten statements are looked for.
MAX_READ, MAX_SENTENCES = 200_000, 2_000


def find_tombstone(store: EntryStore, text: str) -> Tombstone | None:
    """Return the tombstone of a text, also if it is told about the user or with other contractions."""
    return next(filter(None, map(store.tombstone, same_words(text))), None)


def forgotten_by_owner(context: EntryContext, text: str) -> bool:
    """Return whether a text or one of its first sentences is what the owner forgot."""
    sentences = dict.fromkeys(
        one.lstrip("->#*+ ") for one in (text[:MAX_READ], *split_sentences(text[:MAX_READ]))
    )
    found = (find_tombstone(context.store, one) for one in islice(filter(None, sentences), MAX_SENTENCES))
    return any(one and not one.by_agent for one in found)


def _refusal(store: EntryStore, draft: Draft, start_seq: int) -> str | None:
    """Return why a forgotten text is refused; None if it may be stored.

    What is said on purpose after it was forgotten may be stored again, but an agent cannot bring back what the owner
    forgot. What an agent forgot is not forgotten for the owner.
    """
    tombstone = find_tombstone(store, draft.text)
    if tombstone is None or (draft.trust == "owner" and tombstone.by_agent):
        return None
    if draft.trust != "owner" and not tombstone.by_agent:
        return sentence("entry.forgotten_by_owner")
    if draft.on_purpose and tombstone.seq <= start_seq:
        return None
    return sentence("entry.forgotten")


def _stage_again(old: Entry, draft: Draft, at: float) -> Edit:
    """Count a repetition of a staged text. A more trusted speaker replaces the words and their trust together."""
    more_trusted = not is_trusted_like(old.trust, draft.trust)
    after = (
        replace(draft.entry(at), id=old.id, state="staged", created_at=old.created_at)
        if more_trusted
        else old
    )
    after = replace(after, repetitions=old.repetitions + 1, updated_at=at)
    return Edit("repeat", after, old, said=draft.text if draft.text != after.text else None)


def draft_of(entry: Entry) -> Draft:
    """Return the statement that an entry was, as if it were said again."""
    return draft_from(entry, trust=entry.trust, workspace=entry.workspace, said_at=entry.valid_from)
