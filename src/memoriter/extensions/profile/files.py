"""`USER.md` and `PROJECT.md`: the profile between two marks in files of the workspace.

Everything outside the marks stays as it is, byte by byte. A line between the marks that differs from the statement that
it cites becomes the owner's new statement, and a line that cites nothing a new one. If a line cannot be remembered, the
file is left as it is, so that no word is lost. Only words of the owner are written, because the owner's files count as
the owner's words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memoriter import Profile, logs
from memoriter.entries.drafts import Draft
from memoriter.errors import MemoriterError, NotFound
from memoriter.extensions.profile.settings import ProfileSettings
from memoriter.files import edits
from memoriter.memory import Memory, parts_of

log = logs.get("profile")

BEGIN = "<!-- memoriter: profile. Lines between these marks are kept up to date, and your edits are remembered. -->"
END = "<!-- memoriter: end of the profile -->"
#: File names, and whether each is about the project.
FILES = {"USER.md": False, "PROJECT.md": True}
#: The importance of a statement that the owner writes into the profile.
WRITTEN = 5.0

_BLOCK = re.compile(rf"<!-- memoriter: profile\b[^\n]*?-->(?P<inner>.*?){re.escape(END)}", re.DOTALL)
_LINE = re.compile(
    r"[-*+] +(?P<text>.*?)(?: \((?:[\d-]{10}|\?)(?:, for [\dto -]+)?, (?P<ref>entry:[0-9a-f]{8})(?:, \w+)?\))?"
)


@dataclass(frozen=True, slots=True)
class Kept:
    """What happened to one file."""

    path: str
    #: Whether the file was written.
    changed: bool = False
    #: The statements that the owner wrote into it.
    learned: tuple[str, ...] = ()
    #: Why it was not written.
    problem: str | None = None


def refresh(memory: Memory) -> list[Kept]:
    """Bring both files up to date, if the settings say so. The resident process calls this when it is idle."""
    if not memory.settings.section(ProfileSettings).files or not parts_of(memory).allows(None):
        return []
    kept = [keep(memory, name, project=project) for name, project in FILES.items()]
    for one in kept:
        if one.problem:
            log.warning("%s: %s", one.path, one.problem)
    return kept


def keep(memory: Memory, name: str, *, project: bool) -> Kept:
    """Remember what the owner wrote between the marks of a file, and write the profile there."""
    path = memory.settings.workspace / name
    learned = list[str]()
    try:
        text = edits.read(path) or ""
        block = _BLOCK.search(text)
        if block is None and "<!-- memoriter: profile" in text:
            return Kept(
                name, problem="The mark at the end of the profile is missing. The file was not changed."
            )
        for line in (block["inner"] if block else "").splitlines():
            if statement := _learn(memory, line.strip()):
                learned.append(statement)
        profile = memory.profile(project=project)
        own = Profile(tuple(line for line in profile.lines if line.whose in ("owner", "imported")))
        new = _with_profile(text, own.text)

        def change(now: str | None) -> str | None:
            return new if (now or "") == text else None  # an editor saved it meanwhile: the next run reads it

        changed = new != text and edits.update(path, change)
    except MemoriterError as error:
        return Kept(name, learned=tuple(learned), problem=f"{error} The file was not changed.")
    if changed:
        parts_of(memory).engine.mark_changed()
    return Kept(name, changed, tuple(learned))


def _learn(memory: Memory, line: str) -> str | None:
    """Remember a line that the owner has written or changed. Return it; None if there is nothing new in it."""
    if not line or line.startswith(("#", "<!--")):
        return None
    found = _LINE.fullmatch(line)
    text, ref = (found["text"].strip(), found["ref"]) if found else (line, None)
    if not any(char.isalnum() for char in text):
        return None
    if ref is None:
        memory.remember(text, importance=WRITTEN, source="profile")
        return text
    try:
        entry = memory.entries.get(ref)
    except NotFound:
        return None  # it was erased, and must not come back
    if _shown(entry.text) == text or entry.state == "forgotten":
        return None
    draft = Draft(text, entry.type, importance=entry.importance, tags=entry.tags, source="profile")
    memory.entries.add_draft(draft, replaces=entry.id if entry.state == "active" else None)
    return text


def _with_profile(text: str, profile: str) -> str:
    """Return the text of a file with the profile between its marks, which are added at the end if it has none."""
    newline = "\r\n" if "\r\n" in text else "\n"
    shown = [_shown(line) if line.startswith("- ") else line for line in profile.split("\n")]
    block = newline.join([BEGIN, "", *shown, "", END]) if profile else newline.join([BEGIN, END])
    if found := _BLOCK.search(text):
        return text[: found.start()] + block + text[found.end() :]
    if not profile:
        return text
    between = "" if not text else newline if text.endswith("\n") else newline * 2
    return text + between + block + newline


def _shown(text: str) -> str:
    """Return a statement on one line that can contain no mark."""
    return " ".join(text.split()).replace("<!--", "<!- -")
