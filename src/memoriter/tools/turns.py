"""Operations that an agent's host calls around a turn: recall before it, capture after it, flush, summarise, prompt."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memoriter.config.fields import described
from memoriter.errors import BadArgument
from memoriter.memory import parts_of
from memoriter.tools.entry_tools import RememberedJson
from memoriter.tools.notes import SavedJson
from memoriter.tools.tool import Arguments, Call, Degraded, Shape, operation
from memoriter.tools.toolbox import TOOLS, Toolbox

#: The session of a host that names none.
DEFAULT_SESSION = "main"

Messages = Annotated[
    list[dict[str, Any]],
    Field(max_length=2_000, description="The conversation, oldest first: objects with `role` and `content`."),
]
TokenCount = Annotated[int, Field(ge=0, le=1_000_000_000)]


# ---- recall -------------------------------------------------------------------------------------------------------


class RecallArguments(Arguments):
    query: str | None = described(None, "What the moment is about, in any language.", max_length=8_000)
    messages: Messages | None = None
    session: str | None = described(None, "The id of the session, for the ledger.", max_length=500)
    tokens: int | None = described(None, "Maximum size of the block in tokens.", ge=0, le=10_000_000)


class LineJson(Shape):
    """One recalled memory."""

    ref: str
    group: str
    text: str
    whose: Literal["owner", "agent", "relayed", "imported", "outside"] = described(
        "owner", "Whose words the text is."
    )


class RecallResult(Shape):
    """The block of text for the prompt."""

    text: str = ""
    recall_id: str = Field(default="", validation_alias="id")
    lines: list[LineJson] = Field(default=[])
    degraded: Degraded = None


@operation("recall", names_session=True)
def _recall(call: Call[RecallArguments]) -> RecallResult:
    """Return what is remembered about a query or a conversation, as a block of text for the prompt. The recall is
    recorded in the ledger. The block is empty if nothing fits.
    """
    from memoriter.agent.service import question

    asked = call.arguments
    if asked.query is not None and asked.messages is None:
        query = asked.query
    elif asked.messages is not None and asked.query is None:
        query = question(asked.messages)
    else:
        raise BadArgument("recall needs either `query` or `messages`.", "query", "messages")
    recalled = parts_of(call.memory).search.recall(
        query, key=call.session, session=asked.session, interface=call.interface, tokens=asked.tokens
    )
    return RecallResult.model_validate(recalled)


# ---- capture, flush, summarise ------------------------------------------------------------------------------------


class TurnsArguments(Arguments):
    """Arguments of `summarise`, and the first arguments of `capture` and `flush`."""

    messages: Messages
    session: str | None = described(
        None, f"The id of the session; `{DEFAULT_SESSION}` if not given.", max_length=500
    )


class CaptureArguments(TurnsArguments):
    record: bool = described(
        False, "Also keep new turns as a transcript, so that the session can be searched."
    )
    wait: bool = described(
        False,
        "Ask the language model only after some messages, or at the end of the session: for hosts that "
        "call this after every turn.",
    )


class FlushArguments(TurnsArguments):
    window: int | None = described(
        None, "The size of the model's context window in tokens.", ge=1, le=1_000_000_000
    )
    tokens: TokenCount | None = described(None, "The current size of the conversation in tokens.")


class CaptureResult(Shape):
    """Outcome for each captured statement."""

    remembered: list[RememberedJson] = Field(default=[])


def _session(call: Call[TurnsArguments]) -> str:
    return call.arguments.session or call.session or DEFAULT_SESSION


@operation("capture", read_only=False, names_session=True)
def _capture(call: Call[CaptureArguments]) -> CaptureResult:
    """Capture memories from the owner's words in a conversation. The host may send the whole conversation each time:
    repeated statements are counted, not stored twice. Statements from a caller without admin access count as an
    agent's.
    """
    asked = call.arguments
    captured = call.memory.capture_messages(
        asked.messages, session=_session(call), trust=call.trust, record=asked.record, wait=asked.wait
    )
    return CaptureResult(remembered=[RememberedJson.model_validate(remembered) for remembered in captured])


@operation("flush", read_only=False, names_session=True)
def _flush(call: Call[FlushArguments]) -> SavedJson:
    """Save what a conversation would lose before it is shortened, once per overflow. Without `window` the caller
    decides that it is time.
    """
    asked = call.arguments
    flush = call.memory.flush
    return SavedJson.of(flush(asked.messages, _session(call), window=asked.window, tokens=asked.tokens))


@operation("summarise", read_only=False, names_session=True)
def _summarise(call: Call[TurnsArguments]) -> SavedJson:
    """Write the summary of a session that has ended as a note."""
    return SavedJson.of(call.memory.summarise(call.arguments.messages, _session(call)))


# ---- prompt -------------------------------------------------------------------------------------------------------


class PromptArguments(Arguments):
    language: Literal["en", "zh"] = described("en", "The language of the section.")


class PromptResult(Shape):
    """A section of the system prompt."""

    text: str = ""


@operation("prompt")
def _prompt(call: Call[PromptArguments]) -> PromptResult:
    """Return the section of the system prompt that tells an agent when to use its memory tools."""
    from memoriter.agent.plugins import load_plugin

    plugin = load_plugin(call.memory.settings.plugins.slots.memory)
    names = [name for name in (plugin.tools if plugin else ()) if name in TOOLS]
    toolbox = Toolbox(call.memory, session=call.session, names=names)
    return PromptResult(text=toolbox.prompt(call.arguments.language) if names else "")


OPERATIONS = (_recall, _capture, _flush, _summarise, _prompt)
