"""What differs between Linux, macOS and Windows: opening, syncing, renaming, locks, owners, processes, names.

Other modules ask here instead of asking for the system. Clients of the resident process must start quickly, so this
module imports nothing else.
"""

from __future__ import annotations

import errno
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any, TypeVar

    T = TypeVar("T")

#: A link is not followed, where the system knows such a flag.
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
#: Opening a pipe does not wait for its writer, and a terminal does not become the controlling terminal.
READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
READ |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
#: Whether a file can be opened relative to an open folder, without following links.
CAN_WALK = os.open in os.supports_dir_fd and bool(NOFOLLOW)
#: Whether the system has paths that keep pointing to an open folder.
CAN_PIN = sys.platform == "linux" and os.path.isdir("/proc/self/fd")  # noqa: PTH112 - pathlib is slow to load
#: Whether an open or mapped file can be deleted and replaced.
CAN_REPLACE_OPEN_FILES = sys.platform != "win32"
#: Whether a folder can be opened and locked.
CAN_LOCK_FOLDERS = sys.platform != "win32"
#: Bytes of the address of a Unix socket, on the strictest system (macOS) with its last zero byte; 0 without them.
MAX_ADDRESS_BYTES = 103 if sys.platform != "win32" else 0
#: The family of Unix sockets, on every system that has them.
AF_UNIX = 1
#: How long a file that another program holds open is waited for, on a system where that keeps it from being replaced.
SHARING_S = 1.0


class DeadlineMissed(Exception):
    """A call did not return in time."""


# ---- files -----------------------------------------------------------------------------------------------------


def open_plain(path: str | Path, flags: int = READ, mode: int = 0o600) -> int:
    """Open a file unless it is a link, which raises `OSError` with ELOOP."""
    descriptor = os.open(path, flags | NOFOLLOW, mode)
    if not NOFOLLOW and not os.path.samestat(os.fstat(descriptor), os.lstat(path)):
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return descriptor


def sync_file(descriptor: int, *, data_only: bool = False) -> None:
    """Wait until a file, or its content alone, is on disk. On macOS, `fsync` leaves it in the cache of the drive."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:  # a network disk
            os.fsync(descriptor)
    elif data_only and sys.platform == "linux":
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def sync_path(path: str | Path) -> None:
    """Sync a file or the names in a folder. Windows opens no folders; NTFS has a journal for names."""
    is_folder = os.path.isdir(path)  # noqa: PTH112
    if is_folder and not CAN_LOCK_FOLDERS:
        return
    descriptor = os.open(path, os.O_RDONLY if CAN_LOCK_FOLDERS else os.O_RDWR)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def rename_without_replacing(source: str | Path, target: str | Path) -> None:
    """Rename a file. Raises `FileExistsError` if the new name is taken.

    A disk that knows no exclusive rename gives the file both names for a moment.
    """
    for rename in (_rename_exclusively, _link_and_unlink) if sys.platform != "win32" else ():
        try:
            return rename(source, target)
        except FileExistsError:
            raise
        except OSError:
            continue
    if sys.platform != "win32" and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
    return sharing(lambda: os.rename(source, target))  # noqa: PTH104 - Windows does not replace


def _rename_exclusively(source: str | Path, target: str | Path) -> None:
    import ctypes

    library, old, new = ctypes.CDLL(None, use_errno=True), os.fsencode(source), os.fsencode(target)
    if sys.platform == "darwin":
        failed = library.renamex_np(old, new, 4)  # RENAME_EXCL
    elif hasattr(library, "renameat2"):
        failed = library.renameat2(-100, old, -100, new, 1)  # AT_FDCWD, RENAME_NOREPLACE
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(source))
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(source), None, str(target))


def _link_and_unlink(source: str | Path, target: str | Path) -> None:
    os.link(source, target)
    os.unlink(source)  # noqa: PTH108


def replace(source: str | Path, target: str | Path) -> None:
    """Rename a file and replace the one that has the name."""
    sharing(lambda: os.replace(source, target))  # noqa: PTH105


def sharing(call: Callable[[], T]) -> T:
    """Call a function again for a moment while another program, such as a virus scanner, holds its file open."""
    until = time.monotonic() + (0 if CAN_REPLACE_OPEN_FILES else SHARING_S)
    while True:
        try:
            return call()
        except FileExistsError:
            raise
        except PermissionError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.01)


# ---- names -----------------------------------------------------------------------------------------------------

HAS_RESERVED_NAMES = sys.platform == "win32"
#: Names of devices, with any suffix.
RESERVED = {"con", "prn", "aux", "nul", "conin$", "conout$"}
RESERVED |= {port + number for port in ("com", "lpt") for number in "0123456789¹²³"}


def is_reserved(name: str) -> bool:
    """Return whether this system cannot have a file of this name."""
    if not HAS_RESERVED_NAMES:
        return False
    is_device = name.partition(".")[0].rstrip().lower() in RESERVED
    return is_device or name[-1:] in (".", " ") or not set('<>:"|?*').isdisjoint(name)


def same_path(one: str, other: str) -> bool:
    """Compare two paths as macOS and Windows do: without case, and with one form of each character."""
    import unicodedata

    return unicodedata.normalize("NFC", one).casefold() == unicodedata.normalize("NFC", other).casefold()


def hook_command(arguments: Sequence[str]) -> str:
    """Quote a command so that sh, and on Windows also cmd, Git Bash and PowerShell, read the same words.

    Git Bash removes backslashes, so paths have forward slashes. PowerShell calls a program in quotes only after `&`,
    so a program that the search path finds is called by its name.
    """
    program = arguments[0]
    if sys.platform == "win32":
        from shutil import which

        name = os.path.splitext(os.path.basename(program))[0]  # noqa: PTH119, PTH122
        program = name if same_path(which(name) or "", program) else program
    return command_line([program, *arguments[1:]])


def command_line(arguments: Sequence[str]) -> str:
    """Quote a command that a person copies into any shell of this system."""
    return " ".join(map(quote, arguments))


def quote(argument: str) -> str:
    """Quote a part of such a command."""
    if sys.platform != "win32":
        import shlex

        return shlex.quote(argument)
    text = argument.replace("\\", "/") if os.path.isabs(argument) else argument.replace('"', '\\"')  # noqa: PTH117
    return text if text and all(char.isalnum() or char in "-_.:=+" for char in text) else f'"{text}"'


# ---- owners ----------------------------------------------------------------------------------------------------

if sys.platform == "win32":
    #: Everyone, all users, interactive and network users, guests and those without a name.
    _OTHERS = (";WD)", ";AU)", ";BU)", ";IU)", ";NU)", ";BG)", ";AN)")
    _OWNER, _ACCESS, _READ_TOKEN, _TOKEN_USER, _REVISION = 1, 4, 8, 1, 1

    def _security(path: str | Path, part: int) -> str:
        """Return the owner or the access list of a file in the security descriptor language."""
        import win32security

        try:
            found = win32security.GetFileSecurity(str(path), part)
        except win32security.error as error:  # it is no `OSError`
            os.lstat(path)
            raise PermissionError(errno.EACCES, error.strerror, str(path)) from error
        text = win32security.ConvertSecurityDescriptorToStringSecurityDescriptor(found, _REVISION, part)
        return str(text)

    def _user() -> str:
        import win32api
        import win32security

        token = win32security.OpenProcessToken(win32api.GetCurrentProcess(), _READ_TOKEN)
        return str(
            win32security.ConvertSidToStringSid(win32security.GetTokenInformation(token, _TOKEN_USER)[0])
        )

    def is_own(path: str | Path) -> bool:
        """Return whether a file belongs to this user, or to the administrators of the machine."""
        return _security(path, _OWNER).removeprefix("O:") in (_user(), "BA", "SY")

    def is_private(path: str | Path) -> bool:
        """Return whether only this user and the administrators can use a file or a folder."""
        return not any(other in _security(path, _ACCESS) for other in _OTHERS)

    def make_private(path: str | Path) -> None:
        """Let only this user, the system and the administrators use a file, or a folder and what will be in it."""
        import win32security

        rights = "".join(f"(A;OICI;FA;;;{who})" for who in (_user(), "SY", "BA"))
        access = win32security.ConvertStringSecurityDescriptorToSecurityDescriptor(f"D:P{rights}", _REVISION)
        try:
            win32security.SetFileSecurity(str(path), _ACCESS, access)
        except win32security.error:
            return  # a disk without access lists

    def mode_of(path: str | Path) -> int:
        """Return the mode of a file for `set_mode`. Windows has none, so it says who can use the file."""
        return 0o600 if is_private(path) and not is_private(os.path.dirname(path)) else 0o666  # noqa: PTH120

    def set_mode(path: str | Path, mode: int) -> None:
        """Set the mode of a file, whatever the umask. On Windows, a file that others cannot read is made private."""
        if mode & 0o077 == 0:
            make_private(path)

else:

    def is_own(path: str | Path) -> bool:
        """Return whether a file belongs to this user."""
        return os.lstat(path).st_uid == os.geteuid()

    def is_private(path: str | Path) -> bool:
        """Return whether only this user can use a file or a folder."""
        found = os.lstat(path)
        return found.st_uid == os.geteuid() and found.st_mode & 0o077 == 0

    def make_private(path: str | Path) -> None:
        """Let only this user use a file or a folder."""
        os.chmod(path, 0o700 if os.path.isdir(path) else 0o600)  # noqa: PTH101, PTH112

    def mode_of(path: str | Path) -> int:
        """Return the mode of a file."""
        return os.stat(path).st_mode & 0o7777  # noqa: PTH116

    def set_mode(path: str | Path, mode: int) -> None:
        """Set the mode of a file, whatever the umask."""
        os.chmod(path, mode)  # noqa: PTH101


def how_to_make_private(path: str | Path) -> str:
    """Return the command with which a person does the same to a folder."""
    if sys.platform == "win32":
        user = os.environ.get("USERNAME", "")
        return f'icacls {quote(str(path))} /inheritance:r /grant:r "{user}:(OI)(CI)F"'
    return f"chmod 700 {quote(str(path))}"


# ---- locks -----------------------------------------------------------------------------------------------------


def lock_folder(folder: str, *, wait: bool = True) -> int:
    """Lock a folder, or on Windows a file in it, until the descriptor is closed. Else raise `BlockingIOError`."""
    if sys.platform == "win32":
        import msvcrt

        descriptor = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT | os.O_NOINHERIT, 0o600)
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError as error:
                if not wait:
                    os.close(descriptor)
                    raise BlockingIOError(*error.args) from error
                time.sleep(0.01)
            else:
                return descriptor
    import fcntl

    descriptor = os.open(folder, FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


# ---- processes -------------------------------------------------------------------------------------------------


def is_alive(pid: int) -> bool:
    """Return whether a process of this number runs."""
    if sys.platform == "win32":
        import win32api
        import win32process

        try:
            process = win32api.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
        except win32api.error as error:
            return bool(error.winerror == 5)  # access is denied
        return bool(win32process.GetExitCodeProcess(process) == 259)  # STILL_ACTIVE
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno == errno.EPERM
    return True


def start_server(command: Sequence[str], environ: Mapping[str, str], listener: Any) -> None:
    """Start a program that outlives this one. `inherited_listener` returns the listening socket there."""
    if sys.platform == "win32":
        return start_detached(command, environ, listener.share)
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in (1, 2)]
    actions.append((os.POSIX_SPAWN_DUP2, listener.fileno(), 0))  # its standard input is the socket
    try:
        os.posix_spawn(command[0], list(command), environ, file_actions=actions, setsid=True)
    finally:
        os.close(null)
    return None


def inherited_listener() -> socket.socket:
    """Return the listening socket that `start_server` passed on standard input, and close that."""
    import socket

    if sys.platform == "win32":
        listener = socket.fromshare(sys.stdin.buffer.read())
    else:
        listener = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as null:  # noqa: PTH123
        os.dup2(null.fileno(), 0)
    return listener


def start_detached(command: Sequence[str], environ: Mapping[str, str], data: Callable[[int], bytes]) -> None:
    """Start a program that outlives this one and its terminal, on Windows. ``data``: its input, by its number."""
    import subprocess

    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    leave_job = getattr(subprocess, "CREATE_BREAKAWAY_FROM_JOB", 0)
    null = subprocess.DEVNULL
    options: dict[str, Any] = {"env": {**environ}, "stdin": subprocess.PIPE, "stdout": null, "stderr": null}
    try:
        process = subprocess.Popen(command, creationflags=flags | leave_job, **options)  # noqa: S603
    except PermissionError:  # the host does not let its processes leave
        process = subprocess.Popen(command, creationflags=flags, **options)  # noqa: S603
    assert process.stdin is not None
    with process.stdin:
        process.stdin.write(data(process.pid))
    process.returncode = 0  # it is not waited for


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return what a function returns. Raises `DeadlineMissed` after some seconds, wherever the function waits."""
    if sys.platform == "win32":
        return _within_in_thread(seconds, call)
    import _signal  # type: ignore[import-not-found]  # `signal` turns all constants into enums

    def stop(*_: object) -> None:
        raise DeadlineMissed

    before = _signal.signal(_signal.SIGALRM, stop)
    _signal.setitimer(_signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        return call()
    finally:
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        _signal.signal(_signal.SIGALRM, before)


def _within_in_thread(seconds: float, call: Callable[[], T]) -> T:
    """Run the function in a thread, which is left behind if it is late."""
    import threading

    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.001))
    if failures:
        raise failures[0]
    if not results:
        raise DeadlineMissed
    return results[0]


def is_same_user(stream: _socket.socket) -> bool:
    """Return whether the other end of a Unix socket belongs to the user of this process."""
    import struct

    if sys.platform == "linux":
        import _socket

        _, user, _ = struct.unpack("3i", stream.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
        return bool(user == os.geteuid())
    if sys.platform == "darwin":
        # SOL_LOCAL, LOCAL_PEERCRED: struct xucred
        _, user = struct.unpack_from("2I", stream.getsockopt(0, 1, 76))
        return bool(user == os.geteuid())
    return True  # a token says so
