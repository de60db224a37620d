"""The one way in which a note is changed: whole, durable, and never over somebody else's edit.

A new version is written beside the note, synced, and exchanged with it in one step; the folder is synced before
anybody is told that it is saved. What comes out of the exchange is compared with what the change was made from: if a
person saved in between, their version is put back and the change is made again on top of it. Writers of ours take
turns by a lock on the folder, which needs no lock file among people's notes.

What is written is not decided here.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import itertools
import os
import signal
import stat
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from memoriter.errors import EditConflict, LockTimeout, WriteError
from memoriter.files.durable import make_folder, sync_folder, write_beside
from memoriter.files.locks import LOCK_WAIT_S, file_lock

__all__ = ["append", "digest", "read", "update", "write"]

Change = Callable[[str | None], str | None]
"""Given the note's text, or None when there is no such note: the new text, or None to leave all as it is."""

ATTEMPTS = 20  #: exchanges that somebody else's saving may spoil before we give up
NEW_FILE_MODE = 0o600
SETTLE_S = 2.0  #: how long an editor may keep the old version open for writing after it was exchanged

_NOREPLACE, _EXCHANGE = 1, 2  # flags of renameat2(2)
_HERE = -100  # AT_FDCWD


def digest(text: str) -> str:
    """What `write` compares: the SHA-256 of the text's bytes."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read(path: Path) -> str | None:
    """The note's text, to the byte; None when there is none."""
    data = _load(path)
    return None if data is None else _decoded(data, path)


def write(path: Path, text: str, *, expected: str | None) -> bool:
    """Put a text in place of the version with the digest ``expected``, or make a new note when that is None."""

    def change(old: str | None) -> str:
        if (None if old is None else digest(old)) != expected:
            raise EditConflict(f"{path} was changed by somebody else and is left as it is.")
        return text

    return update(path, change)


def append(path: Path, text: str, *, head: str = "") -> bool:
    """Add a text at the end; a new note begins with ``head``. What stands there is kept to the byte."""

    def change(old: str | None) -> str:
        before = head if old is None else old
        newline = "\r\n" if "\r\n" in before else "\n"
        gap = "" if not before or before.endswith("\n") else newline
        return before + gap + text.replace("\n", newline)

    return update(path, change)


def update(path: Path, change: Change, *, wait_s: float = LOCK_WAIT_S) -> bool:
    """Change a note by a function of its text; whether it changed. True means: it is on the disk.

    Raises `WriteError`, and then the note is as it was.
    """
    try:
        make_folder(path.parent)
        with file_lock(path.parent, wait_s):
            return _update(path, change)
    except LockTimeout as error:
        raise WriteError(f"{path} was not written. {error}") from error
    except OSError as error:
        raise WriteError(
            f"{path} could not be written ({error.strerror or error}); it is as it was."
        ) from error


def _update(path: Path, change: Change) -> bool:
    _sweep(path)
    added = b""  # by somebody else, onto a version of ours that stood there for a moment
    for _ in range(ATTEMPTS):
        old = _load(path)
        text = change(None if old is None else _decoded(old, path))
        new = (_encoded(text, path) if text is not None else old or b"") + added
        if new == (old or b"") and (text is None or old is not None):
            return False
        done, more = _install(path, old, new)
        if done:
            return True
        added += more
    if added:
        _append_in_place(path, added)
    raise EditConflict(f"{path} is being changed by somebody else all the time; try again.")


def _install(path: Path, old: bytes | None, new: bytes) -> tuple[bool, bytes]:
    """Exchange the note for its new version; whether that was done, and what else was written onto it meanwhile.

    It is not done when the note is no longer what the new version was made from.
    """
    temporary = _write_beside(path, new)
    try:
        if not (_place(temporary, path) if old is None else _exchange(temporary, path, old)):
            return False, _added_to(temporary, path, new)
        try:
            sync_folder(path.parent)
        except OSError:
            # Nobody knows what the disk has now: show the old version again, and let the caller hear of it.
            _take_back(temporary, path, was_new=old is None)
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
            temporary.replace(path)  # a system without exchange: the comparison above must do
            return True
    except FileNotFoundError:
        return False  # the note was deleted under our hands: begin again with that
    if is_closed_for_writing(temporary) and _load(temporary) == old:
        return True
    _give_back(temporary, path)
    return False


def _give_back(theirs: Path, path: Path) -> None:
    """A person's version came out of the exchange: put it back, or at least leave it where they see it."""
    try:
        exchange_files(theirs, path)
    except OSError:
        _keep_copy(theirs, path)
        raise


def _added_to(ours: Path, path: Path, new: bytes) -> bytes:
    """What somebody added to our version before theirs was put back; an edit of another kind is kept as a copy."""
    if not is_closed_for_writing(ours):
        _keep_copy(ours, path)
        return b""
    data = _load(ours) or b""
    if not data.startswith(new):
        _keep_copy(ours, path)
        return b""
    return data[len(new) :]


def _append_in_place(path: Path, added: bytes) -> None:
    """Put back what somebody else appended to a version that is gone, in the way in which they did."""
    with path.open("ab") as file:
        file.write(added)
        file.flush()
        os.fsync(file.fileno())


def _keep_copy(version: Path, path: Path) -> None:
    """Leave a version that is not ours beside the note, where people see it."""
    for number in itertools.count(1):
        try:
            rename_without_replacing(version, path.with_name(f"{path.stem}.edited-{number}{path.suffix}"))
        except FileExistsError:
            continue
        return


def _take_back(temporary: Path, path: Path, *, was_new: bool) -> None:
    with contextlib.suppress(OSError):
        if was_new:
            path.unlink(missing_ok=True)
        elif temporary.exists():
            exchange_files(temporary, path)


# ---- bytes -----------------------------------------------------------------------------------------------------


def _sweep(path: Path) -> None:
    """Remove what killed writers left: under the lock no living one has a temporary file here."""
    prefix = f".{path.name[:40]}."
    for entry in os.scandir(path.parent):
        if entry.name.startswith(prefix) and entry.name.endswith(".tmp"):
            with contextlib.suppress(OSError):
                os.unlink(entry.path)  # noqa: PTH108


def _load(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise WriteError(f"{path} is a symbolic link; it is not written through.") from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise WriteError(f"{path} is not a plain file; it is left as it is.")
        return file.read()


def _encoded(text: str, path: Path) -> bytes:
    """The text's bytes; what could not be read back is never written."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise WriteError(
            f"{path} is left as it is: the new text has no UTF-8 form (character {error.start})."
        ) from error


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WriteError(f"{path} is not UTF-8 (byte {error.start}); it is left as it is.") from error


# ---- system calls ------------------------------------------------------------------------------------------------


def exchange_files(one: Path, other: Path) -> bool:
    """Swap two files' names; False where the system or its file system cannot."""
    return _renameat2(one, other, _EXCHANGE)


def rename_without_replacing(temporary: Path, path: Path) -> None:
    """Give a file its name; `FileExistsError` when another has it."""
    if not _renameat2(temporary, path, _NOREPLACE):
        os.link(temporary, path)


def is_closed_for_writing(path: Path) -> bool:
    """Whether nobody has the file open for writing any more, asked by a lease; True where leases are unknown."""
    if sys.platform != "linux":
        return True
    import fcntl

    end = time.monotonic() + SETTLE_S
    with path.open("rb") as file:
        # Whoever opens a leased file has its holder signalled, by default with one that kills; this one is ignored.
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
    """Rename with flags; False where it is unknown."""
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
