"""Import what other programs have written: their exports, and the memories of agents.

An importer is a part of an extension. It recognises a file or folder by its content, or a person names it.
Conversations become sessions, Markdown becomes notes, and single statements become entries. Each keeps the id it has in
the other program, so a repeated import adds only what is new.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from memoriter.entries.exchange import MAX_TIME, seconds_of
from memoriter.errors import NotFound, SourceError, WriteError, reason_of
from memoriter.extension import offers
from memoriter.extensions.importing.copying import (
    SealedTranscript,
    copy_file,
    json_files,
    plan_copy,
    remove_copy,
)
from memoriter.hosts import ImportReport, ImportStep
from memoriter.memory import Memory, parts_of
from memoriter.records import Imported
from memoriter.sessions.messages import is_by_stranger, turns_of_file
from memoriter.text.pasted import MAX_OWN_WIDTH
from memoriter.text.tokens import width

SQLITE_MAGIC = b"SQLite format 3\0"
#: Bytes of all texts of an archive together: the first number, or this many times its size, up to the last number.
FREE_BYTES, MAX_RATIO, MAX_TEXT_BYTES = 64 << 20, 100, 512 << 20
#: Maximum number of notes in a folder.
MAX_NOTES = 50_000
#: A transcript of another program: its name, and the id of the conversation.
_SESSION_PATH = re.compile(r"[a-z0-9-]+/[A-Za-z0-9_-]+\.jsonl")
#: Why turns never enter a prompt: the name of the reason, and in words.
WITHHELD = {
    "pasted": "with pasted text",
    "long": "of more than about 100 words",
    "others": "of other people",
    "relayed": "of the agent after text from outside",
}


class Importer(Protocol):
    """Imports from one program."""

    #: The name of the program, for people.
    program: str

    def recognises(self, source: Source) -> bool:
        """Return whether a file or folder comes from this program."""

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import everything. Existing data is kept."""


@dataclass(frozen=True)
class Source:
    """A file or folder, or the text of a file. An importer with a default place accepts none."""

    path: Path | None
    text: str | None = None
    #: Whether statements that cannot be imported are left out.
    skip_invalid: bool = False

    @property
    def place(self) -> Path:
        """The path, for reports."""
        return self.path or Path("import")

    @property
    def is_folder(self) -> bool:
        """Whether this is a folder."""
        return self.path is not None and self.path.is_dir()

    @cached_property
    def start(self) -> bytes:
        """The first bytes of the file, by which formats are told apart."""
        if self.path is None or not self.path.is_file():
            return b""
        with self.path.open("rb") as file:
            return file.read(len(SQLITE_MAGIC))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The text of the file, or the conversations in an archive or a folder as programs export them."""
        if self.text is not None:
            return (self.text,)
        if self.path is None or self.start == SQLITE_MAGIC:
            return ()
        if self.is_folder:
            return tuple(_read_text(file) for file in sorted(self.path.glob("conversations*.json")))
        is_archive = self.start.startswith(b"PK\x03\x04")
        return tuple(self.zipped(_is_conversations)) if is_archive else (_read_text(self.path),)

    @cached_property
    def notes(self) -> dict[Path, str]:
        """The Markdown files of a folder and their texts."""
        found = sorted(self.path.rglob("*.md")) if self.path is not None and self.is_folder else []
        files = [file for file in found if file.is_file() and not file.is_symlink()]
        return {file: file.read_text(encoding="utf-8", errors="replace") for file in files[:MAX_NOTES]}

    @cached_property
    def records(self) -> tuple[Any, ...]:
        """The content of each text, or None for one that is not a JSON document."""
        return tuple(_parse(text) for text in self.texts)

    def zipped(self, is_wanted: Callable[[str], bool]) -> list[str]:
        """Return the texts of an archive whose names are wanted."""
        import zlib  # compression libraries, which only archives need
        from lzma import LZMAError
        from zipfile import BadZipFile, ZipFile

        try:
            with ZipFile(self.place) as archive:
                free = max(FREE_BYTES, MAX_RATIO * self.place.stat().st_size)
                texts, left = list[str](), (limit := min(free, MAX_TEXT_BYTES))
                for name in sorted(filter(is_wanted, archive.namelist())):
                    with archive.open(name) as file:
                        data = file.read(left + 1)
                    left -= len(data)
                    if left < 0:
                        raise SourceError(
                            f"{self.place} expands to more than {limit >> 20} MB. Nothing was imported."
                        )
                    texts.append(data.decode("utf-8-sig"))
        except (BadZipFile, LZMAError, zlib.error, RuntimeError, ValueError, EOFError, OSError) as error:
            # RuntimeError: the archive has a password or an unknown compression.
            raise SourceError(
                f"{self.place} cannot be read: {reason_of(error)}. Nothing was imported."
            ) from error
        return texts

    def members(self, *names: str) -> list[Mapping[str, Any]]:
        """Return the records of every list, on its own or a member of an object with one of these names."""
        lists = (one for found in self.records for one in _lists(found, names))
        return [record for records in lists for record in records if isinstance(record, dict)]

    def lists_with(self, name: str) -> list[list[Mapping[str, Any]]]:
        """Return the lists of records that all have this field."""
        return [
            records
            for records in self.records
            if isinstance(records, list)
            and records
            and all(isinstance(record, dict) and name in record for record in records)
        ]


@dataclass(frozen=True, slots=True)
class NamedImporter:
    """Imports from a program when a person names it. Its folder is not an export."""

    program: str
    run: Callable[..., ImportReport]

    def recognises(self, source: Source) -> bool:
        """Return False."""
        del source
        return False

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import from the folder, or from where the program keeps its data."""
        return self.run(memory, source.path, dry_run=dry_run)


def importers() -> dict[str, Importer]:
    """Return every importer by the name that selects it on the command line."""
    return {name: offer.load() for name, offer in offers("importers").items()}


def import_from(
    memory: Memory, name: str, path: Path | None = None, *, dry_run: bool = False
) -> ImportReport:
    """Import from the program with this name: from a file or folder, or from where it keeps its data."""
    return importers()[name].import_(memory, Source(path), dry_run=dry_run)


def import_export(memory: Memory, source: Path | str, *, dry_run: bool = False) -> ImportReport:
    """Import a file or folder that another program has exported. Existing data is kept.

    Raises `SourceError` if the format is unknown, and `WriteError` if it contains nothing to import.
    """
    path = Path(source).expanduser().absolute()
    if not path.exists():
        raise NotFound(f"{path} does not exist.")
    if not path.is_file() and not path.is_dir():  # reading a pipe would wait for ever
        raise SourceError(f"{path} is neither a file nor a folder.")
    report = _import(memory, Source(path), dry_run=dry_run)
    if not report.steps and report.entries == Imported(0, 0):
        why = " ".join((f"{source} ({report.program}) contains no memories.", *report.remarks))
        raise WriteError(f"Nothing was imported: {why}")
    if not dry_run:
        memory.mark_changed()
    return report


def import_text(
    memory: Memory, text: str, *, dry_run: bool = False, skip_invalid: bool = False
) -> ImportReport:
    """Import the content of a file that another program has exported, as `import_export` does with the file."""
    report = _import(memory, Source(None, text, skip_invalid), dry_run=dry_run)
    if report.steps and not dry_run:
        memory.mark_changed()
    return report


def _import(memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
    known = importers()
    for importer in known.values():
        if importer.recognises(source):
            return importer.import_(memory, source, dry_run=dry_run)
    if source.is_folder or not source.texts:
        programs = ", ".join(("memoriter", *sorted(importer.program for importer in known.values())))
        raise SourceError(
            f"{source.place} is not an export of one of: {programs}. Nothing was imported. "
            "To search a folder of Markdown files where it is, add it to `files.extra_paths`."
        )
    return report_of(
        memory, "entries", source, (), import_statements(memory, source, dry_run=dry_run), dry_run=dry_run
    )


def import_statements(
    memory: Memory, source: Source, *, dry_run: bool, texts: Iterable[str] | None = None
) -> Imported:
    """Import the single statements of a source as entries, or those of ``texts`` that were made of it."""
    total = Imported(0, 0)
    for text in source.texts if texts is None else texts:
        found = memory.entries.import_(text, dry_run=dry_run, skip_invalid=source.skip_invalid)
        total = Imported(
            total.added + found.added,
            total.already + found.already,
            total.refused + found.refused,
            total.entries + found.entries,
            total.preview or found.preview,
            total.invalid + found.invalid,
        )
    return total


def undo_sessions(memory: Memory, sessions: Mapping[str, str]) -> tuple[str, ...]:
    """Remove imported transcripts that have not changed since, and return their paths.

    ``sessions`` are paths in the folder of the sessions, and the digests of the transcripts as they were imported.
    """
    root = memory.settings.agent_folder / "sessions"
    known = {path: digest for path, digest in sessions.items() if _SESSION_PATH.fullmatch(path)}
    removed = tuple(path for path, digest in known.items() if remove_copy(root, root / path, digest))
    if removed:
        memory.mark_changed()
    return removed


def report_of(
    memory: Memory,
    program: str,
    source: Source,
    steps: Iterable[ImportStep],
    entries: Imported,
    remarks: Iterable[str] = (),
    *,
    dry_run: bool,
) -> ImportReport:
    """Return the report of an import."""
    steps, agent = tuple(steps), memory.settings.agent
    turns = count_turns(memory, () if dry_run else steps)
    if reasons := ", ".join(f"{turns[name]} {why}" for name, why in WITHHELD.items() if turns[name]):
        remarks = (*remarks, f"Of {turns['total']} turns, these are never added to a prompt: {reasons}.")
    return ImportReport(program, source.place, agent, steps, entries, tuple(remarks), dry_run, turns=turns)


def count_turns(memory: Memory, steps: Iterable[ImportStep]) -> Counter[str]:
    """Count the turns of sessions that were written (`total`), and those that never enter a prompt, by the reason."""
    rules, counts = parts_of(memory).trust_rules, Counter[str]()
    for step in steps:
        if step.kind == "session" and step.action in ("new", "grown"):
            with step.target.open("rb") as file:
                for message, turns in turns_of_file(file, rules):
                    counts["total"] += bool(turns)
                    if any(turn.trust == "untrusted" for turn in turns):
                        why = "long" if width(message.text) > MAX_OWN_WIDTH else "pasted"
                        why = "others" if is_by_stranger(message, rules) else why
                        counts["relayed" if message.role == "assistant" else why] += 1
    return counts


def _read_text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_TEXT_BYTES:
            raise SourceError(f"{file} is larger than {MAX_TEXT_BYTES >> 20} MB. Nothing was imported.")
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{file} is not UTF-8 text (byte {error.start}). Nothing was imported.") from error


def _is_conversations(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("conversations") and name.endswith(".json")


def _lists(found: Any, names: Iterable[str]) -> list[list[Any]]:
    if isinstance(found, list):
        return [found]
    return [found[name] for name in names if isinstance(found, dict) and isinstance(found.get(name), list)]


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None  # an export of memoriter has one object per line


# ---- conversations --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation."""

    id: str
    role: Literal["user", "assistant", "tool"]
    text: str
    #: Seconds since the epoch.
    at: float
    #: The name of a tool. What the assistant says after text from outside is not its own.
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation, as it is written to a transcript."""

    id: str
    title: str
    messages: tuple[Said, ...]

    def transcript(self) -> SealedTranscript:
        """Return the conversation as a transcript. The same conversation always gives the same bytes."""
        times = [message.at for message in self.messages if message.at]
        header = {
            "type": "session",
            "id": self.id,
            "title": self.title,
            "timestamp": iso_time(min(times, default=0)),
        }
        lines = [
            {
                "type": "message",
                "id": message.id,
                "timestamp": iso_time(message.at),
                "sessionId": self.id,
                "message": {"role": message.role, "content": message.text}
                | ({"name": message.tool} if message.tool else {}),
            }
            for message in self.messages
        ]
        return SealedTranscript([header, *lines], int(max(times, default=0) * 1e9))


def iso_time(at: float) -> str:
    """Return a time in seconds since the epoch as ISO 8601, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat()


def seconds(value: object) -> float:
    """Return seconds since the epoch from a number or an ISO text; 0 if there is no time that has a date."""
    at = seconds_of(value, 0.0)
    return at if 0 <= at < MAX_TIME else 0.0


@dataclass(frozen=True, slots=True)
class ConversationImporter:
    """Imports conversations as sessions from `conversations.json`, or an archive or folder with it."""

    program: str
    #: The field that each record of such a file has.
    field: str
    #: Returns a conversation, or None if nothing was said in it. It may fail for a damaged one, which is left out.
    read: Callable[[Mapping[str, Any]], Conversation | None]
    #: Yields what the program had stored of a conversation in its own memory.
    saved: Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]] = lambda _: ()

    def recognises(self, source: Source) -> bool:
        """Return whether every record has the field."""
        return bool(source.lists_with(self.field))

    def import_(self, memory: Memory, source: Source, *, dry_run: bool) -> ImportReport:
        """Import the conversations and the statements."""
        records = [record for records in source.lists_with(self.field) for record in records]
        found, damaged, entries = list[Conversation](), 0, Imported(0, 0)
        if saved := [statement for record in records for statement in self.saved(record)]:
            entries = import_statements(memory, source, dry_run=dry_run, texts=[json.dumps(saved)])
        for record in records:
            try:
                found += filter(None, [self.read(record)])
            except (AttributeError, TypeError, ValueError, OverflowError):  # a field has another type
                damaged += 1
        steps = write_sessions(memory, source, self.program.lower(), found, dry_run=dry_run)
        remarks = [f"Damaged conversations that were left out: {damaged}."] if damaged else []
        if others := [name for name in json_files(source.path) if not _is_conversations(name)]:
            remarks.append(f"Not imported, because they are not conversations: {', '.join(others)}.")
        report = report_of(memory, self.program, source, steps, entries, tuple(remarks), dry_run=dry_run)
        return replace(report, damaged=damaged)


def write_sessions(
    memory: Memory, source: Source, program: str, found: Iterable[Conversation], *, dry_run: bool
) -> Iterator[ImportStep]:
    """Write conversations to the folder of the sessions, and yield what was done with each."""
    sessions = memory.settings.agent_folder / "sessions"
    for conversation in found:
        transcript = conversation.transcript()
        name = f"{re.sub(r'[^A-Za-z0-9_-]', '-', conversation.id)[:100]}.jsonl"
        step = plan_copy("session", source.place, sessions, program, name, transcript=transcript)
        yield step if dry_run else copy_file(step, sessions, transcript)
