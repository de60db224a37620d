"""The operations of this extension: `about.*`, and `recalls.why`."""

from __future__ import annotations

from pydantic import Field

from memoriter.config.fields import described
from memoriter.extensions.about import changing
from memoriter.extensions.about.changing import ChangedFile, Place
from memoriter.extensions.about.gathering import Thing, about, list_things
from memoriter.extensions.about.why import sources_of
from memoriter.extensions.letter.operations import EventJson
from memoriter.memory import parts_of
from memoriter.tools.entries import EntryJson, RecallJson
from memoriter.tools.recalls import ConsideredJson, RecallGetResult
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Arguments, Call, Count, Prose, Score, Shape, omitted_if_none, operation

MAX_PLACES = 1_000


class AboutArguments(Arguments):
    name: str = Field(
        max_length=200, description="A name, such as of a person, a place, a project or a topic."
    )


class LineJson(Shape):
    """A line of a note or of a conversation."""

    path: str
    line: Count
    text: str
    date: str | None = omitted_if_none("The day of it.")
    role: str | None = omitted_if_none("Who said it.")


class ContradictionJson(Shape):
    """Two entries that cannot both hold."""

    earlier: EntryJson
    later: EntryJson
    why: Prose


class AboutResult(Shape):
    """Everything about one thing."""

    name: str = ""
    aliases: list[str] = Field(default=[])
    entries: list[EntryJson] = described([], "Entries in force, and entries that wait.")
    older: list[EntryJson] = described([], "Entries that no longer hold.")
    notes: list[LineJson] = Field(default=[])
    conversations: list[LineJson] = Field(default=[])
    recalls: list[RecallJson] = described([], "Recalls in which it went into a prompt.")
    contradictions: list[ContradictionJson] = Field(default=[])
    changes: list[EventJson] = Field(default=[])
    degraded: str | None = None


class ThingsResult(Shape):
    """The things that the memory knows."""

    things: list[Thing] = Field(default=[])


class ChangeArguments(Arguments):
    places: list[Place] = Field(max_length=MAX_PLACES, description="The places.")
    name: str = described("", "The thing, to report what still mentions it.", max_length=200)


class UndoArguments(Arguments):
    """Arguments of `about.undo`: what `about.change` returned."""

    entry: str | None = described(None, "`entry` of the change.", max_length=64)
    seq: int | None = described(None, "`seq` of the change.")
    files: list[ChangedFile] = described([], "`files` of the change.", max_length=MAX_PLACES)


class ChangedResult(Shape):
    """The receipt of a change."""

    corrected: Count = 0
    forgotten: Count = 0
    remains: list[str] = described([], "Places that still mention the thing.")
    entry: str | None = None
    seq: int | None = None
    files: list[ChangedFile] = Field(default=[])


class UndoneResult(Shape):
    """The end of an undo."""

    undone: bool = False


class WhyArguments(Arguments):
    sentence: str = Field(max_length=2_000, description="What the agent said.")


class SourceJson(Shape):
    """A line that the sentence may come from."""

    recall: RecallJson
    line: ConsideredJson
    score: Score
    entry: EntryJson | None = omitted_if_none("The entry, if it still exists.")


class WhyResult(Shape):
    """The lines that went into prompts and say the most of the sentence."""

    sources: list[SourceJson] = Field(default=[])


@operation("about.get", by_get=True)
def get(call: Call[AboutArguments]) -> AboutResult:
    """Gather everything about a person, place, project or topic: entries in force and older ones, lines of notes and
    conversations, recalls, contradictions and changes. Other names of it are found too.
    """
    found = about(call.memory, call.arguments.name, masked=call.masked)
    changes = [EventJson.of(event) for event in found.changes]
    return AboutResult.model_validate(
        {**{name: getattr(found, name) for name in found.__slots__}, "changes": changes}
    )


@operation("about.list")
def things(call: Call[NoArguments]) -> ThingsResult:
    """List the people, places, projects and topics that recur, the most frequent first. No model is used."""
    return ThingsResult(things=list_things(call.memory, masked=call.masked))


@operation("about.change", read_only=False, destructive=True, owner_only=True)
def change(call: Call[ChangeArguments]) -> ChangedResult:
    """Correct or forget one thing in several places: entries, lines of notes, lines of conversations. All of them are
    changed or none, and `about.undo` reverts it. The result names the places that still mention the thing.
    """
    asked = call.arguments
    done = changing.change(call.memory, asked.places)
    remains = about(call.memory, asked.name).citations if asked.name else ()
    return ChangedResult.model_validate(done).model_copy(update={"remains": list(remains)})


@operation("about.undo", read_only=False, destructive=True, owner_only=True)
def undo(call: Call[UndoArguments]) -> UndoneResult:
    """Undo a change of several places, unless one of them was changed since."""
    asked = call.arguments
    changing.undo(call.memory, asked.entry, asked.seq, asked.files)
    return UndoneResult(undone=True)


@operation("recalls.why")
def why(call: Call[WhyArguments]) -> WhyResult:
    """Find the recall that a sentence of the agent came from, by words and by meaning: the line as it was then, what it
    says now, and who wrote it.
    """
    shown = list[SourceJson]()
    for source in sources_of(call.memory, call.arguments.sentence):
        texts = parts_of(call.memory).search.texts_of(source.recall, masked=call.masked)
        entries = call.memory.entries.get_many(source.recall.refs("entry"))
        recall = RecallGetResult.of(source.recall, texts, entries)
        line = recall.considered[source.recall.considered.index(source.line)]
        entry = entries.get(source.line.ref)
        shown.append(
            SourceJson(
                recall=RecallJson.model_validate(recall),
                line=line,
                score=source.score,
                entry=EntryJson.model_validate(entry) if entry else None,
            )
        )
    return WhyResult(sources=shown)
