"""Importing entries: how far an import is trusted, and whether its entries keep their history or are judged again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from memoriter.entries import exchange
from memoriter.entries.drafts import Draft, expiry
from memoriter.records import IMPORTED, Imported, Remembered, Trust, least_trusted
from memoriter.store.entry_store import EntryStore

if TYPE_CHECKING:
    from memoriter.index.follow import Follower


class AddDraft(Protocol):
    """Adds one draft and returns the outcome."""

    def __call__(self, draft: Draft, *, actor: str) -> Remembered:
        """Judge the draft against what is known."""


class EntryImporter:
    """Imports entries into one store. With ``needs_approval``, entries that are not the owner's are staged."""

    def __init__(
        self,
        store: EntryStore,
        follower: Follower,
        add: AddDraft,
        clock: Callable[[], float],
        *,
        needs_approval: bool,
    ) -> None:
        self._store = store
        self._follower = follower
        self._add = add
        self._clock = clock
        self._needs_approval = needs_approval

    def import_(self, text: str, *, trust: Trust, actor: str, dry_run: bool) -> Imported:
        """Import an export: all of it or nothing."""
        lines = list(exchange.read(text, at=self._clock()))
        if actor == "agent":
            return self._import_statements(lines, trust, actor, dry_run=dry_run)
        lines = [self._limit_trust(line, trust) for line in lines]
        imported = exchange.import_lines(self._store, lines, at=self._clock(), actor=actor, dry_run=dry_run)
        if not dry_run:
            self._follower.try_follow()  # keywords now, so that the next search need not wait for them
        return imported

    def _limit_trust(self, line: exchange.EntryLine, trust: Trust) -> exchange.EntryLine:
        """Return a line with at most this trust."""
        entry = replace(line.entry, trust=least_trusted(line.entry.trust, trust))
        if trust != "owner" and entry.expires_at is None:
            entry = replace(entry, expires_at=expiry(entry.type, entry.importance, self._clock()))
        if trust != "owner" and self._needs_approval and entry.state == "active":
            entry = replace(entry, state="staged")
        return exchange.EntryLine(entry, line.history if trust == "owner" else ())

    def _import_statements(
        self, lines: Sequence[exchange.EntryLine], trust: Trust, actor: str, *, dry_run: bool
    ) -> Imported:
        """Import the entries of a file as statements of a caller that is not the owner."""
        drafts = [
            Draft(
                line.entry.text,
                line.entry.type,
                category=line.entry.category,
                importance=line.entry.importance,
                confidence=line.entry.confidence,
                trust=least_trusted(line.entry.trust, trust),
                source=IMPORTED,
                tags=line.entry.tags,
                on_purpose=False,
            ).clean()
            for line in lines
            if line.entry.state == "active"
        ]
        if dry_run:
            known = sum(any(one.state == "active" for one in self._store.same_text(d.text)) for d in drafts)
            return Imported(len(drafts) - known, known)
        actions = [self._add(draft, actor=actor).action for draft in drafts]
        refused, already = actions.count("refused"), actions.count("repeated")
        return Imported(len(actions) - refused - already, already, refused)
