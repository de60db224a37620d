"""Notes and transcripts: `memory_save` for agents, and the `notes.*` operations."""

from __future__ import annotations

import re

from pydantic import AliasChoices, Field

from memoriter.config.fields import described
from memoriter.errors import BadArgument, WriteError
from memoriter.memory import Memory
from memoriter.records import Saved, Source, Trust
from memoriter.sentences import sentence
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Arguments, Call, Count, Shape, omitted_if_none, operation

#: Files that `notes.tree` lists.
MAX_FILES = 5_000
#: Chunks that `notes.chunks` lists.
MAX_CHUNKS = 2_000
#: Lines that `notes.get` reads by default.
GET_LINES = 400
#: Notes that `notes.waiting` lists.
MAX_WAITING = 200
#: Characters in one answer of `notes.get`.
MAX_CHARS = 200_000


# ---- memory_save --------------------------------------------------------------------------------------------------


class SaveArguments(Arguments):
    content: str = Field(description="Sentences that are clear on their own.")
    title: str = described("", "A few words that name it.")
    tags: list[str] = described([], "Words to find it by.")
    category: str | None = described(None, "A topic, such as `people`.")


class SavedJson(Shape):
    """The place of a saved note."""

    saved: bool = False
    path: str = ""
    start_line: Count = 0
    end_line: Count = 0
    already: bool = described(False, "Whether the note contained it before, so nothing was written.")
    note: str | None = described(None, "What a person should know, such as that secrets were removed.")

    @classmethod
    def of(cls, saved: Saved | None) -> SavedJson:
        """Return where a note was saved; None means that there was nothing to save."""
        return cls.model_validate(saved).model_copy(update={"saved": True}) if saved else cls()


@operation(
    "memory_save",
    hints={
        "en": "save what must outlast this conversation: decisions, preferences, facts, when they come up.",
        "zh": "出现决定、偏好或重要事实时，及时保存下来。",
    },
    read_only=False,
)
def memory_save(call: Call[SaveArguments]) -> SavedJson:
    """Save a note for people to read: when the user asks to remember something, or when a decision or lasting fact
    comes up. With a category it goes to memory/<category>/<title>.md, otherwise to the day's log.
    """
    asked = call.arguments
    if call.memory.has_entries and call.memory.entries.says_forgotten(asked.content):
        raise WriteError(f"Not saved: {sentence('entry.forgotten_by_owner')}.")
    saved = call.memory.save(
        asked.content, asked.title, asked.tags, asked.category, trust="agent", made_by=call.source
    )
    return SavedJson.of(saved)


# ---- operations ---------------------------------------------------------------------------------------------------


class FileJson(Shape):
    """A note or a transcript."""

    path: str
    source: Source
    size: Count
    mtime: float
    chunks: Count
    trust: Trust
    date: str | None = omitted_if_none("The day that it is about.")
    title: str = described("", "The first words of a conversation. Empty for notes.")


class TreeResult(Shape):
    """All notes and transcripts."""

    files: list[FileJson] = Field(default=[])
    total: Count = 0
    truncated: bool = False


class PathArguments(Arguments):
    """Arguments of an operation on one file."""

    path: str = Field(max_length=4_096, description="The path of the file, as in `notes.tree` or a hit.")


class ReadArguments(PathArguments):
    from_: int = described(
        1,
        "The first line to read, counted from 1.",
        ge=1,
        le=1_000_000_000,
        validation_alias=AliasChoices("from", "from_"),
    )
    lines: int = described(GET_LINES, "Number of lines to read.", ge=1, le=5_000)


class PutArguments(PathArguments):
    text: str | None = described(
        None, "The whole new text. Without it, the text stays.", max_length=2_000_000
    )
    version: str | None = described(
        None, "The version that was read. Without it, the note must not exist yet.", max_length=64
    )
    to: str | None = described(None, "A new path: moves or renames the note.", max_length=4_096)
    remove: bool = described(False, "Remove the note.")


class NoteTextJson(Shape):
    """The whole text of a note."""

    path: str = ""
    text: str = ""
    version: str | None = described(
        None, "Changes with the text. Send it with `notes.put`. None: it was removed."
    )


class ReadResult(Shape):
    """Lines of one file."""

    path: str = ""
    text: str = ""
    from_: Count = Field(default=1, serialization_alias="from")
    total_lines: Count = 0
    next_from: Count | None = None
    source: Source = "memory"
    mtime: float | None = None
    trust: Trust | None = None


#: The field of the front matter, and not a line of the text.
_MADE_BY = re.compile(r'---\n(?:(?!---).*\n)*?made_by: "(.*)"\n')


class WaitingNoteJson(NoteTextJson):
    """A note that waits for approval."""

    mtime: float | None = None
    source: str = described("tool", "Who wrote it, such as `tool:NAME` with the name of a token.")

    @classmethod
    def of(cls, memory: Memory, path: str) -> WaitingNoteJson:
        """Return the text and the time of a note."""
        shown = cls.model_validate(memory.notes.text(path))
        made = _MADE_BY.match(shown.text)
        source = made[1] if made else "tool"
        return shown.model_copy(update={"mtime": memory.notes.get(path).mtime, "source": source})


class WaitingResult(Shape):
    """The notes of agents that wait for the owner's approval."""

    notes: list[WaitingNoteJson] = Field(default=[])
    total: Count = 0
    truncated: bool = False


class ApproveNotesArguments(Arguments):
    paths: list[str] = Field(max_length=MAX_WAITING, description="The paths of the notes.")


class ApprovedNotesResult(Shape):
    """The notes that were approved."""

    approved: list[NoteTextJson] = Field(default=[])


class ChunkJson(Shape):
    """A chunk without its text."""

    id: str
    start_line: Count
    end_line: Count
    headings: list[str]
    date: str | None
    trust: Trust
    tokens: Count
    embedded: bool


class ChunksResult(Shape):
    """The chunks of one file."""

    chunks: list[ChunkJson] = Field(default=[])
    total: Count = 0
    truncated: bool = False


@operation(
    "notes.tree",
    description=f"List the notes and transcripts by path, notes first. Returns at most {MAX_FILES:,} files.",
)
def _tree(call: Call[NoArguments]) -> TreeResult:
    found = call.memory.notes.list(limit=MAX_FILES)
    listed = [FileJson.model_validate(file) for file in found]
    return TreeResult(files=listed, total=found.total, truncated=found.total > len(found))


@operation("notes.get")
def _get(call: Call[ReadArguments]) -> ReadResult:
    """Read some lines of one note or transcript."""
    asked = call.arguments
    excerpt = call.memory.read(asked.path, asked.from_, asked.lines, masked=call.masked)
    start = excerpt.start_line  # a citation names its first line
    file = None if excerpt.path.startswith("entries/") else call.memory.notes.get(excerpt.path)
    shown, used = list[str](), 0
    for line in excerpt.text.split("\n") if excerpt.end_line >= start else ():
        used += len(line) + 1
        if used > MAX_CHARS and shown:
            break
        shown.append(line[:MAX_CHARS])
    following = start + len(shown)
    return ReadResult(
        path=excerpt.path,
        text="\n".join(shown),
        from_=start,
        total_lines=excerpt.total_lines,
        next_from=following if shown and following <= excerpt.total_lines else None,
        source=file.source if file else "entries",
        mtime=file.mtime if file else None,
        trust=excerpt.trust,
    )


@operation("notes.text", owner_only=True)
def _text(call: Call[PathArguments]) -> NoteTextJson:
    """Read one note as a whole, unchanged, with the version that `notes.put` needs."""
    return NoteTextJson.model_validate(call.memory.notes.text(call.arguments.path))


@operation("notes.put", read_only=False, destructive=True, owner_only=True)
def _put(call: Call[PutArguments]) -> NoteTextJson:
    """Write, create, move or remove a note. Nothing is changed if the note has another version than the one that was
    read. The result has the text, so that a removed note can be restored.
    """
    asked, notes = call.arguments, call.memory.notes
    if sum((asked.text is not None, asked.to is not None, asked.remove)) != 1:
        raise BadArgument("Give exactly one of `text`, `to` and `remove`.")
    if asked.text is not None:
        changed = notes.put(asked.path, asked.text, version=asked.version)
    elif asked.version is None:
        raise BadArgument("Give the `version` of the note that was read.")
    elif asked.to is not None:
        changed = notes.move(asked.path, asked.to, version=asked.version)
    else:
        changed = notes.remove(asked.path, version=asked.version)
    return NoteTextJson.model_validate(changed)


@operation(
    "notes.waiting",
    description="List the notes of agents that wait for the owner's approval, with their texts. To reject one, "
    f"remove it with `notes.put`. Returns at most {MAX_WAITING} notes.",
    owner_only=True,
)
def _waiting(call: Call[NoArguments]) -> WaitingResult:
    paths = call.memory.notes.pending()
    shown = [WaitingNoteJson.of(call.memory, path) for path in paths[:MAX_WAITING]]
    return WaitingResult(notes=shown, total=len(paths), truncated=len(paths) > len(shown))


@operation("notes.approve", read_only=False, owner_only=True)
def _approve(call: Call[ApproveNotesArguments]) -> ApprovedNotesResult:
    """Approve notes of agents: they are trusted as an agent's words and may enter a prompt."""
    notes = call.memory.notes
    for path in call.arguments.paths:
        notes.approve(path)
    return ApprovedNotesResult(
        approved=[NoteTextJson.model_validate(notes.text(path)) for path in call.arguments.paths]
    )


@operation("notes.chunks")
def _chunks(call: Call[PathArguments]) -> ChunksResult:
    """List the chunks of one note or transcript, without their text. Search returns chunks."""
    found = call.memory.notes.chunks(call.arguments.path, masked=call.masked)
    listed = [ChunkJson.model_validate(chunk) for chunk in found[:MAX_CHUNKS]]
    return ChunksResult(chunks=listed, total=len(found), truncated=len(found) > len(listed))


OPERATIONS = (_tree, _get, _text, _put, _waiting, _approve, _chunks)
