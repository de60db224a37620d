"""Putting one file in another's place in a single step, and seeing what came out.

Linux can exchange two names, and can refuse to replace one; elsewhere the callers must do with a plain rename.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

SETTLE_S = 2.0  #: how long an editor may keep the old version open for writing after it was exchanged

_NOREPLACE, _EXCHANGE = 1, 2  # flags of renameat2(2)
_HERE = -100  # AT_FDCWD


def exchange(one: Path, other: Path) -> bool:
    """Swap two files' names; False where the system or its file system cannot."""
    return _renameat2(one, other, _EXCHANGE)


def place(temporary: Path, path: Path) -> None:
    """Give a file its name; `FileExistsError` when another has it."""
    if not _renameat2(temporary, path, _NOREPLACE):
        os.link(temporary, path)


def is_settled(path: Path) -> bool:
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
