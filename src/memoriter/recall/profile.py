"""The profile: who the owner is, preferences, people, projects and current plans, as exact statements.

Only entries in force are read. Text from outside, and what an agent wrote after it had read such text, never enters. Of
two statements that contradict each other, the newer one stays. Each section gets its best line before any gets a second
one, so that a small budget shows all of them. The same entries give the same profile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import zip_longest
from typing import Literal, get_args

from memoriter.entries import Entries
from memoriter.entries.capture_rules import MINE
from memoriter.entries.relation import contradicts
from memoriter.recall.render import Language, Whose, language_of
from memoriter.records import IMPORTED, Entry, EntryType, Trust
from memoriter.search.when import name_days, plan_of
from memoriter.text import estimate_tokens
from memoriter.text.dates import local_day

Section = Literal["about", "preferences", "people", "projects", "plans"]
SECTIONS: tuple[Section, ...] = get_args(Section)
HEADINGS: dict[Language, dict[Section, str]] = {
    "en": {
        "about": "About the owner",
        "preferences": "Preferences",
        "people": "People",
        "projects": "Projects",
        "plans": "Plans",
    },
    "zh": {"about": "关于我", "preferences": "偏好", "people": "人物", "projects": "项目", "plans": "计划"},
}
#: Whose statements may be in a profile.
PROFILED: tuple[Trust, ...] = ("owner", "agent")
#: The default size of a profile.
MAX_TOKENS = 400
#: Statements of each section that are considered, the most important ones.
MAX_CONSIDERED = 24
#: Entries that are read, the most important ones.
MAX_ENTRIES = 2_000

_SECTION_OF: dict[EntryType, Section] = {
    "user_preference": "preferences",
    "workflow": "preferences",
    "skill": "about",
    "relationship": "people",
    "project_context": "projects",
    "technical_decision": "projects",
}
_NAMES_THE_OWNER = re.compile(
    r"\bmy (?:full |last )?(?:name|surname|nickname|phone|number|e-?mail|address|birthday|account|handle|github)\b"
    r"|^(?:call|reach|contact) me\b|^我叫|我的(?:名字|姓名|手机|电话|邮箱|地址|生日|账号|微信)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """One statement of a profile."""

    #: "about", "preferences", "people", "projects" or "plans".
    section: str
    text: str
    #: Such as "entry:1f0c2a9e-…".
    citation: str
    #: The day since which it holds.
    date: str | None
    whose: Whose
    #: The days of a plan, such as "2026-07".
    planned: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """Statements about the owner or the project, by section."""

    lines: tuple[ProfileLine, ...] = ()

    @property
    def text(self) -> str:
        """The profile as Markdown; empty without statements."""
        headings = HEADINGS[language_of(" ".join(line.text for line in self.lines))]
        parts = list[str]()
        for section in SECTIONS:
            found = [markdown_line(line) for line in self.lines if line.section == section]
            parts += [f"## {headings[section]}\n" + "\n".join(found)] if found else []
        return "\n\n".join(parts)

    @property
    def tokens(self) -> int:
        """The estimated number of tokens of the text."""
        return estimate_tokens(self.text)


def markdown_line(line: ProfileLine) -> str:
    """Return a statement as a list item, with its day and the beginning of its citation."""
    whose = "" if line.whose == "owner" else f", {line.whose}"
    planned = f", for {line.planned}" if line.planned else ""
    return f"- {' '.join(line.text.split())} ({line.date or '?'}{planned}, {line.citation[:14]}{whose})"


def whose_words(trust: Trust, source: str | None) -> Whose:
    """Return whose words a text is. What the owner imported from another program was not said to this agent."""
    if trust == "owner":
        return "imported" if (source or "").startswith(IMPORTED) else "owner"
    return "outside" if trust == "untrusted" else trust


def section_of(entry: Entry, today: date) -> Section | None:
    """Return the section of an entry; None if it is a plan whose days have passed."""
    if plan := plan_of(entry):
        return "plans" if plan[1] >= today else None
    if entry.type == "relationship" and _NAMES_THE_OWNER.search(entry.text):
        return "about"
    about: Section = "about" if MINE.search(entry.text.lower()) else "projects"
    return _SECTION_OF.get(entry.type, about)


def make_profile(
    entries: Iterable[Entry], today: date, *, tokens: int = MAX_TOKENS, project: bool = False
) -> Profile:
    """Return the profile of these entries that fits into a number of tokens.

    ``project`` leaves out what is about the owner and other people.
    """
    lists: dict[Section, list[Entry]] = {section: [] for section in SECTIONS}
    for entry in sorted(entries, key=_rank):
        section = section_of(entry, today) if entry.trust in PROFILED and entry.state == "active" else None
        is_wanted = not project or section == "projects" or entry.type in ("workflow", "project_context")
        if section and is_wanted and len(lists[section]) < MAX_CONSIDERED:
            lists[section].append(entry)
    in_turn = zip_longest(*(_newest(found) for found in lists.values()))
    profile = Profile()
    for row in in_turn:
        for section, entry in zip(SECTIONS, row, strict=True):
            if entry is not None:
                wider = Profile((*profile.lines, _line(section, entry)))
                profile = wider if wider.tokens <= tokens else profile
    by_section = (line for section in SECTIONS for line in profile.lines if line.section == section)
    return Profile(tuple(by_section))


def read_profile(entries: Entries, workspace: str | None, *, tokens: int, project: bool) -> Profile:
    """Return the profile of what is in force today, of one workspace if it is named."""
    found = entries.list(sort="importance", limit=MAX_ENTRIES, trust=PROFILED, workspace=workspace)
    return make_profile(found, local_day(), tokens=tokens, project=project)


def _rank(entry: Entry) -> tuple[object, ...]:
    """Return the sort key: the owner's words first, then what matters most, was said most often and last."""
    return (
        PROFILED.index(entry.trust) if entry.trust in PROFILED else len(PROFILED),
        -entry.importance,
        -entry.repetitions,
        -entry.updated_at,
        entry.id,
    )


def _newest(entries: Sequence[Entry]) -> list[Entry]:
    """Return the statements that no newer one contradicts."""
    return [
        one
        for one in entries
        if not any(
            other.valid_from > one.valid_from and contradicts(one.text, other.text) for other in entries
        )
    ]


def _line(section: Section, entry: Entry) -> ProfileLine:
    whose = whose_words(entry.trust, entry.source)
    plan = plan_of(entry)
    planned = name_days(plan) if plan else None
    return ProfileLine(section, entry.text, f"entry:{entry.id}", entry.day, whose, planned)
