"""One tree of errors. A class stands for what the caller does differently; the message says what, on what, what to do.

MemoriterError
├── ConfigError            a setting is wrong: names the key, the value and where it came from
│   └── UntrustedConfig    a workspace's own settings file tries to set what only the owner may
├── BadArgument            an argument of a tool is unknown, missing or wrong
├── MemoryDisabled         the owner switched memory off
├── MemoryClosed           the memory was used after it was closed
├── SourceError            a file cannot be used; syncs collect it in their report
│   └── PathRefused        a path that is not inside the workspace or its extra paths
├── NotFound               the named file or thing does not exist; offers the nearest
├── EmbeddingError         an embedder failed
│   ├── EmbedderUnavailable  no model, no extra, no key: keywords still work
│   ├── EmbedderBusy       a passing failure: the same call may work when it is tried again
│   └── QuotaSpent         the account at the provider is used up; trying again at once cannot help
├── EngineError            an outside search engine failed; the builtin one answers instead
│   └── EngineBusy         it is not ready yet: the builtin one answers this once
├── Cancelled              the caller gave up waiting; nothing failed
├── LockTimeout            another process holds a lock; the same call may work later
├── WriteError             a note could not be written; what stood there is whole
│   └── EditConflict       somebody else changed it meanwhile, and it is theirs
├── ChatError              a language model failed; what can be done without one is done
│   ├── ChatUnavailable    none is configured, no extra, no key
│   └── BudgetSpent        the day's tokens are used up
└── StoreError             the database cannot be used
    ├── StoreBroken        its bytes are damaged; derived stores are rebuilt
    ├── StoreLocked        another process holds it for longer than we wait
    └── SchemaTooNew       it was written by a newer release
"""

from __future__ import annotations

from collections.abc import Mapping


class MemoriterError(Exception):
    """Base of all errors that memoriter raises on purpose; ``str(error)`` is fit to be shown to a person."""

    #: A stable name of the error, for programs.
    code = "failed"

    @property
    def details(self) -> Mapping[str, object]:
        """Return the values that the message mentions."""
        return getattr(self.args[0], "details", {}) if self.args else {}


class ConfigError(MemoriterError):
    """A setting is unknown or has a wrong value."""

    code = "bad_setting"


class UntrustedConfig(ConfigError):
    """A settings file inside a workspace sets something that only the owner's own file may set."""

    code = "untrusted_setting"


class BadArgument(MemoriterError):
    """An argument of a tool is unknown, missing or has a value that it cannot have."""

    code = "bad_argument"

    def __init__(self, message: str, *arguments: str) -> None:
        super().__init__(message)
        self.arguments = arguments

    @property
    def details(self) -> Mapping[str, object]:
        """Return the names of the wrong arguments."""
        return {"arguments": list(self.arguments)}


class MemoryDisabled(MemoriterError):
    """The owner's settings leave the memory slot empty."""

    code = "memory_disabled"


class MemoryClosed(MemoriterError):
    """The memory was used after it was closed."""

    code = "memory_closed"


class SourceError(MemoriterError):
    """A file cannot be read or used."""

    code = "unreadable_file"


class PathRefused(SourceError):
    """A path leads outside the workspace and its extra paths."""

    code = "path_refused"


class NotFound(MemoriterError):
    """The named thing does not exist."""

    code = "not_found"


class EmbeddingError(MemoriterError):
    """An embedder failed, or returned what cannot be used."""

    code = "embedding_failed"


class EmbedderUnavailable(EmbeddingError):
    """The embedder cannot be used here: no model, no extra, no key."""

    code = "embedder_unavailable"


class EmbedderBusy(EmbeddingError):
    """A passing failure of an embedder: overload, a rate limit, a lost connection."""

    code = "embedder_busy"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s  #: how long the provider itself asks us to wait


class QuotaSpent(EmbeddingError):
    """The account at the provider has no credit or quota left."""

    code = "quota_spent"


class WriteError(MemoriterError):
    """A note could not be written; what stood there before is whole."""

    code = "not_written"


class EditConflict(WriteError):
    """A note is not what the caller believes it to be, so it is not overwritten."""

    code = "edit_conflict"


class ChatError(MemoriterError):
    """A language model failed, or answered what cannot be used."""

    code = "model_failed"


class ChatUnavailable(ChatError):
    """No language model can be used here: none configured, no extra, no key."""

    code = "model_unavailable"


class BudgetSpent(ChatError):
    """The tokens that the settings allow for a day are used up."""

    code = "budget_spent"


class EngineError(MemoriterError):
    """An outside search engine failed, or answered what cannot be used."""

    code = "engine_failed"


class EngineBusy(EngineError):
    """An outside search engine is still building its index; it is well otherwise."""

    code = "engine_busy"


class Cancelled(MemoriterError):
    """The caller gave up waiting for the answer."""

    code = "cancelled"


class LockTimeout(MemoriterError):
    """Another thread or process has held a lock for too long."""

    code = "lock_timeout"


class StoreError(MemoriterError):
    """The database cannot be used."""

    code = "store_failed"


class StoreBroken(StoreError):
    """The database file is damaged, truncated, or not ours."""

    code = "store_damaged"


class StoreLocked(StoreError):
    """Another process holds the database for longer than we wait."""

    code = "store_locked"


class SchemaTooNew(StoreError):
    """The database was written by a newer release."""

    code = "store_too_new"
