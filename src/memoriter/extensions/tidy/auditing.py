"""The findings of `memoriter audit`, each with the command that fixes it. It only reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memoriter.background import check_cancelled
from memoriter.entries.capture_rules import FOREIGN, INJECTION, QUESTION
from memoriter.entries.collection import context_of
from memoriter.entries.context import EntryContext
from memoriter.entries.drafts import DAY
from memoriter.entries.relation import relation
from memoriter.entries.statement import statement
from memoriter.extensions.tidy.pairs import Pair, is_readable, load_vectors, pairs_of, verdict_of
from memoriter.extensions.tidy.planning import MAX_JUDGED, UNUSED_S, is_unused, known_since, undone_entries
from memoriter.memory import Memory, parts_of
from memoriter.records import TRUST_LEVELS, Entry, is_trusted_like
from memoriter.search.changes import NEAR, change
from memoriter.store.entry_rows import EntryFilter
from memoriter.text.redaction import find_secrets, redact
from memoriter.text.words import normal_form

Kind = Literal["secret", "contradiction", "duplicate", "junk", "expired", "unused"]

#: The least cosine of two entries in other words that are probably duplicates.
NEAR_DUPLICATE = 0.93
_GREETING = re.compile(
    r"(?:hi|hello|hey|thanks?|thank you|thx|ok(?:ay)?|yes|no|sure|great|cool|nice|bye|good (?:morning|evening|night)"
    r"|never ?mind|got it|sounds good|you'?re welcome|please|sorry|done|test(?:ing)?)(?: (?:there|you|so much|all))*"
    r"|你好|您好|谢谢|謝謝|多谢|好的?|是的?|行|嗯+|再见|早上好|晚上好|没事|没关系|收到|测试"
)


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """Something about entries that is worth a look."""

    kind: Kind
    #: The entries that it is about, and what they say. Secrets are redacted.
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    why: str
    #: The command that fixes it.
    fix: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The findings, the gravest first."""

    entries: int
    findings: tuple[AuditFinding, ...]
    degraded: str | None = None


def audit(memory: Memory) -> AuditReport:
    """Look through all entries and return what is worth a look. Nothing is changed."""
    if not parts_of(memory).entries_exist:
        return AuditReport(0, ())
    context = context_of(memory.entries)
    now = context.clock()
    kept = sorted(context.store.find(EntryFilter(states=())), key=lambda entry: entry.seq)
    active = [one for one in kept if one.state == "active" and not (one.expires_at and one.expires_at <= now)]
    secrets = list(_secrets(kept))
    told = {id_ for finding in secrets for id_ in finding.ids}
    # The command that erases a secret comes first.
    pairs = [finding for finding in about_pairs(context, active) if told.isdisjoint(finding.ids)]
    findings = [
        *secrets,
        *sorted(pairs, key=lambda finding: finding.kind),  # contradictions before duplicates
        *_junk(active),
        *_expired(kept, now),
        *_unused(context, active, now),
    ]
    return AuditReport(len(active), tuple(findings), memory.entries.missing_vectors())


def _secrets(entries: Iterable[Entry]) -> Iterator[AuditFinding]:
    for entry in entries:
        check_cancelled()
        kinds = sorted({secret.kind for secret in find_secrets(entry.text)})
        if kinds:
            yield _finding("secret", f"contains: {', '.join(kinds)}", f"{_forget(entry)} --now", entry)


def about_pairs(context: EntryContext, entries: Sequence[Entry]) -> Iterator[AuditFinding]:
    """Yield duplicates and contradictions among entries in force."""
    judged, undone = 0, undone_entries(context)
    for _, pairs in pairs_of(context, entries, entries, load_vectors(context, entries)):
        for pair in pairs:
            earlier, later = pair.earlier, pair.later
            kind, why, is_sure = _by_words(context, pair)
            if not kind and (pair.cosine or 0.0) >= NEAR and judged < MAX_JUDGED:
                judged += 1
                found, chance = change(context.options.judge, earlier.text, later.text)
                kind = "contradiction" if found else ""
                why = f"the later one probably replaced the earlier one ({chance:.0%})"
                is_sure = found == "retired" and is_readable(pair) and earlier.trust == later.trust
            if not kind and (pair.cosine or 0.0) >= NEAR_DUPLICATE:
                kind, why, is_sure = "duplicate", "nearly the same", False
            if kind:
                by_run = is_sure and undone.isdisjoint((earlier.id, later.id))
                worse = max(earlier, later, key=lambda one: TRUST_LEVELS.index(one.trust))
                yield _finding(kind, why, "memoriter tidy" if by_run else _forget(worse), earlier, later)


def _by_words(context: EntryContext, pair: Pair) -> tuple[Kind | Literal[""], str, bool]:
    """Return what words say about a pair, why, and whether a run of `tidy` would end one of the two."""
    if verdict := verdict_of(context, pair):
        return "contradiction" if verdict.kind == "replaced" else "duplicate", verdict.why, True
    earlier, later = pair.earlier, pair.later
    if earlier.valid_from == later.valid_from or not is_trusted_like(later.trust, earlier.trust):
        said = relation(earlier.text, later.text, pair.cosine)
        return "contradiction" if said.kind == "contradiction" else "", said.why, False
    return "", "", False


def _junk(entries: Iterable[Entry]) -> Iterator[AuditFinding]:
    for entry in entries:
        if why := junk_reason(entry.text):
            yield _finding("junk", why, _forget(entry), entry)


def junk_reason(text: str) -> str:
    """Return why a text is probably not worth remembering; empty if it is a statement."""
    if _GREETING.fullmatch(normal_form(text)):
        return "a greeting, or a word of the conversation"
    if FOREIGN.search(text):
        return "code, markup or output of a tool"
    if INJECTION.search(text):
        return "instructions to an agent"
    if QUESTION.search(text.lower().strip()):
        return "a question"
    if text.rstrip().endswith((":", "：", "…", "...", ",", "，")):
        return "a fragment"
    # Reading a statement takes longer than all of the above.
    return "a fragment" if len(text.split()) < 6 and len(statement(text).sequence) < 2 else ""


def _expired(entries: Iterable[Entry], now: float) -> Iterator[AuditFinding]:
    for entry in entries:
        over = entry.state == "active" and entry.expires_at is not None and entry.expires_at <= now
        if over or entry.state == "expired":
            yield _finding("expired", "expired, and still stored", f"{_forget(entry)} --now", entry)


def _unused(context: EntryContext, entries: Iterable[Entry], now: float) -> Iterator[AuditFinding]:
    since = known_since(context)
    for entry in entries:
        known_s = now - since.get(entry.id, now)
        if is_unused(entry) and known_s >= UNUSED_S and not junk_reason(entry.text):
            yield _finding("unused", f"never used in {int(known_s / DAY)} days", _forget(entry), entry)


def propose(context: EntryContext, entries: Iterable[Entry], now: float) -> Iterator[AuditFinding]:
    """Yield entries that the owner may want to forget: junk, and what is still unused after its importance is lowest.

    What the owner added by hand is not proposed.
    """
    never = [entry for entry in entries if is_unused(entry)]
    yield from _junk(never)
    yield from _unused(context, (entry for entry in never if entry.importance <= 1.0), now)


def _forget(entry: Entry) -> str:
    return f"memoriter forget {entry.id}"


def _finding(kind: Kind, why: str, fix: str, *entries: Entry) -> AuditFinding:
    ids, texts = tuple(one.id for one in entries), tuple(redact(one.text) for one in entries)
    return AuditFinding(kind, ids, texts, why, fix)
