"""Operations on the ledger: which memories were added to a prompt, which were left out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from memoriter.config.fields import described
from memoriter.memory import parts_of
from memoriter.records import Considered, Entry, Part, Recall, RecallPage
from memoriter.tools.entries import Cursor, PageArguments, RecallJson, Time, decode_cursor, encode_cursor
from memoriter.tools.tool import Arguments, Call, Count, Prose, Score, Shape, omitted_if_none, operation

_ORDER = "recalls"


class RecallListArguments(PageArguments):
    session: str | None = described(None, "Only from this session.", max_length=500)
    interface: str | None = described(
        None, "Only through this interface, such as `hook`, `host` or `cli`.", max_length=100
    )
    since: Time | None = described(None, "At or after this time, in seconds since the epoch.")
    until: Time | None = described(None, "Before this time, in seconds since the epoch.")
    entry: str | None = described(
        None,
        "Only recalls that added this entry to the prompt; its id, or the beginning of it.",
        max_length=64,
    )
    words: str | None = described(
        None, "Only recalls whose query, text or session contains each of these words.", max_length=500
    )


class RecallListResult(Shape):
    """A page of recalls."""

    recalls: list[RecallJson] = Field(default=[])
    total: Count = 0
    cursor: Cursor = None

    @classmethod
    def of(cls, page: RecallPage) -> RecallListResult:
        """Return a page of recalls."""
        return cls.model_validate(page).model_copy(update={"cursor": encode_cursor(page.after, _ORDER)})


class RecallGetArguments(Arguments):
    id: str | None = described(
        None,
        "The id of the recall, or the beginning of it. The id of an entry stands for the newest recall "
        "that added it to a prompt. Default: the newest recall.",
        max_length=64,
    )


class ConsideredJson(Shape):
    """Something that was found for a prompt."""

    kind: Literal["entry", "note"]
    ref: str
    entered: bool
    reason: Prose
    score: Score
    parts: list[Part]
    text: str | None = omitted_if_none("What entered the prompt, or what it says now if it did not enter.")
    now: str | None = omitted_if_none("What it says now, if that differs from what entered the prompt.")
    exists: bool = described(True, "Whether it still exists.")
    citation: str | None = omitted_if_none("The place of a note.")
    session: str | None = omitted_if_none("The session that an entry comes from.")


class RecallGetResult(RecallJson):
    """One recall in detail."""

    considered: list[ConsideredJson]
    block: str = described(
        "", "The text that was added to the prompt. Empty if something in it was forgotten later."
    )

    @classmethod
    def of(cls, recall: Recall, texts: Mapping[str, str], entries: Mapping[str, Entry]) -> RecallGetResult:
        """Return a recall. ``texts`` and ``entries`` are what its references lead to now."""
        entered = sum(considered.entered for considered in recall.considered)
        names = ("id", "at", "interface", "session", "query", "characters", "tokens", "block")
        return cls(
            **{name: getattr(recall, name) for name in names},
            entered=entered,
            left_out=len(recall.considered) - entered,
            considered=[
                _considered_json(found, texts.get(found.ref), entries.get(found.ref))
                for found in recall.considered
            ],
        )


class ProfileArguments(Arguments):
    project: bool = described(False, "What is known about the project, not about the owner.")
    tokens: int = described(400, "Maximum size of the text.", ge=1, le=10_000)


class ProfileLineJson(Shape):
    """A statement of a profile."""

    section: Literal["about", "preferences", "people", "projects", "plans"]
    text: str
    citation: str
    date: str | None = Field(description="The day since which it holds.")
    whose: str = Field(description="Whose words it is: `owner`, `agent` or `imported`.")
    planned: str | None = omitted_if_none("The days of a plan.")


class ProfileResult(Shape):
    """Who the owner is, as statements."""

    text: str = described("", "The profile as Markdown.")
    tokens: Count = 0
    lines: list[ProfileLineJson] = Field(default=[])


@operation("memory.profile", by_get=True)
def _profile(call: Call[ProfileArguments]) -> ProfileResult:
    """Return who the owner is: the newest statements about the owner, preferences, people, projects and current plans,
    each with its citation and day. Nothing from outside is in it.
    """
    asked = call.arguments
    profile = call.memory.profile(project=asked.project, tokens=asked.tokens, session=call.session)
    return ProfileResult.model_validate(profile)


@operation("recalls.list")
def _list(call: Call[RecallListArguments]) -> RecallListResult:
    """List the recalls, newest first, a page at a time. A recall is one moment when memories were added to a prompt."""
    asked = call.arguments
    filters = asked.model_dump(exclude={"cursor", "limit"})
    after = decode_cursor(asked.cursor, _ORDER)
    page = call.memory.entries.recalls(limit=asked.limit, after=after, **filters)
    return RecallListResult.of(page)


@operation("recalls.get")
def _get(call: Call[RecallGetArguments]) -> RecallGetResult:
    """Return one recall: which memories were found, which of them were added to the prompt, and why."""
    recall = call.memory.entries.get_recall(call.arguments.id)
    texts = parts_of(call.memory).search.texts_of(recall, masked=call.masked)
    entries = call.memory.entries.get_many(recall.refs("entry"))
    return RecallGetResult.of(recall, texts, entries)


def _considered_json(found: Considered, now: str | None, entry: Entry | None) -> ConsideredJson:
    shown = ConsideredJson.model_validate(found)
    update = {
        "citation": found.ref if found.kind == "note" else None,
        "session": entry.session if entry else None,
        "text": found.text or now,
        "now": now if found.text and now is not None and _differs(found, now) else None,
        "exists": now is not None,
    }
    return shown.model_copy(update=update)


def _differs(found: Considered, now: str) -> bool:
    """Return whether what entered the prompt says something else now. Of a note, a part of its lines entered."""
    then, now = " ".join(found.text.split()), " ".join(now.split())
    return then != now if found.kind == "entry" else then.strip("… ") not in now


OPERATIONS = (_profile, _list, _get)
