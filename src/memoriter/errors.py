"""The errors of the package. The message says what happened, to what, and what to do."""

from __future__ import annotations

import sys
from collections.abc import Mapping


class MemoriterError(Exception):
    """Base class of all errors of memoriter. ``str(error)`` is a sentence for a person."""

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
    """The settings file of a workspace sets something that only the owner may set."""

    code = "untrusted_setting"


class BadArgument(MemoriterError):
    """An argument is unknown or missing, or has a value that it cannot have."""

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
    """Something that was named does not exist."""

    code = "not_found"


class EmbeddingError(MemoriterError):
    """An embedder failed or returned invalid vectors."""

    code = "embedding_failed"


class EmbedderUnavailable(EmbeddingError):
    """The embedder cannot be used, because a model, an extra or a key is missing."""

    code = "embedder_unavailable"


class EmbedderBusy(EmbeddingError):
    """A temporary failure of an embedder, such as overload, a rate limit or a lost connection."""

    code = "embedder_busy"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        #: How long the provider asks the client to wait.
        self.retry_after_s = retry_after_s


class QuotaSpent(EmbeddingError):
    """The account at the provider has no credit or quota left."""

    code = "quota_spent"


class WriteError(MemoriterError):
    """A note could not be written. The previous version is intact."""

    code = "not_written"


class EditConflict(WriteError):
    """A note or entry has changed since the caller read it, so it is not overwritten."""

    code = "edit_conflict"


class BackupError(MemoriterError):
    """A backup cannot be written or restored. Nothing was replaced."""

    code = "backup_failed"


class ChatError(MemoriterError):
    """A language model failed or gave an unusable answer."""

    code = "model_failed"


class ChatUnavailable(ChatError):
    """No language model can be used: none is configured, or an extra or a key is missing."""

    code = "model_unavailable"


class BudgetSpent(ChatError):
    """The tokens that the settings allow for a day are used up."""

    code = "budget_spent"


class EngineError(MemoriterError):
    """An external search engine failed or gave an unusable answer."""

    code = "engine_failed"


class EngineBusy(EngineError):
    """An external search engine is still building its index."""

    code = "engine_busy"


class Cancelled(MemoriterError):
    """The caller stopped waiting for the answer."""

    code = "cancelled"


class LockTimeout(MemoriterError):
    """Another thread or process has held a lock for too long."""

    code = "lock_timeout"


class StoreError(MemoriterError):
    """The database cannot be used."""

    code = "store_failed"


class StoreBroken(StoreError):
    """The database file is damaged, truncated, or not a database of memoriter."""

    code = "store_damaged"


class IndexBroken(StoreBroken):
    """A derived index is damaged. Its owner deletes it and builds it again from the source of truth."""

    code = "index_damaged"


class StoreLocked(StoreError):
    """Another process has held the database for too long."""

    code = "store_locked"


class StoreUnavailable(StoreError):
    """A server that holds rows or vectors does not answer. ``retry_after_s`` is how long the server asks to wait."""

    code = "store_unavailable"

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class SchemaTooNew(StoreError):
    """The database was written by a newer release."""

    code = "store_too_new"


def message_of(error: Exception) -> str:
    """Return the message of an error, with its code if it has one. Use it instead of ``str(error)``."""
    if isinstance(error, OSError) and error.strerror:
        # Python quotes paths, and doubles their backslashes.
        paths = [str(path) for path in (error.filename, error.filename2) if path is not None]
        return f"{error.strerror} ({', '.join(paths)})" if paths else error.strerror
    message = error.args[0] if isinstance(error, MemoriterError) and error.args else ""
    return message if isinstance(message, str) and message else str(error)


def reason_of(error: Exception) -> str:
    """Return the message of an error without the path that it concerns, for a sentence that names the path."""
    return getattr(error, "strerror", None) or str(error)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its type if it has no message."""
    return (message_of(error).strip().splitlines() or [type(error).__name__])[0][:300]


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, wherever memoriter itself came from."""
    from importlib.metadata import requires
    from pathlib import Path

    found = [line.partition(";") for line in requires("memoriter") or ()]
    wanted = [name.strip() for name, _, marker in found if f"'{extra}'" in marker.replace('"', "'")]
    if (Path(sys.prefix) / "uv-receipt.toml").exists():
        program = f"uv pip install --python {sys.executable}"
    else:
        program = "pipx inject memoriter" if "pipx" in Path(sys.prefix).parts else "pip install"
    return f"{program} {' '.join(map(repr, wanted))}"


class FrameworkMissing(MemoriterError, ImportError):
    """The framework of an extension is not installed."""

    code = "framework_missing"

    def __init__(self, framework: str, extra: str) -> None:
        super().__init__(f"{framework} is not installed. Run `{install_command(extra)}`.")
