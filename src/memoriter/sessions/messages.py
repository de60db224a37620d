"""One line of a session's transcript: who said what, when.

Three forms are told apart line by line, by what the line holds: OpenClaw's (``{"type": "message", "message": …}``),
Claude Code's (``{"type": "user" | "assistant", "message": …}``) and a plain one (``{"role", "content", "time"}``). Only
what a person or the agent said is taken. Where the lines come from is not known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO, Literal, cast

from memoriter.records import Trust, Turn
from memoriter.sessions.untrusted_tools import OutsideText, ToolUse, is_tool_record, tool_use_of
from memoriter.text.blocks import without_blocks
from memoriter.text.encoding import encodable
from memoriter.text.redaction import redact, without_private

#: Bytes. A longer line is a picture or the output of a tool. It is skipped unread.
MAX_LINE = 4 * 1024 * 1024

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """What a line says that matters to a memory."""

    role: Role | None = None  #: None when nobody said anything: a tool's result, a header
    text: str = ""
    time: float | None = None
    session: str | None = None  #: the id of the session, where the line gives it
    use: ToolUse = field(default_factory=ToolUse)  #: of tools, which may bring in text from the network
    stranger: bool = False  #: not the owner's words, nor the agent's own: a host says so


class DamagedLine(ValueError):
    """The line is not JSON, or not an object."""


EMPTY_MESSAGE = Message()


def parse(line: bytes | str) -> Message:
    """What the line says; raises `DamagedLine`."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedLine from error
    if not isinstance(record, dict):
        raise DamagedLine
    return read_record(record)


def read_record(record: Mapping[str, object]) -> Message:
    """What a record of a transcript says, or a message as hosts hand it over."""
    body = _body(record)
    if body is None:
        return Message(
            session=_text(record.get("id")) if record.get("type") == "session" else _session(record)
        )
    role = body.get("role")
    text = ""
    if role in ("user", "assistant") and not _is_bookkeeping(record) and not _is_internal(body):
        text = clean(_said(body.get("content")))
    return Message(
        role=cast("Role", role) if text else None,
        text=text,
        time=_time(record, body),
        session=_session(record),
        use=tool_use_of(body),
        stranger=bool(text) and _is_strangers(body),
    )


def _body(record: Mapping[str, object]) -> Mapping[str, object] | None:
    """The part of the record that holds role and content, in any of the three forms."""
    inner = record.get("message")
    if isinstance(inner, dict) and record.get("type") in ("message", "user", "assistant"):
        return inner
    return record if ("role" in record and "content" in record) or is_tool_record(record) else None


def _is_bookkeeping(record: Mapping[str, object]) -> bool:
    """What the harness wrote in a person's name, and what a sub-agent said to its agent."""
    origin = record.get("origin")
    if (
        record.get("type") == "user"
        and isinstance(origin, dict)
        and origin.get("kind") not in (None, "human")
    ):
        return True  # Claude Code says who it was: a task that ended, another program
    return any(
        record.get(mark) is True
        for mark in (
            "isMeta",
            "isSidechain",
            "isCompactSummary",
            "isVisibleInTranscriptOnly",
            "isApiErrorMessage",
        )
    )


def _is_internal(body: Mapping[str, object]) -> bool:
    """What OpenClaw says to its agent in a person's name: heartbeats, recalled memories, what another session says."""
    provenance = body.get("provenance")
    return isinstance(provenance, dict) and provenance.get("kind") in ("internal_system", "inter_session")


def _is_strangers(body: Mapping[str, object]) -> bool:
    """Whether OpenClaw notes that it was not the owner who sent this, or what the agent had read when it said it."""
    noted = body.get("__openclaw")
    if not isinstance(noted, dict):
        return False
    return (
        noted.get("senderIsOwner") is not True
        if body.get("role") == "user"
        else noted.get("turnTainted") is True
    )


def _said(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(
        _text(block.get("text")) or "" for block in _blocks(content, "text", "input_text", "output_text")
    )


def _blocks(content: object, *kinds: str) -> Iterator[Mapping[str, object]]:
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and block.get("type") in kinds:
                yield block


def _session(record: Mapping[str, object]) -> str | None:
    return _text(record.get("sessionId")) or _text(record.get("session_id"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


# ---- time -----------------------------------------------------------------------------------------------------


def _time(record: Mapping[str, object], body: Mapping[str, object]) -> float | None:
    for value in (
        record.get("timestamp"),
        record.get("time"),
        record.get("created_at"),
        body.get("timestamp"),
    ):
        seconds = _seconds(value)
        if seconds is not None:
            return seconds
    return None


def _seconds(value: object) -> float | None:
    """Seconds since the epoch, from an ISO time, seconds or milliseconds."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        # A time without a zone is taken as UTC, which is what programs write.
        value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds = value / 1000 if value > 1e11 else float(value)
    return seconds if 0 < seconds < 1e11 else None


# ---- what nobody said -----------------------------------------------------------------------------------------

_METADATA = re.compile(
    r"^[A-Z][A-Za-z ,]{2,60} \(untrusted[a-z ,]{0,40}\):\n```json\n[^`]{0,20000}\n```\n?"
    r"|^\[message_id: [^\]\n]{1,80}\]$",
    re.MULTILINE,
)
_SILENT = ("NO_REPLY", "HEARTBEAT_OK", "[Request interrupted by user", "Read HEARTBEAT.md", "(no content)")


def clean(text: str) -> str:
    """The words of the speaker alone, as they may be kept: no injected blocks, private spans or secrets."""
    said = without_private(_METADATA.sub("", without_blocks(text.replace("\x00", ""))))
    said = redact(encodable(said)).strip()
    return "" if said.startswith(_SILENT) else said


# ---- turns -------------------------------------------------------------------------------------------------------


def turn_of(message: Message, line: int, before: OutsideText) -> tuple[Turn | None, OutsideText]:
    """What was said, with whose words it is, and whether text from outside is in play after it.

    What an agent says after a tool brought in text from the network may be a stranger's words, until a person speaks;
    so may what it answers to a stranger.
    """
    outside = before.after(message.use, person=message.role == "user", stranger=message.stranger)
    if message.role is None:
        return None, outside
    person: Trust = "untrusted" if message.stranger else "owner"
    trust: Trust = person if message.role == "user" else "untrusted" if outside.tainted else "agent"
    return Turn(message.role, message.text, line, message.time, trust), outside


def turns_of_messages(messages: Iterable[Mapping[str, object]]) -> list[Turn]:
    """What was said in messages that a host hands over, in any form that a transcript may have."""
    turns, outside = list[Turn](), OutsideText()
    for number, message in enumerate(messages, 1):
        turn, outside = turn_of(read_record(message), number, outside)
        turns += [turn] if turn else []
    return turns


def turns_of_file(file: BinaryIO) -> Iterator[Turn | None]:
    """One item a line, from the start: what was said there, or None."""
    outside, number = OutsideText(), 0
    while line := file.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE and not line.endswith(b"\n"):
            while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                pass
            line = b""
        turn, outside = turn_of(parse_or_empty(line), number, outside)
        yield turn


def parse_or_empty(line: bytes) -> Message:
    """What the line says; nothing when it is damaged."""
    try:
        return parse(line)
    except DamagedLine:
        return EMPTY_MESSAGE
