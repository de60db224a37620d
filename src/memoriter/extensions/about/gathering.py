"""What is known about one thing, from everything that the memory holds; and the list of things."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from memoriter.entries.collection import context_of
from memoriter.errors import BadArgument, MemoriterError
from memoriter.extensions.about.names import aliases_in, find_names, pattern_of
from memoriter.extensions.tidy.auditing import about_pairs
from memoriter.memory import Memory, parts_of
from memoriter.records import Entry, EntryEvent, EntryState, RecallHead
from memoriter.tools.tool import Count, Shape

#: Lines, recalls and changes of each kind in one answer.
MAX_LINES = 200
MAX_RECALLS = 50
MAX_CHANGES = 50
#: Entries that are compared with each other.
MAX_COMPARED = 60
#: Files that are read, the newest first.
MAX_FILES = 2_000
MAX_LINE = 1_000
MAX_THINGS = 500
KEPT: tuple[EntryState, ...] = ("active", "staged", "superseded", "expired")

_TURN = re.compile(r"(?P<role>user|assistant)(?: \((?P<at>[\d -]+:\d\d)\))?: (?P<said>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a note or of a conversation."""

    path: str
    line: int
    text: str
    date: str | None = None
    #: Who said it in a conversation.
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two entries in force that cannot both hold."""

    earlier: Entry
    later: Entry
    why: str


@dataclass(frozen=True, slots=True)
class About:
    """Everything about one thing."""

    name: str
    aliases: tuple[str, ...] = ()
    #: Entries in force and entries that wait, newest first.
    entries: tuple[Entry, ...] = ()
    #: Entries that no longer hold.
    older: tuple[Entry, ...] = ()
    notes: tuple[Line, ...] = ()
    conversations: tuple[Line, ...] = ()
    recalls: tuple[RecallHead, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    changes: tuple[EntryEvent, ...] = ()
    #: What was not looked at.
    degraded: str | None = None

    @property
    def places(self) -> int:
        """Return the number of entries and lines that mention it."""
        return len(self.citations)

    @property
    def citations(self) -> tuple[str, ...]:
        """Return citations of the entries and lines that mention it."""
        entries = (f"entry:{entry.id}" for entry in (*self.entries, *self.older))
        return (*entries, *(f"{line.path}#L{line.line}" for line in (*self.notes, *self.conversations)))


class Thing(Shape):
    """A name that recurs."""

    name: str
    kind: Literal["name", "tag", "project"]
    #: Entries and notes that mention it.
    count: Count
    aliases: list[str] = Field(default=[])


def about(memory: Memory, name: str, *, masked: bool = False) -> About:
    """Gather everything about a person, place, project or topic. Other names of it are found too.

    For an agent, secrets in notes are ``masked``.
    """
    name = " ".join(name.split())
    if not any(char.isalnum() for char in name):
        raise BadArgument("Give the name of a thing.", "name")
    entries = _all_entries(memory)
    lines, degraded = _all_lines(memory, masked=masked)
    pairs = list(aliases_in([*(entry.text for entry in entries), *(line.text for line in lines)]))
    aliases = tuple(sorted(_group(name, pairs)))
    pattern = pattern_of((name, *aliases))
    mine = [entry for entry in entries if pattern.search(entry.text) or _is_tag(entry, name, aliases)]
    found = [line for line in lines if pattern.search(line.text) or pattern.search(_title(line.path))]
    in_force = [entry for entry in mine if entry.state in ("active", "staged")]
    return About(
        name,
        aliases,
        tuple(in_force),
        tuple(entry for entry in mine if entry.state not in ("active", "staged")),
        tuple(line for line in found if line.role is None and pattern.search(line.text))[:MAX_LINES],
        tuple(line for line in found if line.role is not None and pattern.search(line.text))[:MAX_LINES],
        _recalls(memory, (name, *aliases)),
        _contradictions(memory, [entry for entry in in_force if entry.state == "active"]),
        _changes(memory, mine),
        degraded,
    )


def list_things(memory: Memory, *, masked: bool = False) -> list[Thing]:
    """List the names, tags and projects that recur, the most frequent first. ``masked`` is as for `about`."""
    entries = [entry for entry in _all_entries(memory) if entry.state in ("active", "staged")]
    lines, _ = _all_lines(memory, masked=masked)
    texts = [*(entry.text for entry in entries), *(line.text for line in lines)]
    pairs = list(aliases_in(texts))
    found = dict[str, Thing]()
    for name, count in find_names(texts).items():
        found[name.casefold()] = Thing(name=name, kind="name", count=count)
    for tag in {tag for entry in entries for tag in entry.tags if not tag.startswith("branch:")}:
        count = sum(tag in entry.tags for entry in entries)
        known = found.get(tag.casefold())
        found[tag.casefold()] = Thing(
            name=known.name if known else tag, kind="tag", count=count + (known.count if known else 0)
        )
    for path in {line.path for line in lines if "/projects/" in f"/{line.path}"}:
        name = _title(path)
        known = found.get(name.casefold())
        found[name.casefold()] = Thing(
            name=known.name if known else name, kind="project", count=known.count if known else 1
        )
    things = sorted(found.values(), key=lambda thing: (-thing.count, thing.name.casefold()))
    return list(islice(_joined(things, pairs), MAX_THINGS))


def _joined(things: Sequence[Thing], pairs: Sequence[tuple[str, str]]) -> Iterator[Thing]:
    """Yield things, with names of one thing together under the most frequent one."""
    others = {name.casefold(): _group(name, pairs) for pair in pairs for name in pair}
    done = set[str]()
    for thing in things:
        key = thing.name.casefold()
        if key in done:
            continue
        aliases = sorted(others.get(key, ()))
        done.update((key, *(alias.casefold() for alias in aliases)))
        yield thing.model_copy(update={"aliases": aliases})


def _group(name: str, pairs: Sequence[tuple[str, str]]) -> set[str]:
    """Return the other names of a thing, also those of its other names."""
    known = {name.casefold(): name}
    grew = True
    while grew:
        grew = False
        for one, other in pairs:
            for first, second in ((one, other), (other, one)):
                if first.casefold() in known and second.casefold() not in known:
                    known[second.casefold()] = second
                    grew = True
    return {one for key, one in known.items() if key != name.casefold()}


def _is_tag(entry: Entry, name: str, aliases: Sequence[str]) -> bool:
    names = {one.casefold() for one in (name, *aliases)}
    return any(tag.casefold() in names for tag in entry.tags)


def _title(path: str) -> str:
    return PurePosixPath(path).stem


def _all_entries(memory: Memory) -> list[Entry]:
    return memory.entries.list(states=KEPT) if parts_of(memory).entries_exist else []


def _all_lines(memory: Memory, *, masked: bool = False) -> tuple[list[Line], str | None]:
    """Return every line of notes and conversations, newest files first, and what was not read."""
    listed = memory.notes.list()
    files = sorted(listed.files, key=lambda file: -file.mtime)[:MAX_FILES]
    lines, failed = list[Line](), 0
    for file in files:
        try:
            excerpt = memory.read(file.path, masked=masked)
        except (MemoriterError, OSError):
            failed += 1
            continue
        for number, text in enumerate(excerpt.text.split("\n"), excerpt.start_line):
            turn = _TURN.fullmatch(text) if file.source == "sessions" else None
            said = (turn["said"] if turn else text).strip()
            if said:
                day = (turn["at"] or "")[:10] if turn else file.date
                role = (turn["role"] if turn else "user") if file.source == "sessions" else None
                lines.append(Line(file.path, number, said[:MAX_LINE], day or file.date, role))
    skipped = listed.total - len(files) + failed
    return lines, f"{skipped:,} files were not read." if skipped else None


def _recalls(memory: Memory, names: Sequence[str]) -> tuple[RecallHead, ...]:
    if not parts_of(memory).entries_exist:
        return ()
    pages = (memory.entries.recalls(limit=MAX_RECALLS, words=name) for name in names)
    found = {recall.id: recall for page in pages for recall in page.recalls}
    return tuple(sorted(found.values(), key=lambda recall: -recall.at)[:MAX_RECALLS])


def _contradictions(memory: Memory, entries: Sequence[Entry]) -> tuple[Contradiction, ...]:
    if len(entries) < 2:
        return ()
    known = {entry.id: entry for entry in entries[:MAX_COMPARED]}
    findings = about_pairs(context_of(memory.entries), list(known.values()))
    return tuple(
        Contradiction(known[one.ids[0]], known[one.ids[1]], one.why)
        for one in findings
        if one.kind == "contradiction"
    )


def _changes(memory: Memory, entries: Sequence[Entry]) -> tuple[EntryEvent, ...]:
    newest = sorted(entries, key=lambda entry: -entry.seq)[:MAX_CHANGES]
    events = [event for entry in newest for event in memory.entries.history(entry.id)]
    return tuple(sorted(events, key=lambda event: -event.seq)[:MAX_CHANGES])
