"""Write the transcript of a session for a program: add items, remove the last one, clear all.

Each line is a JSON object that ``messages`` can read, so the conversation can be searched like any other. Items are
appended in place and synced, so the index reads only the new part. Removed items, and lines that a killed writer left
incomplete, are cut off the end of the file. The program gets back the items that it added, without secrets and
private spans.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memoriter.errors import LockTimeout, WriteError, reason_of
from memoriter.files import shared
from memoriter.files.durable import make_folder
from memoriter.files.locks import file_lock
from memoriter.files.platform import sync_file, sync_path
from memoriter.text.encoding import slug
from memoriter.text.redaction import clean_name, clean_values

_MODE = 0o600
#: Bytes at the end of the file that are read first.
_BLOCK = 1 << 16
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)

Clock = Callable[[], datetime]


def _now() -> datetime:
    return datetime.now(UTC)


class TranscriptWriter:
    """The transcript of one session. It may be used by several threads and processes at the same time."""

    def __init__(self, folder: Path, session: str, *, now: Clock = _now) -> None:
        if not session:
            raise WriteError("A session needs a name.")
        # A file system may treat two names as the same. The digest distinguishes them.
        digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self.session = clean_name(session)
        self.path = folder / f"{slug(self.session)}-{digest}.jsonl"
        if self.session != session and (older := folder / f"{slug(session)}-{digest}.jsonl").exists():
            self.path = older  # written by a version that stored names as they were
        self._now = now

    def items(self, last: int | None = None) -> list[dict[str, Any]]:
        """Return all items, oldest first, or the last ones. A negative number means all."""
        if last is not None and last < 0:
            last = None
        with self._reading() as file:
            found = [] if file is None else [item for _, item in _newest(file, last)]
        return found if last is None else found[max(0, len(found) - last) :]

    def add(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Add items, all or none. They are on disk when this returns."""
        if not items:
            return
        lines = b"".join(self._line(item) for item in items)
        with self._open(os.O_RDWR | os.O_CREAT) as file:
            end = _whole(file)
            os.ftruncate(file, end)
            try:
                _write(file, end, lines if end else self._head() + lines)
            except BaseException:
                os.ftruncate(file, end)
                raise

    def pop(self) -> dict[str, Any] | None:
        """Remove and return the last item, or return None if there is none."""
        shared.refresh(self.path)
        if not self.path.exists():
            return None
        with self._open(os.O_RDWR) as file:
            places = _newest(file, 1)
            if not places:
                return None
            start, item = places[-1]
            os.ftruncate(file, start)
            sync_file(file)
            return item

    def clear(self) -> None:
        """Delete the transcript."""
        with self._locked(), contextlib.suppress(FileNotFoundError):
            self.path.unlink()
            sync_path(self.path.parent)

    # ---- lines -----------------------------------------------------------------------------------------------

    def _head(self) -> bytes:
        return _json({"type": "session", "id": self.session, "timestamp": self._now().isoformat()})

    def _line(self, item: Mapping[str, Any]) -> bytes:
        """Encode an item as a line."""
        stamp = {"type": "message", "timestamp": self._now().isoformat(), "sessionId": self.session}
        return _json({**stamp, "message": clean_values(item)})

    # ---- files -----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _reading(self) -> Iterator[int | None]:
        """Open the file for reading, or yield None if it does not exist."""
        shared.refresh(self.path)
        try:
            file = os.open(self.path, os.O_RDONLY | _PLAIN)
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            raise WriteError(f"{self.path} cannot be read ({error.strerror}).") from error
        try:
            yield file
        finally:
            os.close(file)

    @contextlib.contextmanager
    def _open(self, flags: int) -> Iterator[int]:
        with self._locked():
            new = not self.path.exists()
            file = os.open(self.path, flags | _PLAIN, _MODE)
            try:
                yield file
            finally:
                os.close(file)
            if new:
                sync_path(self.path.parent)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with shared.changing(self.path):
                make_folder(self.path.parent)
                with file_lock(self.path.parent):
                    yield
        except LockTimeout as error:
            raise WriteError(f"{self.path} was not written. {error}") from error
        except OSError as error:
            raise WriteError(
                f"{self.path} could not be written ({reason_of(error)}). It is unchanged."
            ) from error


def _json(record: Mapping[str, Any]) -> bytes:
    try:
        try:
            return json.dumps(record, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError:  # a lone surrogate, which JSON can escape
            return json.dumps(record).encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise WriteError(f"The item cannot be written as JSON: {error}.") from error


def _newest(file: int, wanted: int | None) -> list[tuple[int, dict[str, Any]]]:
    """Return at least ``wanted`` items from the end, or all, with the offsets of their lines, oldest first.

    Each attempt reads the end of the file again, because another process may remove items in the meantime.
    """
    size = _BLOCK
    while True:
        start = 0 if wanted is None else max(0, os.lseek(file, 0, os.SEEK_END) - size)
        content = _content(file, start)
        whole = content.find(b"\n") + 1 if start else 0  # the first line is incomplete
        found = _parse(content[whole:], start + whole)
        if wanted is None or not start or len(found) >= wanted:
            return found
        size *= 8


def _parse(content: bytes, at: int) -> list[tuple[int, dict[str, Any]]]:
    """Return the items of these lines. Lines without an item are skipped."""
    found = list[tuple[int, dict[str, Any]]]()
    for line in content.split(b"\n")[:-1]:  # the part after the last line break is incomplete
        start, at = at, at + len(line) + 1
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict) and record.get("type") == "message":
                item = record.get("item", record.get("message"))
                found += [(start, item)] if isinstance(item, dict) else []
    return found


def _content(file: int, start: int = 0, end: int | None = None) -> bytes:
    os.lseek(file, start, os.SEEK_SET)
    left, parts = (1 << 62) if end is None else end - start, list[bytes]()
    while part := os.read(file, min(1 << 20, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _whole(file: int) -> int:
    """Return the end of the last complete line."""
    end = os.lseek(file, 0, os.SEEK_END)
    while end:
        start = max(0, end - 4096)
        found = _content(file, start, end).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _write(file: int, at: int, data: bytes) -> None:
    os.lseek(file, at, os.SEEK_SET)
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    sync_file(file)
