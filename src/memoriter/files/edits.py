"""Change notes atomically, without overwriting edits that people make at the same time.

The new version is written to a temporary file, synced, and exchanged with the note in one step. Then the folder is
synced. The version that comes out of the exchange must be the one that the change started from. If a person saved in
between, their version is put back and the change is applied to it again. memoriter's own writers take turns by a lock
on the folder, which leaves no lock file among the notes.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import itertools
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from memoriter.errors import EditConflict, LockTimeout, WriteError
from memoriter.files import shared
from memoriter.files.durable import make_folder, sync_folder, write_beside
from memoriter.files.locks import LOCK_WAIT_S, file_lock
from memoriter.sentences import sentence

__all__ = ["append", "digest", "move", "read", "remove", "sweep", "update", "write"]

#: The names of temporary files, as `write_beside` makes them.
_TEMPORARY = re.compile(r"\..+\.\d+-\d+\.tmp", re.DOTALL)

EditText = Callable[[str | None], str | None]
"""Get the text of a note, or None if it does not exist. Return the new text, or None to change nothing."""

CheckText = Callable[[str | None], None]
"""Get the text of a note, or None if it does not exist, and raise if it must not be changed."""

#: Attempts before a change fails, because others edit the note at the same time.
MAX_ATTEMPTS = 20
NEW_FILE_MODE = 0o600
#: How long an editor may keep the old version open for writing after the exchange.
SETTLE_S = 2.0

_NOREPLACE, _EXCHANGE = 1, 2  # flags of renameat2(2)
_HERE = -100  # AT_FDCWD


def digest(text: str) -> str:
    """Return the SHA-256 digest that `write` compares."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read(path: Path) -> str | None:
    """Return the text of a note unchanged, or None if it does not exist."""
    data = _load(path)
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


def append(path: Path, text: str, *, head: str = "") -> bool:
    """Append a text. A new note starts with ``head``. Existing content stays unchanged to the byte."""

    def change(old: str | None) -> str:
        before = head if old is None else old
        newline = "\r\n" if "\r\n" in before else "\n"
        gap = "" if not before or before.endswith("\n") else newline
        return before + gap + text.replace("\n", newline)

    return update(path, change)


def update(path: Path, change: EditText, *, wait_s: float = LOCK_WAIT_S) -> bool:
    """Change a note by a function of its text. Return whether it changed; True means that it is on disk.

    Raises `WriteError`; the note is then unchanged.
    """
    try:
        with shared.changing(path):
            make_folder(path.parent)
            with file_lock(path.parent, wait_s):
                return _update(path, change)
    except LockTimeout as error:
        raise WriteError(sentence("file.locked", path=str(path), why=error)) from error
    except OSError as error:
        raise WriteError(sentence("file.not_written", path=str(path), why=_reason(error))) from error


def remove(path: Path, check: CheckText) -> str:
    """Remove a note and return its text. ``check`` raises if this is another version than expected."""
    with shared.changing(path), _locked(path, check):
        text = read(path)
        check(text)
        path.unlink()
        sync_folder(path.parent)
        return text or ""


def move(path: Path, target: Path, check: CheckText) -> str | None:
    """Give a note another path and return its text, or None if the path is taken. ``check`` as in `remove`."""
    with shared.changing(path, target), _locked(path, check):
        text = read(path)
        check(text)
        make_folder(target.parent)
        try:
            rename_without_replacing(path, target)
        except FileExistsError:
            return None
        path.unlink(missing_ok=True)  # where the system cannot rename like this, the file has two names
        sync_folder(target.parent)
        sync_folder(path.parent)
        return text or ""


@contextlib.contextmanager
def _locked(path: Path, check: CheckText) -> Iterator[None]:
    if not path.parent.is_dir():
        check(None)
    try:
        with file_lock(path.parent, LOCK_WAIT_S):
            yield
    except LockTimeout as error:
        raise WriteError(sentence("file.locked", path=str(path), why=error)) from error
    except OSError as error:
        raise WriteError(sentence("file.not_changed", path=str(path), why=_reason(error))) from error


_REASONS = {
    errno.ENOSPC: "os.no_space",
    errno.EACCES: "os.denied",
    errno.EROFS: "os.read_only",
}


def _reason(error: OSError) -> str:
    code = _REASONS.get(error.errno or 0)
    return sentence(code) if code else error.strerror or str(error)


def _update(path: Path, change: EditText) -> bool:
    _sweep(path.parent)
    added = b""  # appended by someone else to a version that was replaced a moment later
    for _ in range(MAX_ATTEMPTS):
        old = _load(path)
        text = change(None if old is None else _decode(old, path))
        new = (_encode(text, path) if text is not None else old or b"") + added
        if new == (old or b"") and (text is None or old is not None):
            return False
        installed, more = _install(path, old, new)
        if installed:
            return True
        added += more
    if added:
        _append_in_place(path, added)
    raise EditConflict(sentence("file.busy", path=str(path)))


def _install(path: Path, old: bytes | None, new: bytes) -> tuple[bool, bytes]:
    """Exchange the note for its new version.

    Return whether the new version is in place, and what someone else appended to it in the meantime. The exchange is
    undone if the note was no longer the version that the change started from.
    """
    temporary = _write_beside(path, new)
    try:
        if not (_place(temporary, path) if old is None else _exchange(temporary, path, old)):
            return False, _find_appended(temporary, path, new)
        try:
            sync_folder(path.parent)
        except OSError:
            # It is unknown what is on disk. Restore the old version and report the error.
            _restore(temporary, path, was_new=old is None)
            raise
        return True, b""
    finally:
        temporary.unlink(missing_ok=True)


def _write_beside(path: Path, data: bytes) -> Path:
    mode = NEW_FILE_MODE
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(path.stat().st_mode)
    return write_beside(path, [data], mode=mode)


# ---- the exchange ---------------------------------------------------------------------------------------------------


def _place(temporary: Path, path: Path) -> bool:
    try:
        rename_without_replacing(temporary, path)
    except FileExistsError:
        return False
    return True


def _exchange(temporary: Path, path: Path, old: bytes) -> bool:
    if _load(path) != old:
        return False
    try:
        if not exchange_files(temporary, path):
            temporary.replace(
                path
            )  # this system cannot exchange files, so only the comparison above protects the note
            return True
    except FileNotFoundError:
        return False  # the note was deleted in the meantime: start again
    if is_closed_for_writing(temporary) and _load(temporary) == old:
        return True
    _give_back(temporary, path)
    return False


def _give_back(other: Path, path: Path) -> None:
    """Put back a version of someone else that came out of the exchange, or keep it as a visible copy."""
    try:
        exchange_files(other, path)
    except OSError:
        _keep_copy(other, path)
        raise


def _find_appended(undone: Path, path: Path, new: bytes) -> bytes:
    """Return what someone appended to the new version before it was undone. Keep other edits as a copy."""
    if not is_closed_for_writing(undone):
        _keep_copy(undone, path)
        return b""
    data = _load(undone) or b""
    if not data.startswith(new):
        _keep_copy(undone, path)
        return b""
    return data[len(new) :]


def _append_in_place(path: Path, added: bytes) -> None:
    """Append again what someone else had appended to a version that was undone."""
    with path.open("ab") as file:
        file.write(added)
        file.flush()
        os.fsync(file.fileno())


def _keep_copy(version: Path, path: Path) -> None:
    """Keep a version of someone else as a visible file next to the note."""
    for number in itertools.count(1):
        try:
            rename_without_replacing(version, path.with_name(f"{path.stem}.edited-{number}{path.suffix}"))
        except FileExistsError:
            continue
        return


def _restore(temporary: Path, path: Path, *, was_new: bool) -> None:
    with contextlib.suppress(OSError):
        if was_new:
            path.unlink(missing_ok=True)
        elif temporary.exists():
            exchange_files(temporary, path)


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


def _load(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
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


# ---- system calls ------------------------------------------------------------------------------------------------


def exchange_files(one: Path, other: Path) -> bool:
    """Swap the names of two files in one step. Return False if the system or file system does not support it."""
    return _renameat2(one, other, _EXCHANGE)


def rename_without_replacing(temporary: Path, path: Path) -> None:
    """Rename a file. Raises `FileExistsError` if the new name is taken."""
    if not _renameat2(temporary, path, _NOREPLACE):
        os.link(temporary, path)


def is_closed_for_writing(path: Path) -> bool:
    """Return whether no process has the file open for writing, waiting up to `SETTLE_S`.

    This asks the kernel for a read lease. Systems without leases return True.
    """
    if sys.platform != "linux":
        return True
    import fcntl

    end = time.monotonic() + SETTLE_S
    with path.open("rb") as file:
        # The kernel signals the holder of a lease when another process opens the file. The default signal would
        # kill this process; SIGURG is ignored.
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        while True:
            try:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    return True
                if time.monotonic() > end:
                    return False
                time.sleep(0.005)
            else:
                return True


def _renameat2(source: Path, target: Path, flags: int) -> bool:
    """Rename with flags. Return False if the system does not support it."""
    function = _libc_renameat2()
    if function is None:
        return False
    if function(_HERE, os.fsencode(source), _HERE, os.fsencode(target), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(target))


@cache
def _libc_renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    if sys.platform != "linux":
        return None
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    function.restype = ctypes.c_int
    return function
