"""Forgetting entries: hiding them, erasing every copy, and the cleanup of those that expired or were hidden long ago.

A request names entries by a `Selection`. The receipt says what was hidden or erased, and names the copies that remain,
such as backups, exports and prompts. An interrupted erasure is completed when the entries are opened again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from memoriter import logs
from memoriter.entries.adding import hide, propose_forgetting
from memoriter.entries.context import MIN_SIMILARITY, EntryContext
from memoriter.entries.drafts import DAY, expiry
from memoriter.entries.search import find
from memoriter.errors import LockTimeout, MemoriterError, StoreError, StoreUnavailable, WriteError, message_of
from memoriter.files.locks import LOCK_WAIT_S
from memoriter.records import (
    CleanedUp,
    Entry,
    EntryHit,
    EntryState,
    Explanation,
    NoteLine,
    Receipt,
    Selection,
)
from memoriter.sentences import sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import LASTING, Edit
from memoriter.store.ledger import Quotes, RecallFilter
from memoriter.text import query_terms
from memoriter.text.words import normal_form

#: The states of entries that no search finds, and that an erasure by a query finds by their words.
UNSEARCHED: tuple[EntryState, ...] = ("rejected", "staged", "superseded", "expired")
#: A hidden entry is a candidate if it contains this share of the words of a query.
MIN_WORDS = 0.5


def forget(
    context: EntryContext,
    what: str | Selection,
    *,
    dry_run: bool = False,
    actor: str = "owner",
    copies: OtherCopies | None = None,
) -> Receipt:
    """Hide entries at once and return a receipt. `undo` restores them until a cleanup erases them.

    The cleanup does so after the retention time. ``what`` is an id or a `Selection`. A query hides only a single
    certain match; otherwise nothing is hidden and the receipt lists candidates. If ``actor`` is "agent", entries of
    the owner are staged instead: no search finds them, and they wait for the owner to reject or approve them.
    ``copies`` are searched for places that still say it.
    """
    selection = selected(what)
    ids, candidates = _ids(context, selection, actor, hidden=False)
    proposed = propose_forgetting(context, ids, actor=actor, dry_run=dry_run)
    mine = [id_ for id_ in ids if id_ not in proposed]
    hidden = hide(context, mine, actor=actor, dry_run=dry_run)
    texts = [entry.text for entry in context.store.load([*hidden, *proposed]).values()]
    said = texts if selection.query is None else [*texts, selection.query]
    mentions = copies.mentions(said)[0] if copies else ()
    kept = (sentence("forget.kept", days=f"{context.options.cleanup.retention_days:g}"),) if hidden else ()
    receipt = Receipt(
        hidden,
        (sentence("forget.hidden"),) if hidden else (),
        kept,
        () if ids else candidates,
        dry_run,
        mentions=mentions,
    )
    return _with_proposed(receipt, proposed)


def erase(
    context: EntryContext,
    what: str | Selection,
    *,
    dry_run: bool = False,
    actor: str = "owner",
    copies: OtherCopies | None = None,
) -> Receipt:
    """Erase every copy of entries at once and return a receipt. This cannot be undone.

    ``what`` is as for `forget`; a query also finds hidden entries. If ``actor`` is "agent", entries of the owner are
    staged instead. ``copies`` are erased too, where they can be.
    """
    selection = selected(what)
    ids, candidates = _ids(context, selection, actor, hidden=True)
    if selection.query is not None and not ids:
        mentions = copies.mentions([selection.query])[0] if copies else ()
        return Receipt((), candidates=candidates, dry_run=dry_run, mentions=mentions)
    proposed = propose_forgetting(context, ids, actor=actor, dry_run=dry_run)
    receipt = _erase_ids(
        context,
        [id_ for id_ in ids if id_ not in proposed],
        actor=actor,
        dry_run=dry_run,
        copies=copies,
        query=selection.query,
        recalls=_recalls(selection) if actor == "owner" else None,
    )
    return _with_proposed(receipt, proposed)


def _ids(
    context: EntryContext, what: Selection, actor: str, *, hidden: bool
) -> tuple[list[str], tuple[EntryHit, ...]]:
    """Return the ids of the selected entries, and what a query could mean. ``hidden`` finds hidden ones too."""
    if what.id is not None:
        return [context.store.complete_id(what.id)], ()
    # Only the owner sees what was undone.
    undone = context.store.undone() if actor == "owner" and hidden else []
    if what.query is not None:
        return _meant(context, what.query, undone, hidden=hidden)
    where = EntryFilter(
        session=what.session, source=what.source, since=what.since, until=what.until, states=()
    )
    known = [entry.id for entry in context.store.find(where) if hidden or entry.state != "rejected"]
    return [*known, *(entry.id for entry in undone if where.admits(entry))], ()


def _meant(
    context: EntryContext, query: str, undone: Sequence[Entry], *, hidden: bool
) -> tuple[list[str], tuple[EntryHit, ...]]:
    """Return the ids of the entries that a query certainly means, and what it could mean."""
    found = find(context, query, threshold=MIN_SIMILARITY, limit=MAX_CANDIDATES).hits
    unsearched = context.store.find(EntryFilter(states=UNSEARCHED)) if hidden else []
    by_words = _hits_by_words(query, unsearched)
    same = [one.id for one in (*undone, *unsearched) if normal_form(one.text) == normal_form(query)]
    hit = sure_hit(query, found)
    if hit or same:
        return [*([hit.entry.id] if hit else []), *same], ()
    if not found and len(by_words) == 1 and by_words[0].similarity == 1.0:
        return [by_words[0].entry.id], ()
    return [], (*found, *by_words)[:MAX_CANDIDATES]


def selected(what: str | Selection) -> Selection:
    """Return a selection that names entries in exactly one way. A string is an id."""
    what = Selection(id=what) if isinstance(what, str) else what
    by_time = None if what.since is None and what.until is None else (what.since, what.until)
    if sum(way is not None for way in (what.id, what.query, what.session, what.source, by_time)) != 1:
        raise WriteError(sentence("forget.how"))
    return what


def _hits_by_words(query: str, entries: Sequence[Entry]) -> list[EntryHit]:
    """Return the entries that contain most words of a query, best first. The index does not contain them."""
    words = set(query_terms(query))
    shares = [(len(words.intersection(query_terms(one.text))) / max(1, len(words)), one) for one in entries]
    best = sorted((one for one in shares if one[0] >= MIN_WORDS), key=lambda one: -one[0])
    return [EntryHit(entry, share, share, Explanation("words", ())) for share, entry in best]


def _recalls(what: Selection) -> RecallFilter | None:
    """Return the recalls whose queries are erased too, whatever they say."""
    if what.session is None and what.since is None and what.until is None:
        return None
    return RecallFilter(session=what.session, since=what.since, until=what.until)


def _with_proposed(receipt: Receipt, proposed: Sequence[str]) -> Receipt:
    if not proposed:
        return receipt
    waiting = sentence("forget.proposed", ids=", ".join(proposed))
    return replace(receipt, not_covered=(*receipt.not_covered, waiting))


log = logs.get("entries")

#: A query means one hit for certain if its similarity reaches this and it leads the next hit by `SURE_LEAD`.
SURE_SIMILARITY = 0.9
SURE_LEAD = 0.1
#: Maximum number of candidates that are offered when no hit is certain.
MAX_CANDIDATES = 5

NOT_COVERED = tuple(sentence(f"forget.{copy}") for copy in ("backups", "prompts"))


class OtherCopies(Protocol):
    """Copies of entries outside the entries, such as in notes."""

    def erase(self, texts: Sequence[str], *, dry_run: bool) -> tuple[tuple[NoteLine, ...], tuple[str, ...]]:
        """Erase the lines that say exactly this. Return them, and descriptions of what remains."""

    def mentions(self, texts: Sequence[str]) -> tuple[tuple[str, ...], bool]:
        """Return citations of the places that say it, and whether these are all."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Everything to erase, as of the change with this number."""

    seq: int
    family: tuple[str, ...]
    texts: Sequence[str]
    words: Sequence[str]
    quotes: Quotes


def _erase_ids(
    context: EntryContext,
    ids: Sequence[str],
    *,
    actor: str,
    tombstones: bool = True,
    dry_run: bool = False,
    copies: OtherCopies | None = None,
    query: str | None = None,
    recalls: RecallFilter | None = None,
) -> Receipt:
    """Erase entries and the versions merged with them. Entries that they had superseded are in force again.

    ``tombstones`` prevents the same text from being captured again. ``copies`` are erased too where they can be,
    and the receipt names places that still say the texts or the query. ``recalls`` are recalls whose queries are
    erased too, whatever they say.
    """
    if recalls is not None and not dry_run:
        context.store.erase_recalls(recalls)
    plan = _plan(context, ids)
    if not plan.family:
        return Receipt((), dry_run=dry_run)
    lines, mentions, remaining = _erase_copies(copies, plan.texts, query, dry_run=dry_run)
    if dry_run:
        kept = (*_not_covered(context), *remaining)
        return Receipt(plan.family, _covered(context), kept, (), dry_run, lines, mentions)
    with context.store.transaction():
        if context.store.erased_since(plan.seq, plan.family):
            plan = _plan(context, ids)
        quotes = context.store.quotes(plan.family, plan.words, plan.quotes)
        context.store.erase(plan.family, quotes, at=context.clock(), by=actor, tombstones=tombstones)
    pending = _complete_now(context)
    kept = (*_not_covered(context), *remaining, *pending)
    return Receipt(plan.family, _covered(context), kept, note_lines=lines, mentions=mentions)


def _plan(context: EntryContext, ids: Sequence[str]) -> _Plan:
    """Find what to erase. This reads all entries and all recalls, so it is done before the transaction."""
    seq, family = context.store.seq(), tuple(context.store.family(ids))
    texts = context.store.texts(family)
    words = _distinctive_words(context, texts, family)
    return _Plan(seq, family, texts, words, context.store.quotes(family, words))


def _distinctive_words(context: EntryContext, texts: Sequence[str], family: Sequence[str]) -> list[str]:
    """Return the words of forgotten texts that no other entry contains, and the texts themselves."""
    others = "\n".join(context.store.texts_without(family)).casefold()
    words = {word for text in texts for word in query_terms(text)}
    return [*texts, *(word for word in words if len(word) > 1 and word.casefold() not in others)]


def _covered(context: EntryContext) -> tuple[str, ...]:
    copies = (f"forget.{copy}" for copy in ("entry", "history", "keywords", "vectors"))
    return tuple(map(sentence, (*copies, context.store.database.traces.removed, "forget.ledger")))


def _not_covered(context: EntryContext) -> tuple[str, ...]:
    kept = (*NOT_COVERED, *(sentence(code) for code in context.store.database.traces.kept))
    remote = context.follower.index.remote if context.follower.embedder else None
    return (*kept, sentence("forget.remote", store=remote)) if remote else kept


def resume(context: EntryContext) -> None:
    """Complete an erasure that was interrupted. If the index cannot be written now, the next start does it.

    An erasure that another process is completing is left to it.
    """
    if is_pending(context):
        _complete_now(context, wait_s=0.0)


def _complete_now(context: EntryContext, wait_s: float = LOCK_WAIT_S) -> tuple[str, ...]:
    """Complete the erasure, or return why it is completed later."""
    try:
        return complete(context, wait_s)
    except (LockTimeout, StoreError, OSError) as error:
        if not isinstance(error, LockTimeout):
            log.warning("the index still contains forgotten entries: %s", error)
        return (sentence("forget.index_pending", why=message_of(error).rstrip(".")),)


def complete(context: EntryContext, wait_s: float = LOCK_WAIT_S) -> tuple[str, ...]:
    """Remove erased texts from the derived index and from the databases' logs. One process does so at a time.

    Return what could not be removed yet: logs that another process reads, or vectors on a machine that does not
    answer. The latter are deleted when the entries are opened again.
    """
    hashes = context.store.unfinished()
    context.follower.follow()
    batched = context.follower.embedder
    pending: tuple[str, ...] = ()
    try:
        identity = batched.identity if batched else None
        with context.follower.index.lock("erasure", wait_s):
            clean = context.follower.healing(lambda: context.follower.index.erase(hashes, identity))
    except StoreUnavailable as error:
        log.warning("the vectors of forgotten entries are not deleted yet: %s", error)
        store, why = context.follower.index.remote or context.follower.index.engine, str(error).rstrip(".")
        clean, pending = True, (sentence("forget.remote_pending", store=store, why=why),)
    else:
        context.store.finish(hashes)
    left = context.follower.index.left_elsewhere
    pending = (*pending, *(sentence("forget.remote_unused", store=store) for store in left))
    if context.store.database.purge() and clean:
        return pending
    return (*pending, sentence(context.store.database.traces.busy))


def is_pending(context: EntryContext) -> bool:
    """Return whether an erasure was interrupted."""
    return bool(context.store.unfinished())


def _erase_copies(
    copies: OtherCopies | None, texts: Sequence[str], query: str | None, *, dry_run: bool
) -> tuple[tuple[NoteLine, ...], tuple[str, ...], tuple[str, ...]]:
    """Erase copies in other places. Return their lines, the places that still say it, and what else remains.

    If that fails, the entry itself is erased anyway and the receipt says so.
    """
    anywhere = sentence("forget.notes")
    if copies is None:
        return (), (), (anywhere,)
    try:
        lines, left = copies.erase(texts, dry_run=dry_run)
        places, complete = copies.mentions([*texts, query] if query else texts)
    except (MemoriterError, OSError) as error:
        log.warning("not all copies elsewhere could be removed: %s", error)
        return (), (), (anywhere, message_of(error))
    return lines, places, left if complete else (anywhere, *left)


def sure_hit(query: str, hits: Sequence[EntryHit]) -> EntryHit | None:
    """Return the one hit that a query certainly means; None if it could be another."""
    same = [hit for hit in hits if normal_form(hit.entry.text) == normal_form(query)]
    if len(same) == 1:
        return same[0]
    ranked = sorted(hits, key=lambda hit: -hit.similarity)
    if ranked and ranked[0].similarity >= SURE_SIMILARITY:
        next_best = ranked[1].similarity if len(ranked) > 1 else 0.0
        return ranked[0] if ranked[0].similarity - next_best >= SURE_LEAD else None
    return None


HOUR = 3600.0
#: The states in which an entry waits to be erased, and whether a tombstone prevents capturing it again. The owner did
#: not ask to erase an expired entry, so the same text may be learned again.
WAITING = {"expired": False, "rejected": True}


def cleanup_if_due(context: EntryContext) -> CleanedUp | None:
    """Clean up if automatic cleanup is on and the interval has passed, or if the clock was set back."""
    last = context.store.retention.seen()
    due = last is None or not 0 <= context.clock() - last < context.options.cleanup.interval_hours * HOUR
    return cleanup(context) if context.options.cleanup.automatic and due else None


def cleanup(context: EntryContext) -> CleanedUp:
    """Mark expired entries, erase those that have waited long enough, and delete old recalls.

    Only observed time counts as waiting, so one run under a wrong clock marks entries but erases nothing. When
    the clock is right again, the next run restores them.
    """
    now = context.clock()
    observed = context.store.retention.observe(now)
    purged = _erase_due(context, observed - context.options.cleanup.retention_days * DAY)
    if context.store.is_first(LASTING):
        _keep_by_hand(context, now)
    expired, restored = _mark(context, now)
    context.store.retention.record(WAITING, observed)
    jump = context.clock_problem()
    if jump is None:
        context.store.ledger.prune(now - context.options.cleanup.ledger_days * DAY)
    else:
        log.warning("%s", jump)
    return CleanedUp(expired, purged, restored, jump)


def _keep_by_hand(context: EntryContext, now: float) -> None:
    """Let entries last that the owner added by hand while an earlier version gave them the expiry of captured ones."""
    owners = context.store.find(EntryFilter(trust=("owner",), states=("active", "expired")))
    given = (one for one in owners if one.expires_at == expiry(one.type, one.importance, one.created_at))
    kept = [one for one in given if one.expires_at and context.store.history(one.id)[0].by == "owner"]
    if kept:
        edits = [Edit("update", replace(one, expires_at=None), one) for one in kept]
        context.store.apply(edits, at=now, by="cleanup")
        log.info("%d entries that were added by hand no longer expire", len(kept))


def _mark(context: EntryContext, now: float) -> tuple[int, int]:
    """Mark entries whose time is over, and restore those whose time is not. Return how many of each."""
    over = [one for one in context.store.find(EntryFilter()) if not _lasts(one, now)]
    early = [one for one in context.store.find(EntryFilter(states=("expired",))) if _lasts(one, now)]
    edits = [
        *(Edit("expire", replace(entry, state="expired"), entry) for entry in over),
        *(Edit("restore", replace(entry, state="active"), entry) for entry in early),
    ]
    if edits:
        context.store.apply(edits, at=now, by="cleanup")
    return len(over), len(early)


def _erase_due(context: EntryContext, until: float) -> int:
    """Erase the entries that wait since a time or longer. Return how many."""
    count = 0
    for state, has_tombstone in WAITING.items():
        ids = context.store.retention.due((state,), until)
        if ids:
            _erase_ids(context, ids, actor="cleanup", tombstones=has_tombstone)
        count += len(ids)
    return count


def _lasts(entry: Entry, now: float) -> bool:
    return entry.expires_at is None or entry.expires_at > now
