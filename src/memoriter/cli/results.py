"""Results of commands that no operation has. They follow the conventions of the models in `tools/`.

Commands import this module when they print JSON, so that ``--help`` does not load pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from memoriter.records import Entry, Remembered, Status, SyncReport
from memoriter.tools.entries import EntryJson, EntryListResult, EventJson
from memoriter.tools.entry_changes import AddResult, ApproveResult, ForgetResult, RejectResult, UndoResult
from memoriter.tools.exchange import ImportResult
from memoriter.tools.health import FindingJson
from memoriter.tools.notes import NoteTextJson, SavedJson, WaitingNoteJson
from memoriter.tools.recalls import RecallGetResult, RecallListResult
from memoriter.tools.search import (
    ExplainedSearchResult,
    GetResult,
    StatsResult,
    StatusResult,
    SyncResult,
)
from memoriter.tools.tool import Shape, omitted_if_none

if TYPE_CHECKING:
    from memoriter.memory import Memory

#: The results of operations, which commands print too.
__all__ = [
    "AddResult",
    "EntryListResult",
    "ExplainedSearchResult",
    "ForgetResult",
    "GetResult",
    "ImportResult",
    "RecallGetResult",
    "RecallListResult",
    "RejectResult",
    "SavedJson",
    "StatusResult",
    "SyncResult",
    "UndoResult",
]

# ---- entries ------------------------------------------------------------------------------------------------------


class HistoryResult(Shape):
    """Every change of an entry, oldest first."""

    history: list[EventJson]


class RedoResult(Shape):
    """The changes that were made again, and the entries as they are now."""

    redone: list[EventJson]
    entries: list[EntryJson]


class StagedResult(Shape):
    """Entries and notes that wait for approval."""

    entries: list[EntryJson]
    notes: list[WaitingNoteJson]

    @classmethod
    def of(cls, memory: Memory, entries: Sequence[Entry], notes: Sequence[str]) -> StagedResult:
        """Return what waits. The notes are named by their paths."""
        waiting = [EntryJson.model_validate(entry) for entry in entries]
        return cls(entries=waiting, notes=[WaitingNoteJson.of(memory, path) for path in notes])


class ApprovedResult(ApproveResult):
    """Outcome for each staged entry, and the approved notes."""

    notes: list[NoteTextJson] | None = omitted_if_none()

    @classmethod
    def of(cls, outcomes: Sequence[Remembered], notes: Sequence[object] = ()) -> ApprovedResult:
        """Return the outcomes."""
        return cls.model_validate({"approved": outcomes, "notes": notes or None})


class CleanupResult(Shape):
    """Numbers of entries that a cleanup changed."""

    expired: int
    purged: int
    restored: int
    clock: str | None


class ExportedResult(Shape):
    """The number of exported entries, and their file."""

    total: int
    path: Path


# ---- notes and folders --------------------------------------------------------------------------------------------


class SetupResult(Shape):
    """The files and folders that `init` created, changed and kept, and the notes it found."""

    workspace: Path
    home: Path
    made: list[Path]
    changed: list[Path]
    kept: list[Path]
    notes: int
    folders: int
    not_indexed: int
    index: SyncResult | None = None

    @classmethod
    def of(cls, report: object, indexed: SyncReport | None) -> SetupResult:
        """Return what `init` did."""
        index = SyncResult.model_validate(indexed) if indexed else None
        return cls.model_validate(report).model_copy(update={"index": index})


class CollectionJson(Shape):
    """A named folder of notes."""

    name: str
    path: str
    pattern: str | None
    notes: int | None


class CollectionsResult(Shape):
    """Named folders of notes."""

    collections: list[CollectionJson]


class RemovedCollectionResult(Shape):
    """A collection that was removed."""

    removed: str
    path: Path


class SyncedResult(Shape):
    """One update of the index by `watch`."""

    reason: str
    changed: int
    removed: int
    files: int
    chunks: int
    pending: int
    error: str | None


# ---- programs -----------------------------------------------------------------------------------------------------


class ImportedFileJson(Shape):
    """A file of another program."""

    kind: str
    source: Path
    target: Path
    action: str
    note: str


class ImportedEntriesJson(Shape):
    """Numbers of imported entries."""

    added: int
    already: int
    refused: int


class ProgramImportResult(Shape):
    """The result of an import from another program."""

    program: str
    home: Path
    agent: str
    dry_run: bool
    files: list[ImportedFileJson] = Field(validation_alias="steps")
    entries: ImportedEntriesJson
    remarks: list[str]

    @classmethod
    def of(cls, report: object) -> ProgramImportResult:
        """Return the report of an import."""
        return cls.model_validate(report)


class FileChangeJson(Shape):
    """A file of a host that `install` or `uninstall` changes."""

    path: Path
    changed: bool
    diff: str | None


class InstallResult(Shape):
    """The changes of `install` or `uninstall`."""

    host: str
    dry_run: bool
    workspace: Path
    plugin: Path | None = omitted_if_none()
    commands: list[str] | None = omitted_if_none()
    files: list[FileChangeJson] | None = omitted_if_none()


class QueueResult(Shape):
    """Numbers of sessions."""

    done: int
    waiting: int


# ---- gateway and resident process ---------------------------------------------------------------------------------


class LinkResult(Shape):
    """A single-use link to the web page."""

    address: str
    link: str


class ServingResult(LinkResult):
    """A gateway that is ready."""

    tokens: Path = Field(description="The file with the digests of the tokens.")
    token: str | None = omitted_if_none("Only at the first start.")


class CreatedTokenResult(Shape):
    """A new token."""

    id: str
    token: str
    access: str
    agents: list[str]


class TokenJson(Shape):
    """A token without its secret."""

    id: str
    access: str
    agents: list[str]
    name: str
    created_at: Any


class TokensResult(Shape):
    """The tokens of the gateway."""

    tokens: list[TokenJson]


class RevokedTokenResult(Shape):
    """The id of a revoked token."""

    revoked: str


class ResidentResult(Shape):
    """The state of the resident process."""

    running: bool
    enabled: bool
    pid: int | None = omitted_if_none()
    since: float | None = omitted_if_none()
    answered: int | None = omitted_if_none()
    idle_minutes: float | None = omitted_if_none()

    @classmethod
    def of(cls, enabled: bool, found: Mapping[str, object] | None) -> ResidentResult:
        """Return the state of the process, which has described itself if it runs."""
        return cls.model_validate({"running": found is not None, "enabled": enabled, **(found or {})})


class StoppedResult(Shape):
    """The id of the process that was stopped."""

    stopped: int | None


# ---- maintenance --------------------------------------------------------------------------------------------------


class StatsWithEntriesResult(StatsResult):
    """Size of the memory, with the entries."""

    entries: dict[str, Any] | None = omitted_if_none()

    @classmethod
    def of(cls, status: Status, entries: dict[str, Any] | None) -> StatsWithEntriesResult:
        """Return the sizes of files and entries."""
        return cls(**cls.fields_of(status), entries=entries)


class FindingsResult(Shape):
    """Every check of `doctor`."""

    findings: list[FindingJson]


class SettingJson(Shape):
    """One setting."""

    key: str
    value: Any
    origin: str


class SettingsResult(Shape):
    """Every setting."""

    settings: list[SettingJson]


class ChangedSettingResult(Shape):
    """A setting that was written to a settings file or removed from it, and the value that applies now."""

    key: str
    path: Path
    value: Any = omitted_if_none("The value that was written.")
    removed: bool | None = omitted_if_none()
    effective: Any
    origin: str


class BackupResult(Shape):
    """The content of a backup."""

    path: Path
    bytes: int
    files: int
    notes: int
    agents: list[str]
    not_included: list[str]


class RestoreResult(Shape):
    """The result of a restore."""

    home: Path
    workspace: Path
    files: int
    notes: int
    agents: list[str]
    replaced: Path | None
    dry_run: bool


class TableJson(Shape):
    """A table that was copied and compared."""

    area: str
    name: str
    rows: int
    digest: str


class MigrationResult(Shape):
    """The result of a copy to another store."""

    agent: str
    tables: list[TableJson]
    notes: int
    files: int
    not_included: list[str]
