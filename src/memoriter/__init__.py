"""Long-term memory for AI agents: Markdown notes in, the right few lines out.

    import memoriter

    with memoriter.open("~/notes") as memory:
        memory.remember("I prefer tabs", type="user_preference")
        for hit in memory.search("indentation?"):
            print(hit.citation, hit.snippet)

Importing the package loads nothing heavy: the names below load their modules at first use.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.3.0"

TYPE_CHECKING = False  # `typing` costs a third of the start of a hook
if TYPE_CHECKING:
    from memoriter.agent import Agent as Agent
    from memoriter.agent import Effect as Effect
    from memoriter.agent import Moment as Moment
    from memoriter.agent.hooks import Event as Event
    from memoriter.agent.hooks import HookBus as HookBus
    from memoriter.agent.plugins import Plugin as Plugin
    from memoriter.agent.service import MemoryService as MemoryService
    from memoriter.agent.service import Synced as Synced
    from memoriter.agent.service import Written as Written
    from memoriter.async_memory import AsyncMemory as AsyncMemory
    from memoriter.async_memory import Opening as Opening
    from memoriter.config import Settings as Settings
    from memoriter.config.settings import ExtraPath as ExtraPath
    from memoriter.config.settings import Setting as Setting
    from memoriter.embedding.protocol import Embedder as Embedder
    from memoriter.entries import Entries as Entries
    from memoriter.entries.capture import TurnLike as TurnLike
    from memoriter.entries.drafts import Draft as Draft
    from memoriter.entries.drafts import DraftFields as DraftFields
    from memoriter.entries.editing import EntryChanges as EntryChanges
    from memoriter.entries.forgetting import OtherCopies as OtherCopies
    from memoriter.entries.listing import EntryDetail as EntryDetail
    from memoriter.entries.listing import EntryStats as EntryStats
    from memoriter.entries.listing import RecallFilters as RecallFilters
    from memoriter.entries.search import EntryFilters as EntryFilters
    from memoriter.entries.search import FoundEntries as FoundEntries
    from memoriter.entries.search import Mode as Mode
    from memoriter.errors import BackupError as BackupError
    from memoriter.errors import BadArgument as BadArgument
    from memoriter.errors import BudgetSpent as BudgetSpent
    from memoriter.errors import Cancelled as Cancelled
    from memoriter.errors import ChatError as ChatError
    from memoriter.errors import ChatUnavailable as ChatUnavailable
    from memoriter.errors import ConfigError as ConfigError
    from memoriter.errors import EditConflict as EditConflict
    from memoriter.errors import EmbedderBusy as EmbedderBusy
    from memoriter.errors import EmbedderUnavailable as EmbedderUnavailable
    from memoriter.errors import EmbeddingError as EmbeddingError
    from memoriter.errors import EngineBusy as EngineBusy
    from memoriter.errors import EngineError as EngineError
    from memoriter.errors import FrameworkMissing as FrameworkMissing
    from memoriter.errors import IndexBroken as IndexBroken
    from memoriter.errors import LockTimeout as LockTimeout
    from memoriter.errors import MemoriterError as MemoriterError
    from memoriter.errors import MemoryClosed as MemoryClosed
    from memoriter.errors import MemoryDisabled as MemoryDisabled
    from memoriter.errors import NotFound as NotFound
    from memoriter.errors import PathRefused as PathRefused
    from memoriter.errors import QuotaSpent as QuotaSpent
    from memoriter.errors import SchemaTooNew as SchemaTooNew
    from memoriter.errors import SourceError as SourceError
    from memoriter.errors import StoreBroken as StoreBroken
    from memoriter.errors import StoreError as StoreError
    from memoriter.errors import StoreLocked as StoreLocked
    from memoriter.errors import StoreUnavailable as StoreUnavailable
    from memoriter.errors import UntrustedConfig as UntrustedConfig
    from memoriter.errors import WriteError as WriteError
    from memoriter.memory import Memory as Memory
    from memoriter.notes.collection import ErasedLines as ErasedLines
    from memoriter.notes.collection import NoteList as NoteList
    from memoriter.notes.collection import Notes as Notes
    from memoriter.notes.collection import Quote as Quote
    from memoriter.notes.editing import NoteText as NoteText
    from memoriter.recall.inject import Recalled as Recalled
    from memoriter.recall.profile import Profile as Profile
    from memoriter.recall.profile import ProfileLine as ProfileLine
    from memoriter.recall.render import Language as Language
    from memoriter.recall.render import Line as Line
    from memoriter.recall.render import Whose as Whose
    from memoriter.records import Answer as Answer
    from memoriter.records import Bucket as Bucket
    from memoriter.records import CleanedUp as CleanedUp
    from memoriter.records import Collection as Collection
    from memoriter.records import Considered as Considered
    from memoriter.records import Entry as Entry
    from memoriter.records import EntryEvent as EntryEvent
    from memoriter.records import EntryHit as EntryHit
    from memoriter.records import EntryPage as EntryPage
    from memoriter.records import EntrySort as EntrySort
    from memoriter.records import EntryState as EntryState
    from memoriter.records import EntryType as EntryType
    from memoriter.records import Excerpt as Excerpt
    from memoriter.records import Explanation as Explanation
    from memoriter.records import Facets as Facets
    from memoriter.records import Hit as Hit
    from memoriter.records import Identity as Identity
    from memoriter.records import Imported as Imported
    from memoriter.records import Level as Level
    from memoriter.records import NoteChunk as NoteChunk
    from memoriter.records import NoteFile as NoteFile
    from memoriter.records import NoteLine as NoteLine
    from memoriter.records import Part as Part
    from memoriter.records import Problem as Problem
    from memoriter.records import Query as Query
    from memoriter.records import Recall as Recall
    from memoriter.records import RecallHead as RecallHead
    from memoriter.records import RecallPage as RecallPage
    from memoriter.records import Receipt as Receipt
    from memoriter.records import Remembered as Remembered
    from memoriter.records import Saved as Saved
    from memoriter.records import Selection as Selection
    from memoriter.records import Source as Source
    from memoriter.records import Status as Status
    from memoriter.records import SyncReport as SyncReport
    from memoriter.records import Trust as Trust
    from memoriter.records import Turn as Turn
    from memoriter.sessions.transcript_writer import TranscriptWriter as TranscriptWriter
    from memoriter.tools.tool import Access as Access
    from memoriter.tools.tool import Arguments as Arguments
    from memoriter.tools.tool import Call as Call
    from memoriter.tools.tool import Outcome as Outcome
    from memoriter.tools.tool import Shape as Shape
    from memoriter.tools.tool import Tool as Tool
    from memoriter.tools.toolbox import Toolbox as Toolbox

    open = Memory.open  # noqa: A001

#: The public names by module.
_NAMES = {
    "agent": "Agent Effect Moment",
    "agent.hooks": "Event HookBus",
    "agent.plugins": "Plugin",
    "agent.service": "MemoryService Synced Written",
    "async_memory": "AsyncMemory Opening",
    "config": "Settings",
    "config.settings": "ExtraPath Setting",
    "embedding.protocol": "Embedder",
    "entries": "Entries",
    "entries.capture": "TurnLike",
    "entries.drafts": "Draft DraftFields",
    "entries.editing": "EntryChanges",
    "entries.forgetting": "OtherCopies",
    "entries.listing": "EntryDetail EntryStats RecallFilters",
    "entries.search": "EntryFilters FoundEntries Mode",
    "errors": "BackupError BadArgument BudgetSpent Cancelled ChatError ChatUnavailable ConfigError EditConflict "
    "EmbedderBusy EmbedderUnavailable EmbeddingError EngineBusy EngineError FrameworkMissing IndexBroken "
    "LockTimeout MemoriterError MemoryClosed MemoryDisabled NotFound PathRefused QuotaSpent SchemaTooNew "
    "SourceError StoreBroken StoreError StoreLocked StoreUnavailable UntrustedConfig WriteError",
    "memory": "Memory",
    "notes.collection": "ErasedLines NoteList Notes Quote",
    "notes.editing": "NoteText",
    "recall.inject": "Recalled",
    "recall.profile": "Profile ProfileLine",
    "recall.render": "Language Line Whose",
    "records": "Answer Bucket CleanedUp Collection Considered Entry EntryEvent EntryHit EntryPage EntrySort "
    "EntryState EntryType Excerpt Explanation Facets Hit "
    "Identity Imported Level NoteChunk NoteFile NoteLine Part Problem Query Recall "
    "RecallHead RecallPage Receipt Remembered Saved Selection Source Status SyncReport Trust Turn",
    "sessions.transcript_writer": "TranscriptWriter",
    "tools.tool": "Access Arguments Call Outcome Shape Tool",
    "tools.toolbox": "Toolbox",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", "open", *_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name == "open":
        return __getattr__("Memory").open  # type: ignore[attr-defined]
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
