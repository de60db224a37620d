"""Write notes into a workspace: the daily log `memory/YYYY-MM-DD.md` and `memory/<category>/<title>.md`.

The words of agents go to separate notes, `memory/YYYY-MM-DD-agent.md` and notes whose front matter says so. With
approval, they go to notes with `approval: pending`, which are untrusted until the owner approves them. A note has
one trust as a whole, so the words of agents and of the owner must not be mixed in one note.

Every text is cleaned before it is written. A text that the note already contains is not written again, so a caller can
safely repeat a call whose result it does not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from memoriter.errors import WriteError, reason_of
from memoriter.files import edits
from memoriter.files.locks import check_mounted
from memoriter.notes.chunking import PENDING, trust_of_note
from memoriter.records import Saved, Trust
from memoriter.sentences import sentence
from memoriter.text.encoding import encodable, slug
from memoriter.text.markdown import tag_list
from memoriter.text.redaction import redact, without_private
from memoriter.text.tokens import shorten_title, split_lines

Clock = Callable[[], datetime]

#: Wait for the lock of a summary, whose holder may be waiting for a language model.
LOCK_WAIT_S = 300.0
#: Notes of one name that are tried to find one with the same trust.
MAX_NOTES = 100
#: The width of a title that is cut from a text: 30 Chinese characters, or 120 letters.
MAX_TITLE_WIDTH = 120


class _OtherTrust(Exception):
    """The note has another trust."""


def local_now() -> datetime:
    """Return the current time in the system's time zone."""
    return datetime.now().astimezone()


def clock_of(zone: str) -> Clock:
    """Return a clock for a time zone, or for the system's time zone if the name is empty."""
    return (lambda: datetime.now(ZoneInfo(zone))) if zone else local_now


class Notebook:
    """Writes notes into one folder of a workspace.

    ``was_there`` returns whether its notes have been indexed, and ``changed`` is called after each change.
    """

    def __init__(
        self,
        root: Path,
        *,
        folder: str = "memory",
        now: Clock = local_now,
        was_there: Callable[[], bool] = lambda: False,
        changed: Callable[[], None] = lambda: None,
        holds_agents: bool = False,
    ) -> None:
        self.root = root
        self.changed = changed
        #: Whether notes of agents wait for the owner's approval.
        self.holds_agents = holds_agents
        #: Where the notes are. "." is the workspace itself.
        self.folder = root / folder
        self._prefix = "" if folder == "." else f"{folder}/"
        self.now = now
        self._was_there = was_there

    def check_writable(self) -> None:
        """Raise `WriteError` if the workspace cannot be written, before other work is done."""
        check_mounted(self.root, self._was_there)

    def save(
        self,
        content: str,
        title: str = "",
        tags: Sequence[str] = (),
        category: str | None = None,
        *,
        trust: Trust = "owner",
        made_by: str = "",
    ) -> Saved:
        """Write a note: into the author's log of the day, or with a category into `memory/<category>/<title>.md`.

        Without a category, a tag that is the name of a folder in `memory/` is used as the category. A note that waits
        for approval says who it was made by, such as `tool:NAME`.
        """
        text, left_out = _clean_block(content)
        if not text:
            raise WriteError("Nothing to save: the content is empty or private.")
        title = one_line(_clean_block(title)[0])
        tags = [tag for tag in (one_line(_clean_block(tag)[0]).lstrip("#") for tag in tag_list(tags)) if tag]
        folder = _clean_block(category or "")[0] or next(
            (tag for tag in tags if (self.folder / slug(tag)).is_dir()), None
        )
        if folder:
            saved = self._save_item(folder, title or _first_words(text), text, tags, trust, made_by)
        else:
            saved = self.log(text, title, tags, trust=trust, made_by=made_by)
        waits = sentence("note.pending") if self.holds_agents and trust == "agent" else ""
        note = " ".join(filter(None, (left_out, waits))) or None
        return Saved(saved.path, saved.start_line, saved.end_line, saved.already, note)

    def log(
        self,
        text: str,
        title: str = "",
        tags: Sequence[str] = (),
        *,
        trust: Trust = "owner",
        made_by: str = "",
    ) -> Saved:
        """Append a text to the log of the day."""
        now = self.now()
        section = block(f"## {now:%H:%M} {title}".rstrip(), text, _tags(tags))
        return self.add_to_log(f"{now:%Y-%m-%d}", section, needle=text, trust=trust, made_by=made_by)

    def add_to_log(self, day: str, section: str, *, needle: str, trust: Trust, made_by: str = "") -> Saved:
        """Append a section to the log of a day, unless the log already contains ``needle``.

        A log with another trust is skipped. This also applies to `memory/YYYY-MM-DD.md`, because an agent may have
        created it.
        """
        owners, mark = trust == "owner", self.approval_of(trust)
        front = front_matter(trust=trust, approval=mark, made_by=mark and made_by)
        head = f"# {day}\n" if owners else f"{front}\n# {day}\n"
        log = self.path_of(day)
        names = [*([f"{log}.md"] if owners else []), *_numbered_names(f"{log}-{mark or trust}")]
        return _save_in_first(
            names, lambda path: self.add(path, section, needle=needle, head=head, trust=trust)
        )

    def approval_of(self, trust: Trust) -> str | None:
        """Return the mark of a note that waits for the owner's approval; None if it does not."""
        return PENDING if self.holds_agents and trust == "agent" else None

    def add(self, path: str, section: str, *, needle: str, head: str, trust: Trust) -> Saved:
        """Append a section to a note, unless the note already contains ``needle``."""
        text, already, is_last = "", False, path.endswith(f"-{MAX_NOTES - 1}.md")
        found: Trust = "untrusted" if self.approval_of(trust) else trust  # a note that waits is not trusted

        def change(old: str | None) -> str | None:
            nonlocal text, already
            if old is not None and trust_of_note(split_lines(old)) != found:
                raise _OtherTrust
            before = head if old is None else old
            already = _find_lines(needle, before) is not None
            if old is not None and not already and self.approval_of(trust) and not is_last:
                raise _OtherTrust  # what waits is decided one by one
            text = before if already else _append_section(before, section)
            return None if already else text

        if edits.update(self.inside(path), change):
            self.changed()
        start, end = _find_lines(needle if already else section, text) or (1, 1)
        return Saved(path, start, end, already)

    def _save_item(
        self, category: str, title: str, text: str, tags: Sequence[str], trust: Trust, made_by: str
    ) -> Saved:
        now = self.now()
        mark, pending = None if trust == "owner" else trust, self.approval_of(trust)
        states = {"trust": mark, "approval": pending, "made_by": pending and made_by}
        front = front_matter(title=title, tags=list(tags), created=f"{now:%Y-%m-%d}", **states)
        head = f"{front}\n# {title}\n"

        def save(path: str) -> Saved:
            heading = f"## {now:%Y-%m-%d %H:%M}" if self.inside(path).exists() else ""
            return self.add(path, block(heading, text), needle=text, head=head, trust=trust)

        stem = self.path_of(f"{slug(category)}/{slug(title)}")
        return _save_in_first([f"{stem}.md", *_numbered_names(f"{stem}-{pending or trust}")], save)

    def path_of(self, name: str) -> str:
        """Return the path of a note relative to the workspace."""
        return self._prefix + name

    def inside(self, path: str) -> Path:
        """Return the resolved path of a file in the workspace. Links that lead out of the workspace are refused."""
        self.check_writable()
        file = self.root / path
        try:
            folder = file.parent.resolve()
        except (OSError, RuntimeError) as error:  # a loop of links, or it changed while it was read
            raise WriteError(f"{path} was not written ({reason_of(error)}).") from error
        if not folder.is_relative_to(self.root.resolve()):
            raise WriteError(f"{path} leads out of the workspace. Nothing was written.")
        return folder / file.name


def _numbered_names(stem: str) -> Iterator[str]:
    yield f"{stem}.md"
    yield from (f"{stem}-{number}.md" for number in range(2, MAX_NOTES))


def _save_in_first(paths: Iterable[str], save: Callable[[str], Saved]) -> Saved:
    """Save into the first note that is new or has the same trust."""
    for path in paths:
        try:
            return save(path)
        except _OtherTrust:
            continue
    raise WriteError("There are too many notes with this name and another trust. Choose another title.")


def clean_text(text: str) -> tuple[str, str | None]:
    """Remove secrets and private spans. Return the text and a sentence about what was removed, or None."""
    whole = encodable(text).replace("\x00", "")
    public = without_private(whole)
    clean = redact(public)
    removed = [*(["private spans"] if public != whole else []), *(["secrets"] if clean != public else [])]
    return clean, f"Left out: {' and '.join(removed)}." if removed else None


def _clean_block(text: str) -> tuple[str, str | None]:
    """Clean a text and remove the white space around it."""
    clean, note = clean_text(text.replace("\r\n", "\n"))
    return clean.strip(), note


def one_line(text: str) -> str:
    """Return the text on one line, for a heading or front matter."""
    return " ".join(text.split())[:200]


def front_matter(**values: object) -> str:
    """Format values as front matter. Each value is JSON, which is valid YAML."""
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if value]
    return "\n".join(["---", *lines, "---", ""])


def _tags(tags: Sequence[str]) -> str:
    return f"Tags: {', '.join(tags)}" if tags else ""


def block(*parts: str) -> str:
    """Join the parts that are not empty with empty lines."""
    return "\n\n".join(part for part in parts if part) + "\n"


def _append_section(before: str, section: str) -> str:
    """Append a section after an empty line, with the line endings of the note."""
    newline = "\r\n" if "\r\n" in before else "\n"
    gap = "" if not before else newline if before.endswith("\n") else newline * 2
    return before + gap + section.replace("\n", newline)


def _find_lines(needle: str, text: str) -> tuple[int, int] | None:
    """Return the first and last line of a text inside a note, as whole lines, or None."""
    text, wanted = text.replace("\r\n", "\n"), needle.strip("\n")
    lines = f"\n{text}\n"
    found = lines.find(f"\n{wanted}\n")
    if found < 0:
        return None
    start = lines.count("\n", 0, found) + 1
    return start, start + wanted.count("\n")


def _first_words(text: str) -> str:
    first = re.split(r"[\n。．！？；]|[.!?;](?=\s|$)", text, maxsplit=1)[0]
    return shorten_title(one_line(first), MAX_TITLE_WIDTH)
