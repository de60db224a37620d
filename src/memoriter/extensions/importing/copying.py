"""Copy files of other programs into the memory without overwriting anything.

A file that exists at the target is compared and never replaced. There are two exceptions. A transcript only grows, so a
copy that is its beginning is updated. A transcript built from a database carries a digest (the seal); as long as the
seal matches, the copy was not edited and a newer version may replace it. Links in the target path are not followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from memoriter.errors import NotFound, SourceError, message_of, reason_of
from memoriter.files import shared
from memoriter.files.durable import make_folder, write_beside
from memoriter.files.paths import open_folder
from memoriter.files.platform import open_plain, rename_without_replacing, replace, sync_path
from memoriter.hosts import ImportAction, ImportStep
from memoriter.text.redaction import clean_values, redact

MAX_FILE_BYTES = 512 * 1024 * 1024
BLOCK_BYTES = 1024 * 1024
#: The key of the digest in the first record.
SEAL = "sealed"


@dataclass(frozen=True, slots=True)
class SealedTranscript:
    """A transcript built from a database. Its first record is the session's header."""

    records: Sequence[Mapping[str, Any]]
    written_ns: int

    def to_bytes(self) -> bytes:
        """Return the transcript with a digest of the body in its header."""
        header, *rest = self.records
        body = b"".join(_line(record) for record in rest)
        return _line({**header, SEAL: hashlib.sha256(body).hexdigest()}) + body

    def may_replace(self, existing: bytes) -> bool:
        """Return whether the existing file is an earlier version, or a copy of the session's former file."""
        first, _, body = existing.partition(b"\n")
        try:
            seal = json.loads(first).get(SEAL)
            if seal is not None:
                return bool(seal == hashlib.sha256(body).hexdigest())
            records = map(json.loads, existing.splitlines())
            messages = [record for record in records if record.get("type") == "message"]
            known = {record.get("id") for record in self.records}
            return bool(json.loads(first).get("id") == self.records[0].get("id")) and all(
                message.get("id") in known for message in messages
            )
        except (ValueError, AttributeError, RecursionError, TypeError):  # TypeError: an id is a list
            return False


class AgentNote(SealedTranscript):
    """A note that a model wrote in another program. The copy says so in its front matter and has no secrets."""

    def __init__(self, text: str, written_ns: int) -> None:
        super().__init__([{"text": text}], written_ns)

    def to_bytes(self) -> bytes:
        """Return the note with the trust `agent`, which is the first line of its front matter."""
        text = redact(str(self.records[0]["text"]))
        marked = (
            f'---\ntrust: "agent"\n{text[4:]}'
            if text.startswith("---\n")
            else f'---\ntrust: "agent"\n---\n\n{text}'
        )
        return marked.encode("utf-8", "replace")

    def may_replace(self, existing: bytes) -> bool:
        """Return False: a copy that differs was edited, or the note has changed."""
        del existing
        return False


def _line(record: Mapping[str, Any]) -> bytes:
    return (
        json.dumps(clean_values(record), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        + b"\n"
    )


def _clean_line(line: bytes) -> bytes:
    """Return a line of a transcript without secrets and private spans. Other lines stay as they are, byte by byte."""
    try:
        record = json.loads(line)
        cleaned = clean_values(record)
    except (ValueError, RecursionError):
        return redact(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return line if cleaned == record else _line(cleaned)


def plan_copy(
    kind: Literal["note", "session"],
    source: Path,
    root: Path,
    *parts: str,
    transcript: SealedTranscript | None = None,
) -> ImportStep:
    """Return what copying a file, or writing a transcript, to this path below the root would do."""
    target = root.joinpath(*parts)
    try:
        action = _compare(source, root, target, grows=kind == "session", transcript=transcript)
    except (SourceError, OSError) as error:
        return ImportStep(kind, source, target, "other", message_of(error))
    note = "a different file exists there" if action == "other" else ""
    version = hashlib.sha256(transcript.to_bytes()).hexdigest() if transcript else ""
    title = str(transcript.records[0].get("title") or "") if transcript else ""
    return ImportStep(kind, source, target, action, note, title, version)


def copy_file(step: ImportStep, root: Path, transcript: SealedTranscript | None = None) -> ImportStep:
    """Carry out a step; return it, or a skipped step with the reason."""
    if step.action not in ("new", "grown"):
        return step
    try:
        _write(step, root, transcript)
    except (SourceError, NotFound, OSError) as error:
        return ImportStep(step.kind, step.source, step.target, "other", message_of(error))
    return step


def remove_copy(root: Path, target: Path, version: str) -> bool:
    """Remove a file that was copied here, unless it has changed since. Returns whether it was removed."""
    parts = target.relative_to(root).parts[:-1]
    try:
        with shared.changing(target), open_folder(root, parts) as folder:
            file = folder / target.name
            with _open_regular(file) as existing:
                same = hashlib.sha256(existing.read()).hexdigest() == version
            if same:
                file.unlink()
                sync_path(folder)
            return same
    except (NotFound, SourceError):
        return False


# ---- comparing ------------------------------------------------------------------------------------------------


def _compare(
    source: Path, root: Path, target: Path, *, grows: bool, transcript: SealedTranscript | None
) -> ImportAction:
    try:
        with open_folder(root, target.relative_to(root).parts[:-1]) as folder:
            existing = folder / target.name
            if transcript:
                return _compare_transcript(transcript, existing)
            return _compare_files(source, existing, grows=grows)
    except (NotFound, FileNotFoundError):
        return "new"


def _compare_files(source: Path, existing: Path, *, grows: bool) -> ImportAction:
    if not stat.S_ISREG(existing.lstat().st_mode):
        return "other"
    with _open_regular(source) as new, existing.open("rb") as old:
        found = _compare_blocks(iter(lambda: new.read(BLOCK_BYTES), b""), old, grows=grows)
        if not grows:
            return found
        new.seek(0)
        old.seek(0)
        cleaned = _compare_blocks(map(_clean_line, new), old, grows=grows)
        # A copy of an older version may contain secrets. It is written again.
        return "grown" if cleaned == "other" and found == "same" else found if cleaned == "other" else cleaned


def _compare_blocks(new: Iterator[bytes], old: BinaryIO, *, grows: bool) -> ImportAction:
    for block in new:
        known = old.read(len(block))
        if known != block:
            return "grown" if grows and block.startswith(known) else "other"
    return "other" if old.read(1) else "same"


def _compare_transcript(transcript: SealedTranscript, existing: Path) -> ImportAction:
    status = existing.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
        return "other"
    data = existing.read_bytes()
    return "same" if data == transcript.to_bytes() else "grown" if transcript.may_replace(data) else "other"


# ---- writing --------------------------------------------------------------------------------------------------


def _write(step: ImportStep, root: Path, transcript: SealedTranscript | None) -> None:
    """Write the target durably. It keeps the modification time of its source."""
    make_folder(root)
    parts = step.target.relative_to(root).parts[:-1]
    with shared.changing(step.target), open_folder(root, parts, make=True) as folder:
        target = folder / step.target.name
        with io.BytesIO(transcript.to_bytes()) if transcript else _open_regular(step.source) as source:
            blocks = iter(lambda: source.read(BLOCK_BYTES), b"")
            copied = step.kind == "session" and transcript is None
            temporary = write_beside(target, map(_clean_line, source) if copied else blocks)
            written = transcript.written_ns if transcript else os.fstat(source.fileno()).st_mtime_ns
        try:
            os.utime(temporary, ns=(written, written))
            if step.action == "new":
                rename_without_replacing(temporary, target)
            else:
                replace(temporary, target)
        except FileExistsError as error:
            raise SourceError(
                f"{step.target} was created by another program and is left unchanged."
            ) from error
        finally:
            temporary.unlink(missing_ok=True)
        sync_path(folder)


@contextlib.contextmanager
def _open_regular(source: Path) -> Iterator[BinaryIO]:
    """Open a regular file without following links."""
    try:
        descriptor = open_plain(source)
    except OSError as error:
        raise SourceError(f"Cannot read {source}: {reason_of(error)}.") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            raise SourceError(f"{source} is not a regular file, or is too large.")
        yield file


def json_files(source: Path | None) -> list[str]:
    """Return the names of the JSON files in a folder or an archive. A file is neither."""
    import zipfile

    if source is None:
        return []
    if source.is_dir():
        return sorted(file.name for file in source.glob("*.json"))
    if not source.is_file() or not zipfile.is_zipfile(source):  # a pipe would wait for its writer
        return []
    with zipfile.ZipFile(source) as archive:
        return sorted({Path(name).name for name in archive.namelist() if name.endswith(".json")})
