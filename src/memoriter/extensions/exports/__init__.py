"""Import the exports of other programs: ChatGPT, Claude, claude-mem, basic-memory, mem0.

The format is recognised by the content. Conversations become sessions, Markdown becomes notes, and single statements
become entries. Each keeps the id it has in the other program, so a repeated import adds only what is new.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter.errors import NotFound, SourceError, WriteError
from memoriter.extensions.exports.claude_mem import ClaudeMem
from memoriter.extensions.exports.conversations import (
    Conversation,
    is_chatgpt,
    is_claude,
    read_chatgpt,
    read_claude,
)
from memoriter.importing import ImportReport, ImportStep, copy_file, plan_copy, remove_copy
from memoriter.records import Imported
from memoriter.text.encoding import slug

if TYPE_CHECKING:
    from memoriter.memory import Memory

SQLITE_MAGIC = b"SQLite format 3\0"
#: Maximum number of notes.
MAX_NOTES = 50_000
#: A transcript of another program: its name, and the id of the conversation.
_SESSION_PATH = re.compile(r"[a-z0-9-]+/[A-Za-z0-9_-]+\.jsonl")
KNOWN = "memoriter, ChatGPT, Claude, mem0, basic-memory or claude-mem"


def import_export(memory: Memory, source: Path | str, *, dry_run: bool = False) -> ImportReport:
    """Import a file or folder that another program has exported. Existing data is kept.

    Raises `SourceError` if the format is unknown, and `WriteError` if it contains nothing to import.
    """
    report = _import(memory, Path(source).expanduser().absolute(), dry_run=dry_run)
    if not report.steps and report.entries == Imported(0, 0):
        why = " ".join((f"{source} ({report.program}) contains no memories.", *report.remarks))
        raise WriteError(f"Nothing was imported: {why}")
    if not dry_run:
        memory.mark_changed()
    return report


def import_text(memory: Memory, text: str, *, dry_run: bool = False) -> ImportReport:
    """Import the content of a file that another program has exported, as `import_export` does with the file."""
    report = _import_json(memory, Path("import"), [text], dry_run=dry_run)
    if report.steps and not dry_run:
        memory.mark_changed()
    return report


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


def _import(memory: Memory, source: Path, *, dry_run: bool) -> ImportReport:
    if not source.exists():
        raise NotFound(f"{source} does not exist.")
    if source.is_dir():
        return _import_folder(memory, source, dry_run=dry_run)
    with source.open("rb") as file:
        start = file.read(len(SQLITE_MAGIC))
    if start == SQLITE_MAGIC:
        return _import_claude_mem(memory, source, dry_run=dry_run)
    texts = _zipped(source) if start.startswith(b"PK\x03\x04") else [_read_text(source)]
    return _import_json(memory, source, texts, dry_run=dry_run)


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{file} is not UTF-8 text (byte {error.start}). Nothing was imported.") from error


def _zipped(source: Path) -> list[str]:
    """Return the conversations in an archive as ChatGPT and Claude send it."""
    try:
        with zipfile.ZipFile(source) as archive:
            names = [name for name in archive.namelist() if _is_conversations(Path(name).name)]
            texts = [archive.read(name).decode("utf-8-sig") for name in sorted(names)]
    except (zipfile.BadZipFile, zlib.error, RuntimeError, UnicodeDecodeError, OSError) as error:
        # RuntimeError: the archive has a password or an unknown compression.
        raise SourceError(f"{source} cannot be read: {error}. Nothing was imported.") from error
    if not texts:
        raise SourceError(f"{source} contains no conversations.json. Nothing was imported.")
    return texts


def _is_conversations(name: str) -> bool:
    return name.startswith("conversations") and name.endswith(".json")


def _import_folder(memory: Memory, source: Path, *, dry_run: bool) -> ImportReport:
    texts = [_read_text(path) for path in sorted(source.glob("conversations*.json"))]
    if texts:
        return _import_json(memory, source, texts, dry_run=dry_run)
    if (source / "claude-mem.db").is_file():
        return _import_claude_mem(memory, source / "claude-mem.db", dry_run=dry_run)
    return _import_basic_memory(memory, source, dry_run=dry_run)


# ---- JSON -----------------------------------------------------------------------------------------------------


def _import_json(memory: Memory, source: Path, texts: Iterable[str], *, dry_run: bool) -> ImportReport:
    programs: tuple[
        tuple[str, Callable[[object], bool], Callable[[Mapping[str, Any]], Conversation | None]], ...
    ]
    programs = (("ChatGPT", is_chatgpt, read_chatgpt), ("Claude", is_claude, read_claude))
    steps, entries, name, damaged = list[ImportStep](), Imported(0, 0), "", 0
    for text in texts:
        records = _parse(text)
        for program, recognises, read in programs:
            if recognises(records):
                name = program
                found, unreadable = _read_all(read, records)
                damaged += unreadable
                steps += _write_sessions(memory, source, slug(program), found, dry_run=dry_run)
        if not is_claude(records):  # ChatGPT's export also contains what it has stored in its own memory
            imported = memory.entries.import_(text, dry_run=dry_run)
            entries = Imported(
                entries.added + imported.added,
                entries.already + imported.already,
                entries.refused + imported.refused,
                entries.entries + imported.entries,
                entries.preview or imported.preview,
            )
            name = name or ("mem0" if '"memory"' in text[:100_000] else "entries")
    remarks = (f"Damaged conversations that were left out: {damaged}.",) if damaged else ()
    report = _report(memory, name, source, steps, entries, remarks, dry_run=dry_run)
    return replace(report, damaged=damaged)


def _read_all(
    read: Callable[[Mapping[str, Any]], Conversation | None], records: Iterable[Mapping[str, Any]]
) -> tuple[list[Conversation], int]:
    """Return the conversations in which something was said, and the number of damaged ones."""
    found, damaged = list[Conversation](), 0
    for record in records:
        try:
            conversation = read(record)
        except (AttributeError, TypeError, ValueError, OverflowError):  # a field has another type
            damaged += 1
        else:
            found += [conversation] if conversation else []
    return found, damaged


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None  # an export of memoriter has one object per line


def _write_sessions(
    memory: Memory, source: Path, program: str, found: Iterable[Conversation], *, dry_run: bool
) -> Iterator[ImportStep]:
    sessions = memory.settings.agent_folder / "sessions"
    for conversation in found:
        transcript = conversation.transcript()
        name = f"{re.sub(r'[^A-Za-z0-9_-]', '-', conversation.id)[:100]}.jsonl"
        step = plan_copy("session", source, sessions, program, name, transcript=transcript)
        yield step if dry_run else copy_file(step, sessions, transcript)


# ---- claude-mem -----------------------------------------------------------------------------------------------


def _import_claude_mem(memory: Memory, source: Path, *, dry_run: bool) -> ImportReport:
    with ClaudeMem.open(source) as database:
        steps = list(_write_sessions(memory, source, "claude-mem", database.sessions(), dry_run=dry_run))
        records = list(database.entries())
    text = json.dumps(records, ensure_ascii=False)
    entries = memory.entries.import_(text, trust="agent", dry_run=dry_run) if records else Imported(0, 0)
    return _report(memory, "claude-mem", source, steps, entries, dry_run=dry_run)


# ---- basic-memory ---------------------------------------------------------------------------------------------

NOTES_FOLDER = ("imports", "basic-memory")
_PERMALINK = re.compile(r"\A---\n(?:(?!---\n).*\n){0,100}?permalink:\s*\S", re.IGNORECASE)
_OBSERVATION = re.compile(r"^\s*[-*] \[(?![ xX-]\])[^\[\]\n]+\] \S", re.MULTILINE)
_RELATION = re.compile(r"^\s*[-*] (?:[^\[\]\n]+ )?\[\[[^\[\]\n]+\]\]", re.MULTILINE)


def _import_basic_memory(memory: Memory, source: Path, *, dry_run: bool) -> ImportReport:
    """Copy the notes. Their observations and relations are lines of Markdown, which a search finds as they are."""
    files = [path for path in sorted(source.rglob("*.md")) if path.is_file() and not path.is_symlink()]
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in files[:MAX_NOTES]}
    if not any(_PERMALINK.match(text) for text in texts.values()):
        raise SourceError(
            f"{source} is not an export of {KNOWN}. Nothing was imported. "
            "To search a folder of Markdown files where it is, add it to `files.extra_paths`."
        )
    workspace, found, steps = memory.settings.workspace, Counter[str](), list[ImportStep]()
    folder = Path(memory.settings.files.folder, *NOTES_FOLDER).parts
    for path, text in texts.items():
        step = plan_copy("note", path, workspace, *folder, *path.relative_to(source).parts)
        steps.append(step if dry_run else copy_file(step, workspace))
        found["observations"] += len(_OBSERVATION.findall(text))
        found["relations"] += len(_RELATION.findall(text))
    counts = ", ".join(f"{number} {name}" for name, number in found.items())
    remarks = (f"The notes contain {counts}.",)
    return _report(memory, "basic-memory", source, steps, Imported(0, 0), remarks, dry_run=dry_run)


def _report(
    memory: Memory,
    program: str,
    source: Path,
    steps: Iterable[ImportStep],
    entries: Imported,
    remarks: tuple[str, ...] = (),
    *,
    dry_run: bool,
) -> ImportReport:
    return ImportReport(program, source, memory.settings.agent, tuple(steps), entries, remarks, dry_run)
