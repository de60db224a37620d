"""`Entries`: everything an agent has learned, behind one object (`memory.entries`).

Its methods are functions of this package that work on an `EntryContext`: `adding` decides how a new statement relates
to known ones, `forgetting` hides and erases, `editing` changes and undoes, `listing` and `search` read.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import time
from collections.abc import Callable, Iterable
from typing import Concatenate, ParamSpec, TypeVar, Unpack

from memoriter.embedding import Batched, Embedder
from memoriter.entries import adding, capture, editing, forgetting, importing, listing
from memoriter.entries.context import EntryContext, EntryOptions
from memoriter.entries.drafts import Draft, DraftFields, type_of
from memoriter.entries.search import search as search_entries
from memoriter.index.follow import Follower
from memoriter.records import Entry, Remembered
from memoriter.sentences import sentence
from memoriter.store import Index
from memoriter.store.entry_store import EntryStore
from memoriter.store.protocol import Transactions

P = ParamSpec("P")
T = TypeVar("T")


def bound(function: Callable[Concatenate[EntryContext, P], T]) -> Callable[Concatenate[Entries, P], T]:
    """Return a function of an `EntryContext` as a method of `Entries`."""

    @functools.wraps(function)
    def method(self: Entries, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(self._context, *args, **kwargs)

    # The signature of the method has `self` in place of the context.
    del method.__wrapped__
    signature = inspect.signature(function)
    _, *others = signature.parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = signature.replace(parameters=[own, *others])  # type: ignore[attr-defined]
    method.__annotations__ = {
        name: kind for name, kind in method.__annotations__.items() if name != "context"
    }
    return method


def context_of(entries: Entries) -> EntryContext:
    """Return the context of entries, for the interfaces of this package."""
    return entries._context


class Entries:
    """The entries of one agent. Safe to use from several threads and processes."""

    def __init__(
        self,
        store: EntryStore,
        index: Index,
        embedder: Embedder | None = None,
        batched: Batched | None = None,
        options: EntryOptions | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        options = options or EntryOptions()
        follower = Follower(store, index, batched, name="entries", background=options.background)
        self._context = EntryContext(store, follower, embedder, options, clock)
        forgetting.resume(self._context)

    def add(self, text: str, type: str | None = None, **fields: Unpack[DraftFields]) -> Remembered:  # noqa: A002
        """Add one statement and return the outcome.

        A statement that is already known is counted, one that refines a known entry is merged with it, and one that
        contradicts a known entry supersedes it. With approval turned on, the statement may be staged instead.
        ``type`` is one of the entry types or categories; without it, the rules of `capture` choose one.
        ``importance`` is 1 to 5 and ``confidence`` 0 to 1; other numbers are an error. What the owner adds never
        expires, unless ``expires_at`` says when, in seconds since the epoch. The change is on disk when this method
        returns.
        """
        chosen = type_of(type) if type else capture.classify(text)
        return self.add_draft(Draft(text, chosen, **fields), actor=fields.get("trust", "owner"))

    def add_draft(self, draft: Draft, *, actor: str = "owner", replaces: str | None = None) -> Remembered:
        """Add a draft and return the outcome. `add` is the short form.

        ``replaces`` is the id of an entry that the draft supersedes, if the caller knows one. It has no effect on an
        entry that is more trusted than the draft. ``actor`` is recorded in the history.
        """
        forgetting.cleanup_if_due(self._context)
        return adding.add_draft(self._context, draft, actor=actor, replaces=replaces)

    def capture(
        self, turns: Iterable[capture.TurnLike], *, session: str | None = None
    ) -> builtins.list[Remembered]:
        """Capture statements from the owner's turns by rules, without a model."""
        limits, now = self._context.options.capture, self._context.clock()
        drafts = capture.capture(turns, session=session, limits=limits, now=now)
        return [self.add_draft(draft, actor="capture") for draft in drafts]

    approve = bound(adding.approve)
    reject = bound(adding.reject)
    says_forgotten = bound(adding.forgotten_by_owner)

    get = bound(listing.get)
    list = bound(listing.list_entries)
    page = bound(listing.page)
    search = bound(search_entries)
    detail = bound(listing.detail)
    history = bound(listing.history)
    replaced_by = bound(listing.replaced_by)
    stats = bound(listing.stats)
    facets = bound(listing.facets)
    timeline = bound(listing.timeline)
    recalls = bound(listing.recalls)
    get_recall = bound(listing.get_recall)

    update = bound(editing.update)
    merge = bound(editing.merge_entries)
    supersede = bound(editing.supersede)
    undo = bound(editing.undo)
    redo = bound(editing.redo)
    undo_import = bound(editing.undo_import)

    forget = bound(forgetting.forget)
    erase = bound(forgetting.erase)
    cleanup = bound(forgetting.cleanup)

    export = bound(importing.export)
    import_ = bound(importing.import_text)

    def get_many(self, ids: Iterable[str]) -> dict[str, Entry]:
        """Return the entries with these ids that exist, by id."""
        return self._context.store.load(ids)

    def undone(self) -> builtins.list[Entry]:
        """Return the entries that an undo removed, newest first. Their words stay in the history until forgotten."""
        return self._context.store.undone()

    def mark_used(self, ids: Iterable[str]) -> None:
        """Count that these entries were used. This is not a change of the entries and adds no event."""
        self._context.store.touch(ids, self._context.clock())

    def missing_vectors(self) -> str | None:
        """Return a sentence that says how many entries have no vector yet, also right after an import; else None."""
        missing, total = self._context.follower.count_missing()
        return sentence("entries.missing", missing=missing, total=total) if missing else None

    def repair_index(self, *, rebuild: bool = False) -> str | None:
        """Check the derived index and build it again if it is damaged. Return what was wrong, if anything.

        ``rebuild`` builds it again in any case.
        """
        return self._context.follower.repair(rebuild=rebuild)

    def close(self) -> None:
        """Close the database and the index."""
        self._context.follower.close()
        self._context.follower.index.close()
        self._context.store.close()


def connect_entries(
    open_database: Callable[[], Transactions],
    index: Index,
    embedder: Embedder | None = None,
    *,
    options: EntryOptions | None = None,
    clock: Callable[[], float] = time.time,
) -> Entries:
    """Open the entries in a database, with an index that follows it. If that fails, both are closed."""
    from memoriter.embedding import Batched

    batched = Batched(embedder) if embedder else None
    database: Transactions | None = None
    try:
        database = open_database()
        return Entries(EntryStore(database), index, embedder, batched, options, clock=clock)
    except BaseException:
        if database is not None:
            database.close()
        index.close()
        raise
