"""SQLite's errors in our own words: the one place where they are translated."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw

from memoriter.errors import StoreBroken, StoreError, StoreLocked


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Inside, an error of SQLite on the database at ``path`` becomes one of ours."""
    try:
        yield
    except apsw.Error as error:
        raise _translate(error, path) from error
    except UnicodeDecodeError as error:
        raise StoreBroken(f"{path}: holds text that is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise StoreError(f"{path}: cannot hold a text with a lone surrogate ({error.reason})") from error


def _translate(error: apsw.Error, path: Path) -> StoreError:
    match error:
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return StoreBroken(f"{path}: is damaged ({error})")
        case apsw.SQLError() if _misses_schema(str(error)):
            return StoreBroken(f"{path}: its schema is damaged ({error})")
        case apsw.BusyError() | apsw.LockedError():
            return StoreLocked(f"{path}: another process holds it for longer than we wait")
        case apsw.FullError():
            return StoreError(f"{path}: the disk is full")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreError(f"{path}: cannot be opened for writing ({error})")
        case _:
            return StoreError(f"{path}: {error}")


def _misses_schema(message: str) -> bool:
    """Our statements name only what the migrations made: a name that is missing has been lost."""
    return message.startswith(("no such table", "no such column", "malformed database schema"))
