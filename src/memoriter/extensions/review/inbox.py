"""The operations of the inbox: what an approval would change, and what tidying proposes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pydantic import Field

from memoriter.config.fields import described
from memoriter.entries import adding
from memoriter.entries.collection import context_of
from memoriter.extensions.tidy.auditing import AuditFinding, about_pairs, propose
from memoriter.memory import Memory, parts_of
from memoriter.tools.entries import EntryJson, IdArguments
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Call, Prose, Shape, operation

#: Proposals in one answer, and the newest entries that are compared for it.
MAX_PROPOSALS, MAX_COMPARED = 50, 1_000
#: Entries with this tag are never proposed. The page adds it when the owner rejects a proposal.
KEEP = "keep"


class ForeseenResult(Shape):
    """What the approval of an entry would do."""

    action: str = described("add", "`add`, `repeat`, `merge` or `supersede`.")
    why: Prose = ""
    entries: list[EntryJson] = described([], "The entries that it would change or replace.")


class ProposalJson(Shape):
    """A change that only the owner can decide."""

    kind: str = Field(description="`contradiction`, `duplicate`, `junk` or `unused`.")
    why: Prose
    entries: list[EntryJson] = Field(description="One to forget, or two of which the first is the earlier.")


class ProposalsResult(Shape):
    """The changes that tidying proposes."""

    proposals: list[ProposalJson] = Field(default=[])


@operation("inbox.foresee", owner_only=True)
def foresee(call: Call[IdArguments]) -> ForeseenResult:
    """Return what the approval of a waiting entry would change. Nothing is changed."""
    verdict = adding.foresee(context_of(call.memory.entries), call.arguments.id)
    shown = [EntryJson.model_validate(entry) for entry in verdict.targets]
    return ForeseenResult(action=verdict.action, why=verdict.why, entries=shown)


@operation("inbox.proposals", owner_only=True)
def proposals(call: Call[NoArguments]) -> ProposalsResult:
    """List the changes that tidying is not sure about: contradictions, duplicates, and what the owner may want to
    forget. An entry with the tag `keep` is left out.
    """
    shown = list[ProposalJson]()
    for finding in islice(_findings(call.memory), MAX_PROPOSALS):
        known = call.memory.entries.get_many(list(finding.ids))
        entries = [EntryJson.model_validate(known[id_]) for id_ in finding.ids if id_ in known]
        shown.append(ProposalJson(kind=finding.kind, why=finding.why, entries=entries))
    return ProposalsResult(proposals=shown)


def _findings(memory: Memory) -> Iterator[AuditFinding]:
    if not parts_of(memory).entries_exist:
        return
    context = context_of(memory.entries)
    active = memory.entries.list()
    kept = {entry.id for entry in active if KEEP in entry.tags}
    newest = sorted(active, key=lambda entry: entry.seq)[-MAX_COMPARED:]
    told = set[str]()
    for finding in about_pairs(context, newest):
        if not kept.issuperset(finding.ids) and told.isdisjoint(finding.ids):
            told.update(finding.ids)
            yield finding
    rest = [entry for entry in active if entry.id not in kept | told]
    yield from propose(context, rest, context.clock())
