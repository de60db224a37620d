"""Session transcripts: JSONL files that only grow.

Reading continues at the last position if the file is still the same one. A truncated or replaced file is read from the
start. The result are passages with the line numbers of the file. Damaged lines are counted and left out.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from memoriter.errors import NotFound, PathRefused, SourceError
from memoriter.files import shared
from memoriter.files.paths import open_inside
from memoriter.files.scan import Scan, Tree, Walk, is_citable
from memoriter.records import Document, Excerpt, FoundFile, Problem, Turn
from memoriter.sessions.messages import parse_or_empty, turns_of_file
from memoriter.sessions.outside_text import TrustRules
from memoriter.sessions.passages import PassageReader, ReadPosition, local_time

PREFIX = "sessions/"
#: Bytes at both ends of the part that was read. They must be unchanged to continue.
CHECKED_BYTES = 1024
#: Bytes that are read at a time to compare a whole file.
BLOCK_BYTES = 1024 * 1024
EXCERPT_LINES = 50

_JSONL = re.compile(r"(?:(?!\.)[^/]+/)*(?!\.)[^/]+\.jsonl")


class Transcripts:
    """The transcripts in a list of folders and files."""

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        tokens: int = 512,
        target: int | None = None,
        rules: TrustRules | None = None,
        compares_inodes: bool = True,
    ) -> None:
        self.roots = tuple(Path(root) for root in roots)
        self.tokens = tokens
        self.target = tokens if target is None else target
        self._rules = rules or TrustRules()
        #: Whether a file with another inode is another file. Copies on several machines have different ones.
        self._compares_inodes = compares_inodes
        #: Bytes read by this object, for tests.
        self.bytes_read = 0

    # ---- listing ----------------------------------------------------------------------------------------------

    def scan(self) -> Scan:
        """List the transcripts without opening them."""
        files: dict[str, FoundFile] = {}
        problems: list[Problem] = []
        trees = list(self._trees())
        folders = {path: shared.changed_at(path) for path in (str(root.expanduser()) for root in self.roots)}
        for tree in trees:
            walk = Walk(tree)
            problems += walk.problems
            folders |= walk.folders
            for found in walk.files:
                # Two folders may contain the same name. The second file is cited by its full path.
                path = str(found.absolute) if found.path in files else found.path
                files[path] = replace(found, path=path, source="sessions")
        return Scan(tuple(files[path] for path in sorted(files)), tuple(problems), folders)

    def find(self, path: str) -> FoundFile | None:
        """Find one transcript by its path without opening it, or return None."""
        for tree in self._trees():
            if path.startswith(PREFIX) and (found := _find(tree, path.removeprefix(PREFIX), path)):
                return found
            if tree.holds(path):
                relative = tree.relative(path)
                first = self.find(PREFIX + relative)
                # Only the second file of a name is cited by its full path.
                if first and str(first.absolute) != path and (found := _find(tree, relative, path)):
                    return found
        return None

    def locate(self, transcript: str | Path) -> FoundFile:
        """Find one transcript by its file or its path. Raises `NotFound`."""
        file = Path(transcript).expanduser().resolve()
        for found in self.scan().files:
            if found.path == str(transcript) or found.absolute == file:
                return found
        raise NotFound(f"'{transcript}' is not one of the transcripts in `sessions.paths`.")

    def _trees(self) -> Iterator[Tree]:
        for root in self.roots:
            shared.refresh(root)
            real = os.path.realpath(root.expanduser())
            if Path(real).is_dir():
                yield Tree(real, PREFIX, _JSONL, ("",))
            elif Path(real).is_file():
                folder, name = os.path.split(real)
                yield Tree(folder, PREFIX, re.compile(re.escape(name)), (name,))

    # ---- reading ----------------------------------------------------------------------------------------------

    def read(self, found: FoundFile, state: str = "") -> Iterator[Document]:
        """Read a transcript from the position ``state``, one bounded slice at a time. Raises `SourceError`."""
        position = ReadPosition.from_json(state) if state else ReadPosition()
        with self._open(found) as (file, status):
            if not self._is_same_file(file, status, position):
                position = ReadPosition()
            more = True
            while more:
                document, position, more = self._slice(file, status, found, position)
                yield document

    @contextmanager
    def _open(self, found: FoundFile) -> Iterator[tuple[BinaryIO, os.stat_result]]:
        file = str(found.absolute)
        tree = next((tree for tree in self._trees() if tree.holds(file)), None)
        if tree is None:
            raise PathRefused("The file is not in a transcript folder.")
        with (
            open_inside(tree.real, tree.relative(file)) as descriptor,
            open(descriptor, "rb", closefd=False) as opened,
        ):
            yield opened, os.fstat(descriptor)

    def _is_same_file(self, file: BinaryIO, status: os.stat_result, position: ReadPosition) -> bool:
        """Return whether the file still starts with the part that was read.

        A file that has grown is compared at the start and the end of that part. One that was written without growing
        is compared as a whole, since something in the middle must have changed.
        """
        is_other = self._compares_inodes and status.st_ino != position.inode
        if position.offset == 0 or status.st_size < position.offset or is_other:
            return False
        if (self._head(file, position.offset), self._tail(file, position.offset)) != (
            position.head,
            position.tail,
        ):
            return False
        has_grown = status.st_size > position.size
        if has_grown or (status.st_size, status.st_mtime_ns) == (position.size, position.mtime_ns):
            return True
        return self._checksum(file, position.offset) == position.checksum

    def _head(self, file: BinaryIO, offset: int) -> str:
        return self._digest(file, 0, min(CHECKED_BYTES, offset))

    def _tail(self, file: BinaryIO, offset: int) -> str:
        return self._digest(file, max(0, offset - CHECKED_BYTES), offset)

    def _checksum(self, file: BinaryIO, end: int) -> int:
        file.seek(0)
        checksum, left = 0, end
        while data := file.read(min(left, BLOCK_BYTES)):
            checksum, left = zlib.crc32(data, checksum), left - len(data)
            self.bytes_read += len(data)
        return checksum

    def _digest(self, file: BinaryIO, start: int, end: int) -> str:
        file.seek(start)
        data = file.read(end - start)
        self.bytes_read += len(data)
        return hashlib.sha256(data).hexdigest()

    def _slice(
        self, file: BinaryIO, status: os.stat_result, found: FoundFile, position: ReadPosition
    ) -> tuple[Document, ReadPosition, bool]:
        """Read one slice. Return its document, the new position, and whether there is more."""
        reader = PassageReader(position, self.tokens, self.target, self._rules)
        first = position.open[0].line if position.open else position.line + 1
        file.seek(position.offset)
        more = reader.read(file)
        self.bytes_read += reader.bytes_read
        after = replace(
            reader.position(),
            inode=status.st_ino,
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            head=self._head(file, reader.offset),
            tail=self._tail(file, reader.offset),
        )
        document = Document(
            path=found.path,
            source="sessions",
            text="",
            sha256=hashlib.sha256(
                f"{after.head} {after.tail} {after.checksum} {status.st_size}".encode()
            ).hexdigest(),
            mtime_ns=status.st_mtime_ns,
            size=status.st_size,
            note=_damage(after.damaged + reader.damaged_ending),
            passages=tuple(reader.complete if more else reader.complete + reader.incomplete()),
            from_line=first,
            state=after.to_json(),
        )
        return document, after, more

    def turns(self, found: FoundFile) -> Iterator[Turn]:
        """Yield all turns from the start."""
        with self._open(found) as (file, _):
            for _, turns in turns_of_file(file, self._rules):
                yield from turns

    def session(self, found: FoundFile) -> str:
        """Return the id of the session from its first lines, or the name of the file."""
        with self._open(found) as (file, _):
            for _, line in zip(range(50), file, strict=False):
                session = parse_or_empty(line).session
                if session:
                    return session
        return found.absolute.stem

    # ---- a few lines ------------------------------------------------------------------------------------------

    def excerpt(self, path: str, start: int = 1, lines: int | None = None) -> Excerpt:
        """Return some lines of a transcript for people: cleaned, with speaker and time.

        Each line of the excerpt is one line of the file. Lines without speech are empty.
        """
        if start < 1 or (lines is not None and lines < 1):
            raise SourceError(f"Invalid line range: start {start}, {lines} lines. Lines are counted from 1.")
        found = self.find(path)
        if found is None:
            raise NotFound(f"The transcript {path!r} does not exist.")
        end = start - 1 + (lines or EXCERPT_LINES)
        shown, total = list[str](), 0
        with self._open(found) as (file, _):
            for _, turns in turns_of_file(file, self._rules):
                total += 1
                if start <= total <= end:
                    shown.append(_format(turns) if turns else "")
        return Excerpt(path, "\n".join(shown), start, start - 1 + len(shown), total)


def _find(tree: Tree, relative: str, path: str) -> FoundFile | None:
    plain = os.path.join(tree.real, *relative.split("/"))  # noqa: PTH118
    if not tree.matches(relative) or not is_citable(path) or ".." in relative.split("/"):
        return None
    try:
        real = os.path.realpath(plain)
        status = os.lstat(real)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode) or (real != plain and not tree.may_lead_to(real, relative)):
        return None
    return FoundFile(path, "sessions", Path(real), status.st_mtime_ns, status.st_size)


def _damage(lines: int) -> str | None:
    return f"{lines} damaged {'line was' if lines == 1 else 'lines were'} left out" if lines else None


def _format(turns: Sequence[Turn]) -> str:
    first = turns[0]
    when = f" ({local_time(first.time):%Y-%m-%d %H:%M})" if first.time else ""
    return f"{first.role}{when}: {' '.join(word for turn in turns for word in turn.text.split())}"
