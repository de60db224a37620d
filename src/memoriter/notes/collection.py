"""The notes and transcripts of one agent, as people and programs look through them.

Files are listed from disk, so every search engine shows the same files. Details from the index are added if there is
one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from memoriter.errors import MemoriterError, NotFound, WriteError
from memoriter.files import edits, shared
from memoriter.notes.chunking import PENDING, trust_of_note
from memoriter.notes.editing import NoteEditor
from memoriter.notes.notebook import Notebook
from memoriter.records import Collection, Excerpt, FoundFile, NoteChunk, NoteFile, NoteLine, Source, Trust
from memoriter.sentences import sentence
from memoriter.text import estimate_tokens
from memoriter.text.markdown import front_matter_fields, front_matter_lines
from memoriter.text.redaction import redact
from memoriter.text.tokens import shorten_title, split_lines
from memoriter.text.words import normal_form

if TYPE_CHECKING:
    from memoriter.notes.workspace import Workspace
    from memoriter.sessions.transcripts import Transcripts
    from memoriter.store import Index
    from memoriter.store.documents import DocumentSummary

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

#: Width of the title of a conversation: 20 Chinese characters, or 80 letters.
TITLE_WIDTH = 80
_SPEAKER = re.compile(r"^(?:User|Assistant): ")
#: Newest transcripts that are opened to find a session whose file has another name.
MAX_OPENED_TRANSCRIPTS = 200


@dataclass(frozen=True, slots=True)
class NoteList:
    """Files of the memory, by path, notes before transcripts."""

    files: tuple[NoteFile, ...]
    #: Number of files that match, including those beyond the limit.
    total: int

    def __iter__(self) -> Iterator[NoteFile]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


class Quote(NamedTuple):
    """The place of a quotation in a transcript."""

    path: str
    #: None if the transcript does not contain the text.
    line: int | None


def forward(
    part: Callable[[Any], S], method: Callable[Concatenate[S, P], T]
) -> Callable[Concatenate[Any, P], T]:
    """Return a method of a part as a method of the whole, with the same signature."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(part(self), *args, **kwargs)

    return call


class Notes:
    """The notes and transcripts of one agent."""

    def __init__(
        self,
        workspace: Workspace,
        sessions: Transcripts | None,
        index: Callable[[], Index | None],
        notebook: Callable[[], Notebook],
        editor: NoteEditor,
    ) -> None:
        self._workspace = workspace
        self._sessions = sessions
        self._index = index
        self._notebook = notebook
        #: Writes, moves and removes whole notes.
        self._editor = editor

    # ---- listing ----------------------------------------------------------------------------------------------

    def list(self, *, source: Source | None = None, after: str = "", limit: int | None = None) -> NoteList:
        """List notes and transcripts, or only one ``source`` ("memory" or "sessions").

        ``after`` skips paths up to and including this one, to continue an earlier list of the same source.
        """
        notes = self._notes() if source in (None, "memory") else ()
        transcripts = self._transcripts() if source in (None, "sessions") else ()
        files = [file for file in (*notes, *transcripts) if file.path > after]
        return NoteList(self._describe(files[:limit]), len(files))

    def paths(self) -> tuple[str, ...]:
        """Return the paths of all notes, without transcripts."""
        return tuple(file.path for file in self._notes())

    def collections(self) -> tuple[Collection, ...]:
        """Return the collections, each with the number of its notes."""
        return self._workspace.collections()

    def get(self, path: str) -> NoteFile:
        """Describe one note or transcript. Raises `NotFound`."""
        found = self._workspace.find(path) or (self._sessions.find(path) if self._sessions else None)
        if found is None:
            raise NotFound(f"{path[:200]!r} is not a note or a transcript.")
        return self._describe([found])[0]

    def _notes(self) -> tuple[FoundFile, ...]:
        return self._workspace.scan().files

    def _transcripts(self) -> tuple[FoundFile, ...]:
        return self._sessions.scan().files if self._sessions else ()

    def _describe(self, files: Sequence[FoundFile]) -> tuple[NoteFile, ...]:
        indexed = self._summaries(self._index(), files)
        return tuple(self._description(file, indexed.get(file.path)) for file in files)

    def _description(self, file: FoundFile, indexed: DocumentSummary | None) -> NoteFile:
        return NoteFile(
            file.path,
            file.source,
            file.size,
            file.mtime_ns / 1e9,
            indexed.chunks if indexed else 0,
            self._trust(file, indexed),
            indexed.date if indexed else None,
            _first_words(indexed.begins) if indexed else "",
        )

    def _summaries(self, index: Index | None, files: Sequence[FoundFile]) -> dict[str, DocumentSummary]:
        paths = [file.path for file in files]
        return index.healing(lambda: index.summaries(paths)) if index else {}

    def _trust(self, found: FoundFile, indexed: DocumentSummary | None) -> Trust:
        """Return the trust of the file as it is now: from the index if that is current, else from the file."""
        if indexed and (indexed.mtime_ns, indexed.size) == (found.mtime_ns, found.size):
            return indexed.trust
        if found.source == "sessions":
            # A transcript only grows. If its size changed, the new part may contain text from outside.
            return indexed.trust if indexed and indexed.size == found.size else "untrusted"
        try:
            document = self._workspace.read(found)
            return trust_of_note(split_lines(document.text), document.trust)
        except (MemoriterError, OSError):
            return "untrusted"

    # ---- reading and writing ----------------------------------------------------------------------------------

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Excerpt:
        """Read some lines of a note or transcript, counted from 1. Raises `NotFound` or `PathRefused`."""
        if self._sessions and path.endswith(".jsonl"):
            return self._sessions.excerpt(path, start, lines)
        return self._workspace.excerpt(path, start, lines)

    def chunks(self, path: str, *, masked: bool = False) -> tuple[NoteChunk, ...]:
        """Return the chunks of a file in line order, for an agent ``masked``: without secrets in headings.

        The result is empty until the file is indexed.
        """
        self.get(path)
        index = self._index()
        stored = index.healing(lambda: index.stored_of(path)) if index else []
        return tuple(
            NoteChunk(
                row.chunk.id,
                row.chunk.start_line,
                row.chunk.end_line,
                tuple(map(redact, row.chunk.headings)) if masked else row.chunk.headings,
                row.chunk.date,
                row.chunk.trust,
                estimate_tokens(row.chunk.text),
                bool(row.model),
            )
            for row in stored
        )

    save = forward(lambda notes: notes._notebook(), Notebook.save)
    text = forward(lambda notes: notes._editor, NoteEditor.text)
    put = forward(lambda notes: notes._editor, NoteEditor.put)
    move = forward(lambda notes: notes._editor, NoteEditor.move)
    remove = forward(lambda notes: notes._editor, NoteEditor.remove)

    def pending(self) -> tuple[str, ...]:
        """Return the paths of notes that wait for the owner's approval."""
        return tuple(file.path for file in self._notes() if _is_pending(_head(file.absolute)))

    def approve(self, path: str) -> None:
        """Approve a note of an agent: it loses its mark and may enter a prompt. Raises `NotFound`."""
        found = self._workspace.find(path)
        if found is None or not _is_pending(_head(found.absolute)):
            raise NotFound(sentence("note.not_pending", path=path[:200]))
        edits.update(found.absolute, lambda text: _PENDING_LINE.sub("", text or "", count=1))

    def mark_relayed(self, path: str) -> None:
        """Lower the trust of an agent's note to `relayed`: the agent had read text from outside."""
        found = self._workspace.find(path)
        if found is not None and front_matter_fields(_head(found.absolute)).get("trust") == "agent":
            edits.update(
                found.absolute, lambda text: _AGENT_LINE.sub('trust: "relayed"', text or "", count=1)
            )

    def erase_lines(
        self, texts: Iterable[str], *, trust: Trust = "owner", dry_run: bool = False
    ) -> ErasedLines:
        """Erase the lines of daily logs that say exactly one of the texts.

        A line that says more is a note of its own and stays. An agent erases lines only from logs of agents; the result
        names the owner's logs that contain the text. A log that cannot be read or written does not stop the others.
        """
        root = self._workspace.root.resolve()
        folder = root / self._workspace.folder
        forms = {form for form in map(normal_form, texts) if form}
        shared.refresh(folder)
        for inner in (folder.parent, folder, *folder.rglob("*")):
            if inner.is_dir() and not dry_run:
                edits.sweep(inner)  # a killed writer may have left the whole note
        lines, owners, failed = list[NoteLine](), list[str](), list[str]()
        for path in sorted(path for path in folder.glob("*.md") if _LOG_NAME.fullmatch(path.name)):
            try:
                found = _erase_from(path, forms, trust, dry_run=dry_run)
                lines += [NoteLine(path.relative_to(root).as_posix(), number, text) for number, text in found]
            except _OwnersLog:
                owners.append(path.name)
            except (WriteError, OSError):
                failed.append(path.name)
        left = {"forget.owner_logs": owners, "forget.unreadable_logs": failed}
        return ErasedLines(
            tuple(lines),
            tuple(sentence(code, files=", ".join(names)) for code, names in left.items() if names),
        )

    # ---- sessions ---------------------------------------------------------------------------------------------

    def find_quote(self, session: str, text: str) -> Quote | None:
        """Find the transcript of a session and the line that contains a text. Return None without a transcript."""
        found = self._transcript(session)
        if found is None or self._sessions is None:
            return None
        wanted = normal_form(text)
        try:
            turns = self._sessions.turns(found)
            line = next((turn.line for turn in turns if wanted in normal_form(turn.text)), None)
        except (MemoriterError, OSError):  # the file was removed or cannot be read
            return None
        return Quote(found.path, line)

    def _transcript(self, session: str) -> FoundFile | None:
        """Find a transcript by its file name, in the index, or by the first lines of files that are not indexed."""
        if self._sessions is None:
            return None
        if found := self._sessions.find(f"sessions/{session}.jsonl"):
            return found
        index = self._index()
        paths = index.healing(lambda: index.paths_of(session)) if index else ()
        indexed = (self._sessions.find(path) for path in paths)
        if found := next(filter(None, indexed), None):
            return found
        files = sorted(self._transcripts(), key=lambda file: -file.mtime_ns)
        if named := next((file for file in files if file.absolute.stem == session), None):
            return named
        newest = files[:MAX_OPENED_TRANSCRIPTS]
        known = self._summaries(index, newest)
        return next((file for file in newest if file.path not in known and self._is_of(file, session)), None)

    def _is_of(self, found: FoundFile, session: str) -> bool:
        assert self._sessions is not None
        try:
            return self._sessions.session(found) == session
        except (MemoriterError, OSError):
            return False


# ---- erasing lines ------------------------------------------------------------------------------------------------

_LOG_NAME = re.compile(r"\d{4}-\d{2}-\d{2}(?:-(?:agent|owner|pending)(?:-\d{1,2})?)?\.md")
#: The list mark and the time before the words of a line.
_LINE_START = re.compile(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)?(?:\d{1,2}:\d{2}(?::\d{2})?\s+)?")


_PENDING_LINE = re.compile(rf"(?m)^approval:[ \t]*[\"']?{PENDING}[\"']?[ \t]*\r?\n")
_AGENT_LINE = re.compile(r"(?m)^trust:[ \t]*[\"']?agent[\"']?[ \t]*$")
#: Bytes at the start of a note that hold its front matter.
_HEAD_BYTES = 8_192


def _head(file: Path) -> list[str]:
    try:
        with file.open("rb") as opened:
            lines = split_lines(opened.read(_HEAD_BYTES).decode("utf-8", "replace"))
    except OSError:
        return []
    return list(lines[: front_matter_lines(lines)])


def _is_pending(head: Sequence[str]) -> bool:
    return front_matter_fields(head).get("approval", "") == PENDING


class ErasedLines(NamedTuple):
    """The result of `Notes.erase_lines`."""

    #: The lines that were erased, or would be.
    lines: tuple[NoteLine, ...]
    #: Descriptions of what was not erased.
    left: tuple[str, ...]


class _OwnersLog(Exception):
    """An agent may not change this log."""


def _erase_from(path: Path, forms: set[str], trust: Trust, *, dry_run: bool) -> list[tuple[int, str]]:
    """Return the numbers and texts of the erased lines. A log without the texts is not opened for writing."""
    text = edits.read(path) or ""
    lines = text.splitlines()
    found = [(at, line.strip()) for at, line in enumerate(lines, 1) if _says(line, forms)]
    if found and trust != "owner" and trust_of_note(split_lines(text)) == "owner":
        raise _OwnersLog
    if found and not dry_run:
        edits.update(path, lambda old: _without(old, forms))
        shared.erase_history(path)
    return found


def _says(line: str, forms: set[str]) -> bool:
    return normal_form(_LINE_START.sub("", line)) in forms


def _without(text: str | None, forms: set[str]) -> str | None:
    if text is None:
        return None
    return "".join(line for line in text.splitlines(keepends=True) if not _says(line, forms))


def _first_words(passage: str) -> str:
    """Return the title of a conversation: the start of what was said first."""
    said = " ".join(_SPEAKER.sub("", passage).split("\n\n", 1)[0].split())
    title = shorten_title(said, TITLE_WIDTH)
    return title if title == said else f"{title.rstrip()}…"
