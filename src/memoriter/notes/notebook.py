"""The workspace as a place to write: the day's log `memory/YYYY-MM-DD.md`, and items `memory/<category>/<title>.md`.

An agent's words go to notes of their own, `memory/YYYY-MM-DD-agent.md` and items whose front matter says so: a note is
trusted as a whole, and an agent must not speak in a person's name, nor a person's words count as an agent's.

Every text is cleaned here before it is written, and what stands in the file already is not written again, so a caller
that does not know whether its last try succeeded can simply try again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from memoriter.errors import WriteError
from memoriter.files import edits
from memoriter.files.locks import check_mounted
from memoriter.notes.chunking import trust_of_note
from memoriter.records import Saved, Trust
from memoriter.text.encoding import encodable, slug
from memoriter.text.measure import split_lines
from memoriter.text.redaction import redact, without_private

Clock = Callable[[], datetime]

#: Wait for the lock of a summary, whose holder may be waiting for a language model.
LOCK_WAIT_S = 300.0
MAX_NOTES = 100  #: of one name, looked at for one that holds the author's words


class _OthersNote(Exception):
    """The note holds somebody else's words."""


def local_now() -> datetime:
    """The time by the system's own clock and zone."""
    return datetime.now().astimezone()


def clock_of(zone: str) -> Clock:
    """A clock of the named zone, or of the system's when none is named."""
    return (lambda: datetime.now(ZoneInfo(zone))) if zone else local_now


class Notebook:
    """Writes into one workspace; ``was_there``: whether it is known to have had notes."""

    def __init__(
        self, root: Path, *, now: Clock = local_now, was_there: Callable[[], bool] = lambda: False
    ) -> None:
        self.root = root
        self.now = now
        self._was_there = was_there

    def ready(self) -> None:
        """Raise why nothing can be written, before somebody goes to the trouble of making it."""
        check_mounted(self.root, self._was_there)

    def save(
        self,
        content: str,
        title: str = "",
        tags: Sequence[str] = (),
        category: str | None = None,
        *,
        trust: Trust = "owner",
    ) -> Saved:
        """Write something down for good: into an item of a category, else into the day's log of its author.

        A tag that is the name of a folder in `memory/` counts as the category, when none is named.
        """
        text, left_out = cleaned(content)
        if not text:
            raise WriteError("There is nothing to save: the content is empty or private.")
        title = one_line(cleaned(title)[0])
        tags = [tag for tag in (one_line(cleaned(tag)[0]).lstrip("#") for tag in tags) if tag]
        folder = cleaned(category or "")[0] or next((tag for tag in tags if self._is_category(tag)), None)
        if folder:
            saved = self._save_item(folder, title or _first_words(text), text, tags, trust)
        else:
            saved = self.log(text, title, tags, trust=trust)
        return Saved(saved.path, saved.start_line, saved.end_line, saved.already, left_out)

    def log(self, text: str, title: str = "", tags: Sequence[str] = (), *, trust: Trust = "owner") -> Saved:
        """Add to the day's log of its author."""
        now = self.now()
        entry = block(f"## {now:%H:%M} {title}".rstrip(), text, _tags(tags))
        return self.add_to_log(f"{now:%Y-%m-%d}", entry, needle=text, trust=trust)

    def add_to_log(self, day: str, entry: str, *, needle: str, trust: Trust) -> Saved:
        """Append an entry to its author's log of a day, unless that has the needle already.

        A log that holds somebody else's words is passed over, the owner's own name for it too: an agent may have
        taken it.
        """
        owners = trust == "owner"
        head = f"# {day}\n" if owners else f"{front_matter(trust=trust)}\n# {day}\n"
        names = [*([f"memory/{day}.md"] if owners else []), *_numbered(f"memory/{day}-{trust}")]
        return _first_own(names, lambda path: self.add(path, entry, needle=needle, head=head, trust=trust))

    def add(self, path: str, entry: str, *, needle: str, head: str, trust: Trust) -> Saved:
        """Append an entry to a note of its author's, unless the note has the needle already."""
        text, already = "", False

        def change(old: str | None) -> str | None:
            nonlocal text, already
            if old is not None and trust_of_note(split_lines(old)) != trust:
                raise _OthersNote
            before = head if old is None else old
            already = _lines_of(needle, before) is not None
            text = before if already else _joined(before, entry)
            return None if already else text

        edits.update(self.inside(path), change)
        start, end = _lines_of(needle if already else entry, text) or (1, 1)
        return Saved(path, start, end, already)

    def _save_item(self, category: str, title: str, text: str, tags: Sequence[str], trust: Trust) -> Saved:
        now = self.now()
        mark = None if trust == "owner" else trust
        front = front_matter(title=title, tags=list(tags), created=f"{now:%Y-%m-%d}", trust=mark)
        head = f"{front}\n# {title}\n"

        def save(path: str) -> Saved:
            heading = f"## {now:%Y-%m-%d %H:%M}" if self.inside(path).exists() else ""
            return self.add(path, block(heading, text), needle=text, head=head, trust=trust)

        stem = f"memory/{slug(category)}/{slug(title)}"
        return _first_own([f"{stem}.md", *_numbered(f"{stem}-{trust}")], save)

    def _is_category(self, tag: str) -> bool:
        return (self.root / "memory" / slug(tag)).is_dir()

    def inside(self, path: str) -> Path:
        """The file in the workspace; a folder that is a link to somewhere else is refused."""
        self.ready()
        file = self.root / path
        if not file.parent.resolve().is_relative_to(self.root.resolve()):
            raise WriteError(f"{path} leads out of the workspace; nothing is written there.")
        return file


def _numbered(stem: str) -> Iterator[str]:
    yield f"{stem}.md"
    yield from (f"{stem}-{number}.md" for number in range(2, MAX_NOTES))


def _first_own(paths: Iterable[str], save: Callable[[str], Saved]) -> Saved:
    """Save into the first of the notes that is new or holds words of the same author."""
    for path in paths:
        try:
            return save(path)
        except _OthersNote:
            continue
    raise WriteError("There are too many notes of this name that hold somebody else's words.")


def cleaned(text: str) -> tuple[str, str | None]:
    """The text as it may be kept, and a word on what was left out."""
    whole = encodable(text).replace("\r\n", "\n").replace("\x00", "")
    open_text = without_private(whole)
    kept = redact(open_text).strip()
    left = [
        *(["private spans"] if open_text != whole else []),
        *(["secrets"] if kept != open_text.strip() else []),
    ]
    return kept, f"Left out: {' and '.join(left)}." if left else None


def one_line(text: str) -> str:
    """The text on one line, fit for a heading or front matter."""
    return " ".join(text.split())[:200]


def front_matter(**values: object) -> str:
    """Values at the head of a note, as YAML that is JSON too."""
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items() if value]
    return "\n".join(["---", *lines, "---", ""])


def _tags(tags: Sequence[str]) -> str:
    return f"Tags: {', '.join(tags)}" if tags else ""


def block(*parts: str) -> str:
    """The parts that are not empty, an empty line between."""
    return "\n\n".join(part for part in parts if part) + "\n"


def _joined(before: str, entry: str) -> str:
    """The entry under what stands there, one empty line between, in the note's own line ends."""
    newline = "\r\n" if "\r\n" in before else "\n"
    gap = "" if not before else newline if before.endswith("\n") else newline * 2
    return before + gap + entry.replace("\n", newline)


def _lines_of(needle: str, text: str) -> tuple[int, int] | None:
    """The lines on which the needle stands as whole lines."""
    text, needle = text.replace("\r\n", "\n"), needle.strip("\n")
    found = re.search(rf"(?:\A|\n)({re.escape(needle)})(?:\n|\Z)", text)
    if not found:
        return None
    start = text.count("\n", 0, found.start(1)) + 1
    return start, start + needle.count("\n")


def _first_words(text: str) -> str:
    return one_line(re.split(r"[\n。．.!?！？;；]", text, maxsplit=1)[0])[:60]
