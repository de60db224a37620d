"""Operations by which the owner exports entries, imports the exports of other programs, and undoes an import."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from pydantic import Field

from memoriter.config.fields import described
from memoriter.errors import WriteError
from memoriter.extension import offers
from memoriter.extensions.importing import import_text, undo_sessions
from memoriter.hosts import ImportReport
from memoriter.sentences import sentence
from memoriter.tools.entries import FilterArguments, ListedState
from memoriter.tools.entry_changes import owner_only
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Arguments, Call, Count, Prose, Shape, operation

#: Entries in one export. The command line exports all of them.
MAX_EXPORTED = 20_000
#: Characters in one import.
MAX_IMPORTED = 64_000_000
#: Titles of conversations, and entries that were left out, in the report of an import.
MAX_TITLES = 20


class ExportArguments(FilterArguments):
    states: list[ListedState] = described(
        ["active", "staged", "superseded", "expired"], "Only these states.", max_length=20
    )
    ids: list[str] | None = described(
        None, "Only these entries, by their whole ids.", max_length=MAX_EXPORTED
    )


class ExportResult(Shape):
    """Entries, one JSON object per line."""

    data: str = ""
    total: Count = 0
    truncated: bool = False


class ImportArguments(Arguments):
    data: str = Field(max_length=MAX_IMPORTED, description="The content of the file.")
    dry_run: bool = described(False, "Only report what would be imported.")
    skip_invalid: bool = described(
        False, "Leave out entries that cannot be imported, instead of importing nothing."
    )


class AddedJson(Shape):
    """An entry that an import added."""

    id: str
    seq: int = Field(description="The number of its newest change.")


class AddedSessionJson(Shape):
    """A session that an import added."""

    path: str
    version: str = Field(description="The digest of its transcript.")


class ImportedSessionsJson(Shape):
    """Conversations of an import. Each becomes a session."""

    added: Count = 0
    already: Count = described(0, "Sessions that exist already and are the same.")
    longer: Count = described(0, "Sessions that exist already and get new messages.")
    other: Count = described(0, "Sessions that were left out: another file exists there.")
    damaged: Count = described(0, "Conversations that cannot be read.")
    turns: dict[str, Count] = described(
        {}, "In `total`, and in no prompt: `pasted`, `long`, `others`, `relayed`."
    )
    titles: list[str] = described([], "The first titles of new sessions.")
    files: list[AddedSessionJson] = described(
        [], "Every session that was added. `entries.undo_import` takes them."
    )

    @classmethod
    def of(cls, report: ImportReport) -> ImportedSessionsJson:
        """Return the numbers of sessions of an import."""
        actions = Counter(step.action for step in report.steps)
        new = [step for step in report.steps if step.action == "new"]
        return cls(
            added=actions["new"],
            already=actions["same"],
            longer=actions["grown"],
            other=actions["other"],
            damaged=report.damaged,
            turns=dict(report.turns),
            titles=[step.title or step.target.stem for step in new[:MAX_TITLES]],
            files=[
                AddedSessionJson(path=f"{step.target.parent.name}/{step.target.name}", version=step.version)
                for step in new
                if not report.dry_run
            ],
        )


class ImportResult(Shape):
    """Numbers of imported entries and sessions."""

    added: Count = 0
    already: Count = described(0, "Entries that existed before and were not changed.")
    refused: Count = described(0, "Entries whose texts were forgotten before.")
    preview: list[str] = described([], "The first texts.")
    invalid: list[Prose] = described([], "Why entries were left out, for the first of them.")
    invalid_total: Count = 0
    entries: list[AddedJson] = described([], "Every entry that was added. `entries.undo_import` takes them.")
    sessions: ImportedSessionsJson = described(ImportedSessionsJson(), "Conversations of ChatGPT and Claude.")
    dry_run: bool = False

    @classmethod
    def of(cls, report: ImportReport) -> ImportResult:
        """Return the numbers of an import."""
        imported, is_done = report.entries, not report.dry_run
        return cls(
            added=imported.added,
            already=imported.already,
            refused=imported.refused,
            preview=list(imported.preview),
            invalid=list(imported.invalid[:MAX_TITLES]),
            invalid_total=len(imported.invalid),
            entries=[AddedJson(id=id_, seq=seq) for id_, seq in imported.entries] if is_done else [],
            sessions=ImportedSessionsJson.of(report),
            dry_run=report.dry_run,
        )


class ImportersResult(Shape):
    """Programs whose exported files can be imported."""

    programs: list[str] = described([], "Their names, for people.")


class AddedArguments(Arguments):
    """An entry that an import added."""

    id: str = Field(max_length=64, description="Its id.")
    seq: int = Field(description="The number of its newest change after the import.")


class AddedSessionArguments(Arguments):
    """A session that an import added."""

    path: str = Field(max_length=200, description="Its path in the folder of the sessions.")
    version: str = Field(max_length=64, description="The digest of its transcript after the import.")


class UndoImportArguments(Arguments):
    entries: list[AddedArguments] = described([], "`entries` of the import.", max_length=1_000_000)
    sessions: list[AddedSessionArguments] = described(
        [], "`sessions.files` of the import.", max_length=100_000
    )


class UndoImportResult(Shape):
    """Numbers of entries and sessions of an import that was undone."""

    removed: Count = 0
    changed: Count = described(0, "Entries that have changed since, and stay.")
    sessions_removed: Count = 0
    sessions_changed: Count = described(0, "Sessions that have changed since, and stay.")


@owner_only(
    "entries.export",
    description="Export entries with their history, one JSON object per line. Returns at most "
    f"{MAX_EXPORTED:,} entries; `memoriter export` writes all of them.",
)
def export(call: Call[ExportArguments]) -> ExportResult:
    asked = call.arguments
    lines = call.memory.entries.export(ids=asked.ids, **asked.filters())
    exported = list(islice(lines, MAX_EXPORTED + 1))
    truncated = next(lines, None) is not None
    return ExportResult(data="\n".join(exported) + "\n", total=len(exported) - 1, truncated=truncated)


@owner_only("entries.import")
def import_(call: Call[ImportArguments]) -> ImportResult:
    """Import an export of memoriter, mem0, ChatGPT or Claude, or plain JSON. Statements become entries, all of them or
    none, and conversations become sessions. What exists already is not changed.
    """
    asked = call.arguments
    report = import_text(call.memory, asked.data, dry_run=asked.dry_run, skip_invalid=asked.skip_invalid)
    imported = report.entries
    if not (imported.added or imported.already or imported.refused or imported.invalid or report.steps):
        raise WriteError(sentence("import.nothing"))
    return ImportResult.of(report)


@operation("entries.importers")
def importers(call: Call[NoArguments]) -> ImportersResult:
    """List the programs whose exported files `entries.import` recognises."""
    del call
    return ImportersResult(programs=[one.summary for one in offers("importers").values() if one.summary])


@owner_only("entries.undo_import", destructive=True)
def undo_import(call: Call[UndoImportArguments]) -> UndoImportResult:
    """Undo an import: remove the entries and sessions that it added, except those that have changed since."""
    added = {entry.id: entry.seq for entry in call.arguments.entries}
    files = {session.path: session.version for session in call.arguments.sessions}
    removed = call.memory.entries.undo_import(added)
    gone = undo_sessions(call.memory, files)
    return UndoImportResult(
        removed=len(removed),
        changed=len(added) - len(removed),
        sessions_removed=len(gone),
        sessions_changed=len(files) - len(gone),
    )
