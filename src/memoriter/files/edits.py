"""Change notes atomically, without overwriting edits that people make at the same time.

The new version is written to a temporary file beside the note and synced. If the note is still the version that the
change started from, the temporary file replaces it, and the folder is synced. If a person saved in between, the change
is applied to their version. memoriter's own writers take turns by a lock on the folder, which leaves no lock file among
the notes.

Paths are resolved. A folder is opened once and all its files are used relative to it, so that a folder which becomes a
link in the meantime leads nowhere.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from memoriter.errors import EditConflict, LockTimeout, NotFound, PathRefused, WriteError, reason_of
from memoriter.files import shared
from memoriter.files.durable import write_beside
from memoriter.files.locks import LOCK_WAIT_S, file_lock
from memoriter.files.paths import open_resolved
from memoriter.files.platform import (
    mode_of,
    open_plain,
    rename_without_replacing,
    replace,
    sharing,
    sync_path,
)
from memoriter.sentences import sentence

__all__ = ["digest", "move", "read", "remove", "sweep", "update", "write"]

#: The names of temporary files, as `write_beside` makes them.
_TEMPORARY = re.compile(r"\..+\.\d+-\d+\.tmp", re.DOTALL)

EditText = Callable[[str | None], str | None]
"""Get the text of a note, or None if it does not exist. Return the new text, or None to change nothing."""

CheckText = Callable[[str | None], None]
"""Get the text of a note, or None if it does not exist, and raise if it must not be changed."""

#: Attempts before a change fails, because others edit the note at the same time.
MAX_ATTEMPTS = 20
NEW_FILE_MODE = 0o600


def digest(text: str) -> str:
    """Return the SHA-256 digest that `write` compares."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read(path: Path) -> str | None:
    """Return the text of a note unchanged, or None if it does not exist."""
    try:
        with open_resolved(path.parent) as folder:
            data = _load(folder / path.name, path)
    except NotFound:
        return None
    except PathRefused as error:
        raise WriteError(str(error)) from error
    return None if data is None else _decode(data, path)


def write(path: Path, text: str, *, expected: str | None) -> bool:
    """Replace the version with the digest ``expected``, or create a note if ``expected`` is None.

    Raises `EditConflict` if the note is another version.
    """

    def change(old: str | None) -> str:
        if (None if old is None else digest(old)) != expected:
            raise EditConflict(f"{path} has been changed in the meantime and was not overwritten.")
        return text

    return update(path, change)


def update(path: Path, change: EditText, *, wait_s: float = LOCK_WAIT_S) -> bool:
    """Change a note by a function of its text. Return whether it changed; True means that it is on disk.

    Raises `WriteError`; the note is then unchanged.
    """
    with shared.changing(path), _locked(path, "file.not_written", make=True, wait_s=wait_s) as note:
        return _update(note, path, change)


def remove(path: Path, check: CheckText) -> str:
    """Remove a note and return its text. ``check`` raises if this is another version than expected."""
    with shared.changing(path), _existing(path, check) as note:
        text = _checked(note, path, check)
        sharing(note.unlink)
        sync_path(note.parent)
        return text


def move(path: Path, target: Path, check: CheckText) -> str | None:
    """Give a note another path and return its text, or None if the path is taken. ``check`` as in `remove`."""
    with (
        shared.changing(path, target),
        _existing(path, check) as note,
        _opened(target, "file.not_changed", make=True) as new,
    ):
        text = _checked(note, path, check)
        try:
            rename_without_replacing(note, new)
        except FileExistsError:
            return None
        sync_path(new.parent)
        sync_path(note.parent)
        return text


def _checked(note: Path, path: Path, check: CheckText) -> str:
    data = _load(note, path)
    text = None if data is None else _decode(data, path)
    check(text)
    return text or ""


@contextlib.contextmanager
def _existing(path: Path, check: CheckText) -> Iterator[Path]:
    if not path.parent.is_dir():
        check(None)
    with _locked(path, "file.not_changed") as note:
        yield note


@contextlib.contextmanager
def _locked(path: Path, code: str, *, make: bool = False, wait_s: float = LOCK_WAIT_S) -> Iterator[Path]:
    """Open and lock the folder of a note, and yield the path of the note in it."""
    try:
        with _opened(path, code, make=make) as note, file_lock(path.parent, wait_s):
            yield note
    except LockTimeout as error:
        raise WriteError(sentence("file.locked", path=str(path), why=error)) from error
    except OSError as error:
        raise WriteError(sentence(code, path=str(path), why=_reason(error))) from error


@contextlib.contextmanager
def _opened(path: Path, code: str, *, make: bool = False) -> Iterator[Path]:
    """Open the folder of a note, and yield the path of the note in it."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(open_resolved(path.parent, make=make))
        except (PathRefused, NotFound) as error:
            raise WriteError(sentence(code, path=str(path), why=str(error).rstrip("."))) from error
        yield folder / path.name


_REASONS = {errno.ENOSPC: "os.no_space", errno.EACCES: "os.denied", errno.EROFS: "os.read_only"}


def _reason(error: OSError) -> str:
    code = _REASONS.get(error.errno or 0)
    return sentence(code) if code else reason_of(error)


def _update(note: Path, path: Path, change: EditText) -> bool:
    """Change a note. ``path`` is its path for people, ``note`` the one in its open folder."""
    _sweep(note.parent)
    for _ in range(MAX_ATTEMPTS):
        old = _load(note, path)
        text = change(None if old is None else _decode(old, path))
        new = old if text is None else _encode(text, path)
        if new is None or new == old:
            return False
        if _replace(note, path, old, new):
            return True
    raise EditConflict(sentence("file.busy", path=str(path)))


def _replace(note: Path, path: Path, old: bytes | None, new: bytes) -> bool:
    """Replace a version of a note, or create the note. Return False if it is another version now."""
    temporary = write_beside(note, [new], mode=_mode(note))
    try:
        if _load(note, path) != old:
            return False
        if old is None:
            rename_without_replacing(temporary, note)
        else:
            replace(temporary, note)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    try:
        sync_path(note.parent)
    except OSError:
        _restore(note, old)  # it is unknown what is on disk
        raise
    return True


def _mode(note: Path) -> int:
    try:
        return mode_of(note)
    except FileNotFoundError:
        return NEW_FILE_MODE


def _restore(note: Path, old: bytes | None) -> None:
    with contextlib.suppress(OSError):
        if old is None:
            note.unlink()
        else:
            replace(write_beside(note, [old], mode=_mode(note)), note)


# ---- bytes -----------------------------------------------------------------------------------------------------


def sweep(folder: Path) -> None:
    """Remove temporary files of killed writers from a folder, unless another writer is busy there."""
    with contextlib.suppress(LockTimeout, OSError), file_lock(folder, 1.0):
        _sweep(folder)


def _sweep(folder: Path) -> None:
    """Remove temporary files of killed writers. Under the lock of the folder, no running writer has one."""
    for entry in os.scandir(folder):
        if _TEMPORARY.fullmatch(entry.name):
            with contextlib.suppress(OSError):
                os.unlink(entry.path)  # noqa: PTH108


def _load(note: Path, path: Path) -> bytes | None:
    try:
        descriptor = open_plain(note)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WriteError(f"{path} is a symbolic link. Links are not followed when writing.") from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise WriteError(f"{path} is not a regular file. It was not changed.")
        return file.read()


def _encode(text: str, path: Path) -> bytes:
    """Encode a text. Text that could not be read back is never written."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WriteError(
            f"{path} was not changed: the new text cannot be encoded as UTF-8 (character {error.start})."
        ) from error


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WriteError(f"{path} is not UTF-8 (byte {error.start}). It was not changed.") from error
