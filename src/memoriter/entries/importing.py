"""Export and import as methods of `Entries`: what a file may contain, and how far an import is trusted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Unpack

from memoriter.entries.adding import add_draft
from memoriter.entries.context import EntryContext
from memoriter.entries.drafts import draft_from, expiry
from memoriter.entries.exchange import EntryLine, export_lines, import_lines, read
from memoriter.entries.search import EntryFilters, limited
from memoriter.records import IMPORTED, EntryState, Imported, Trust, least_trusted

#: The states of entries that an export contains by default.
_EXPORTED: Sequence[EntryState] = ("active", "staged", "superseded", "expired")


def export(
    context: EntryContext,
    type: str | None = None,  # noqa: A002
    *,
    ids: Collection[str] | None = None,
    **filters: Unpack[EntryFilters],
) -> Iterator[str]:
    """Return the entries that match every filter with their history, one JSON object per line.

    Without ``states`` entries in any state are returned, except rejected ones: those are hidden until the cleanup
    erases them.
    """
    types = (type,) if type else filters.get("types", ())
    where = limited(context, {"states": _EXPORTED, **filters, "types": types})
    return export_lines(context.store, where, None if ids is None else set(ids))


def import_text(
    context: EntryContext,
    text: str,
    *,
    trust: Trust = "owner",
    actor: str = "owner",
    dry_run: bool = False,
    skip_invalid: bool = False,
) -> Imported:
    """Import an export of memoriter, or a list of statements as JSON: all of it or nothing.

    With ``skip_invalid``, entries that cannot be imported are left out, and `Imported.invalid` says why. Entries that
    exist already stay as they are, and forgotten texts are refused. No entry is imported with more than
    ``trust``, and only full trust keeps the histories, because an undo could lead back to them. If ``actor`` is
    "agent", the file consists of statements of that agent: they are judged like any other, and what the file says
    about their origin, age and history is ignored.
    """
    invalid = list[str]()
    lines = list(read(text, at=context.clock(), invalid=invalid if skip_invalid else None))
    if actor == "agent":
        return _import_statements(context, lines, trust, actor, dry_run=dry_run)
    lines = [_limit_trust(context, line, trust) for line in lines]
    imported = import_lines(context.store, lines, at=context.clock(), actor=actor, dry_run=dry_run)
    if not dry_run:
        context.follower.try_follow()  # keywords now, so that the next search need not wait for them
    return replace(imported, invalid=tuple(invalid))


def _limit_trust(context: EntryContext, line: EntryLine, trust: Trust) -> EntryLine:
    """Return a line with at most this trust."""
    entry = replace(line.entry, trust=least_trusted(line.entry.trust, trust))
    if trust != "owner" and entry.expires_at is None:
        entry = replace(entry, expires_at=expiry(entry.type, entry.importance, context.clock()))
    if trust != "owner" and context.options.approval != "none" and entry.state == "active":
        entry = replace(entry, state="staged")
    return EntryLine(entry, line.history if trust == "owner" else ())


def _import_statements(
    context: EntryContext, lines: Sequence[EntryLine], trust: Trust, actor: str, *, dry_run: bool
) -> Imported:
    """Import the entries of a file as statements of a caller that is not the owner."""
    drafts = [
        draft_from(
            line.entry,
            trust=least_trusted(line.entry.trust, trust),
            session=None,
            source=IMPORTED,
            on_purpose=False,
        ).clean()
        for line in lines
        if line.entry.state == "active"
    ]
    if dry_run:
        known = sum(any(one.state == "active" for one in context.store.same_text(d.text)) for d in drafts)
        return Imported(len(drafts) - known, known)
    actions = [add_draft(context, draft, actor=actor).action for draft in drafts]
    refused, already = actions.count("refused"), actions.count("repeated")
    return Imported(len(actions) - refused - already, already, refused)
