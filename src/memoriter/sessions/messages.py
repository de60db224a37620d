"""Parse the lines of a transcript into messages and turns: who said what, and when.

A record has the plain format (``{"role", "content", "time"}``) or one that an extension reads. Only the words of people
and agents become turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import BinaryIO, Literal, cast

from memoriter.errors import BadArgument
from memoriter.extension import offers
from memoriter.records import Trust, Turn
from memoriter.sessions.outside_text import (
    OutsideText,
    ToolUse,
    TrustRules,
    dicts,
    is_tool_record,
    tool_use_of,
)
from memoriter.text.blocks import without_blocks
from memoriter.text.encoding import encodable
from memoriter.text.pasted import Piece, split_pasted
from memoriter.text.redaction import clean_name, redact, without_private

#: Bytes. A longer line is a picture or the output of a tool. It is skipped unread.
MAX_LINE = 4 * 1024 * 1024

#: Characters of a message that a host sends. A longer one is data, and is left out before it is read.
MAX_MESSAGE_CHARS = 1_000_000

#: Levels of objects in a record in which hosts describe a message, and fields. One with more counts as a stranger's.
MAX_DEPTH, MAX_FIELDS = 8, 2_000

Role = Literal["user", "assistant"]

#: Keys that a message has in one of the formats.
_KEYS = frozenset({"role", "type", "message", "tool_calls"})
#: Types of content blocks with speech.
_TEXTS = ("text", "input_text", "output_text")


@dataclass(frozen=True, slots=True)
class Message:
    """The content of one line of a transcript."""

    #: None if the line contains no speech, such as the result of a tool or a header.
    role: Role | None = None
    text: str = ""
    time: float | None = None
    #: The id of the session, if the line contains it.
    session: str | None = None
    use: ToolUse = field(default_factory=ToolUse)
    #: Whether the host marked these as words of someone other than the owner and the agent.
    stranger: bool = False
    #: The fields with the names under which a person speaks; none if there are none, or if the host says: the owner.
    speakers: tuple[tuple[str, str], ...] = ()
    #: Whether a caller that does not speak for the owner recorded these as the owner's words.
    reported: bool = False
    too_long: bool = False


class DamagedLine(ValueError):
    """The line is not a JSON object."""


EMPTY_MESSAGE = Message()


def parse(line: bytes | str) -> Message:
    """Parse one line. Raises `DamagedLine`."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedLine from error
    if not isinstance(record, dict):
        raise DamagedLine
    return read_record(record)


def read_record(record: Mapping[str, object], longest: int = MAX_LINE) -> Message:
    """Interpret a record of a transcript, or a message that a host sends. A longer text is left out."""
    body = _body(record)
    if body is None:
        return Message(
            session=_name(record.get("id")) if record.get("type") == "session" else _session(record)
        )
    role = body.get("role")
    said = _text_of(body.get("content")) if role in ("user", "assistant") else ""
    text = clean(said) if len(said) <= longest else ""
    marks = list(_marks(record) if body is record else _marks(record, body)) if text else []
    stranger = bool(text) and _is_strangers(marks, body)
    foreign = body is record or record.get("type") == "message"
    return Message(
        role=cast("Role", role) if text else None,
        text=text,
        time=_time(record, body),
        session=_session(record),
        use=tool_use_of(body),
        stranger=stranger,
        speakers=_speakers(marks, foreign=foreign) if role == "user" and not stranger else (),
        reported=body.get("trust") == "agent",
        too_long=len(said) > longest,
    )


@cache
def _formats() -> tuple[Callable[[Mapping[str, object]], Mapping[str, object] | None], ...]:
    return tuple(offer.load() for offer in offers("transcripts").values())


def _body(record: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the part of the record that contains role and content, in any of the formats."""
    for read in _formats():
        if (found := read(record)) is not None:
            return found or None
    return record if ("role" in record and "content" in record) or is_tool_record(record) else None


def _is_strangers(marks: Sequence[Mapping[str, object]], body: Mapping[str, object]) -> bool:
    """Return whether a host marks a message as not sent by the owner, or an answer as based on such text."""
    if any(mark.get("trust") == "untrusted" for mark in marks) or sum(map(len, marks)) > MAX_FIELDS:
        return True
    if body.get("role") != "user":
        return any(mark.get("turnTainted") is True for mark in marks)
    if any(_is_shared(key, value) for mark in marks for key, value in mark.items()):
        return True
    owned = [mark[key] for mark in marks for key in _OWNER_MARKS if key in mark]
    noted = any(key.startswith("__") and isinstance(value, dict) for key, value in body.items())
    return any(value is not True for value in owned) or (noted and not owned)


_OWNER_MARKS = ("senderIsOwner", "sender_is_owner", "isOwner", "is_owner")
#: Fields in which hosts say who speaks, without case and underscores.
_SPEAKER = re.compile(
    r"(?:sender|author|speaker|participant|member|contact|from|user|person|peer|actor)?"
    r"(?:display|full|screen|nick|push|first|user)?(?:name|handle|label|display)|e?mailfrom"
    r"|(?:msg|message|from|chat)?(?:sender|author|speaker|participant|member|contact|from|user|person|peer|actor)(?:id|jid|email|phone|number)?"
)
#: Words in the name of any other field about a person who speaks, or about a group, a program or a forwarded message.
_PERSON = frozenset((
    "sender", "author", "speaker", "participant", "member", "contact", "person", "peer", "actor", "nick", "nickname",
    "identity", "behalf", "guest", "visitor", "customer", "envelope", "username", "caller", "by",
))  # fmt: skip
_SHARED = frozenset((
    "group", "supergroup", "guild", "room", "broadcast", "bot", "forward", "forwarded", "impersonated", "relayed",
    "automated", "webhook",
))  # fmt: skip
#: Words of fields that say nothing about who speaks. Others may name a speaker, if we do not know the program.
_NEUTRAL_WORDS = """
    role content text raw html markdown message messages msg body type kind id ids uuid guid key idempotency
    parent child children previous next root reply thread chat conversation session turn run request response
    trace span event sequence seq index idx number order position count total version schema format lang
    language locale time timestamp date created updated modified edited deleted sent received at on ms zone
    timezone duration latency model models provider engine api temperature status state stop finish reason usage
    input output total token tokens cost cache cached control params options config settings metadata meta data
    info additional response kwargs annotations tag tags label path paths cwd dir folder file files filename
    mime url image images audio attachment attachments media size bytes hash digest checksum sha encoding
    revision branch git commit mode permission level thinking reasoning effort tool tools call calls function
    part parts block blocks object prompt slug title topic category priority importance score confidence rating
    intent sentiment summary project channel platform trust user name ts client app device os
"""
_NEUTRAL = frozenset(_NEUTRAL_WORDS.split())
_OUTSIDE = frozenset(("channel", "external"))
_OWNER = frozenset(("self", "me", "mine", "owner"))
_DIRECT = ("direct", "private", "dm", "im", "p2p", "self", "main")


def _plain(key: str) -> str:
    return re.sub(r"[_\W]", "", key).lower()


def _is_shared(key: str, value: object) -> bool:
    """Return whether a field says that a message was sent in a group, by a program, or was forwarded."""
    name = _plain(key)
    if name in ("chattype", "conversationtype", "channeltype"):
        return not (isinstance(value, str) and value.lower() in _DIRECT)
    words = _words(key)
    if isinstance(value, bool):
        return bool(words & (_SHARED | _OUTSIDE) if value else words & _OWNER)
    if isinstance(value, str) and name in ("type", "subtype", "kind"):
        return bool(_words(value) & (_SHARED | _OUTSIDE))
    if isinstance(value, str) and value.lower() in _SHARED:
        return True
    return bool(value) and isinstance(value, str | int | Mapping) and bool(words & _SHARED)


def _words(key: str) -> set[str]:
    return set(re.findall("[a-z0-9]+", re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()))


def _speakers(marks: Sequence[Mapping[str, object]], *, foreign: bool) -> tuple[tuple[str, str], ...]:
    """Return the names of the person who speaks, or the ids if there are none; nothing if the host says: the owner."""
    if any(mark.get(key) is True for mark in marks for key in _OWNER_MARKS):
        return ()
    found = [
        (key, one)
        for mark in marks
        for key, value in mark.items()
        for one in _names(key, value, foreign=foreign)
    ]
    names = [(key, name) for key, name in found if not _plain(key).endswith(("id", "jid", "number"))]
    return tuple(names or found)


def _is_named(key: str) -> bool:
    """Return whether a field is known to say who speaks."""
    return bool(_SPEAKER.fullmatch(_plain(key)) or _words(key) & _PERSON)


def _names(key: str, value: object, *, foreign: bool) -> Iterator[str]:
    """Yield the texts and numbers in a field about the speaker. An unknown field of a foreign program is one."""
    words, is_named = _words(key), _is_named(key)
    if not is_named and not (foreign and not (words and words <= _NEUTRAL)):
        return
    for one in value if isinstance(value, list) else [value]:
        is_object = isinstance(one, dict) and "content" not in one and (is_named or one is not value)
        values = cast("dict[str, object]", one).values() if is_object else (one,)
        yield from (str(it) for it in values if isinstance(it, str | int) and not isinstance(it, bool) and it)


def _marks(*records: Mapping[str, object], depth: int = 0) -> Iterator[Mapping[str, object]]:
    """Yield the records and the objects in them in which hosts describe a message, but not its content."""
    for record in records:
        yield record
        inner = [value for value in record.values() if isinstance(value, dict) and "content" not in value]
        if depth < MAX_DEPTH:
            yield from _marks(*inner, depth=depth + 1)


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = (block for block in dicts(content) if block.get("type", "text") in _TEXTS)
    return "\n\n".join(_text(block.get("text")) or "" for block in blocks)


def _session(record: Mapping[str, object]) -> str | None:
    return _name(record.get("sessionId")) or _name(record.get("session_id"))


def _name(value: object) -> str | None:
    return clean_name(value) if isinstance(value, str) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


# ---- time -----------------------------------------------------------------------------------------------------


def _time(record: Mapping[str, object], body: Mapping[str, object]) -> float | None:
    times = (*map(record.get, ("timestamp", "time", "created_at")), body.get("timestamp"))
    return next((seconds for seconds in map(_seconds, times) if seconds is not None), None)


def _seconds(value: object) -> float | None:
    """Convert an ISO time, seconds or milliseconds to seconds since the epoch."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        # Programs write times without a zone in UTC.
        value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds = value / 1000 if value > 1e11 else float(value)
    return seconds if 0 < seconds < 1e11 else None


# ---- cleaning -------------------------------------------------------------------------------------------------

_METADATA = re.compile(
    r"^[A-Z][A-Za-z ,]{2,60} \(untrusted[a-z ,]{0,40}\):\n```json\n[^`]{0,20000}\n```\n?"
    r"|^\[message_id: [^\]\n]{1,80}\]$",
    re.MULTILINE,
)
#: Beginnings of messages that a host wrote in the name of the user.
_HOST_TEXTS = (
    "NO_REPLY|HEARTBEAT_OK|[Request interrupted by user|Read HEARTBEAT.md|(no content)|# AGENTS.md instruct"
)
_SILENT = tuple(_HOST_TEXTS.split("|"))


def clean(text: str) -> str:
    """Return the words of the speaker without injected blocks, private spans and secrets."""
    words = without_private(_METADATA.sub("", without_blocks(text.replace("\x00", ""))))
    words = redact(encodable(words)).strip()
    return "" if words.startswith(_SILENT) else words


# ---- turns -------------------------------------------------------------------------------------------------------


def turns_of(message: Message, line: int, before: OutsideText) -> tuple[tuple[Turn, ...], OutsideText]:
    """Return the turns of a message with their trust, and the state of outside text after it.

    Text that a person pasted becomes an untrusted turn. After text from outside, the words of the agent may come from
    that text, to the end of the session. The same holds for its answers to a stranger.
    """
    person, stranger = message.role == "user", is_by_stranger(message, before.rules)
    pieces = split_pasted(message.text) if person and not stranger else [Piece(message.text, False)]
    pasted = message.too_long or any(piece.pasted for piece in pieces)
    outside = before.after(message.use, added=stranger or pasted)
    if message.role is None:
        return (), outside
    speaker: Trust = "untrusted" if stranger else "agent" if message.reported else "owner"
    trust: Trust = speaker if person else "untrusted" if outside.tainted else "agent"
    role, time = message.role, message.time
    return tuple(
        Turn(role, piece.text, line, time, "untrusted" if piece.pasted else trust) for piece in pieces
    ), outside


def is_by_stranger(message: Message, rules: TrustRules) -> bool:
    """Return whether a message is not the owner's and not the agent's."""
    return message.stranger or (message.role == "user" and bool(_others(message, rules)))


def _others(message: Message, rules: TrustRules) -> list[str]:
    """Return the fields that name another speaker than the owner."""
    return [field for field, name in message.speakers if not rules.is_owner(name)]


@dataclass(slots=True)
class Conversation:
    """The turns of messages, and what was found beside them."""

    turns: list[Turn] = field(default_factory=list)
    #: The ids of entries and the paths of notes that an agent wrote after it had read text from outside.
    relayed: list[str] = field(default_factory=list)
    #: By message, the unknown fields that alone say that it is not the owner's.
    unknown: dict[int, list[str]] = field(default_factory=dict)
    #: Messages that are too long.
    left_out: int = 0


def read_messages(messages: Iterable[Mapping[str, object]], rules: TrustRules | None = None) -> Conversation:
    """Read messages from a host, in any format that a transcript may have.

    Raises `BadArgument` if they are not messages, so that a wrong format is not silently ignored.
    """
    messages = list(messages)
    are_objects = all(isinstance(message, Mapping) for message in messages)
    if not are_objects or (messages and not any(_KEYS & message.keys() for message in messages)):
        raise BadArgument("`messages` must be a list of objects with `role` and `content`.", "messages")
    found, outside = Conversation(), OutsideText(rules=rules or TrustRules())
    for number, record in enumerate(messages, 1):
        message = read_record(record, MAX_MESSAGE_CHARS)
        turns, outside = turns_of(message, number, outside)
        found.turns += turns
        found.relayed += written_under(message, outside)
        found.left_out += message.too_long
        others = _others(message, outside.rules)
        if others and not message.stranger and not any(map(_is_named, others)):
            found.unknown[number] = others
    return found


def turns_of_messages(
    messages: Iterable[Mapping[str, object]], rules: TrustRules | None = None
) -> list[Turn]:
    """Return the turns of messages, as `read_messages` finds them."""
    return read_messages(messages, rules).turns


def written_under(message: Message, outside: OutsideText) -> tuple[str, ...]:
    """Return the entries and notes that an agent wrote in this message, if it had read text from outside.

    ``outside`` is the state after the message.
    """
    return tuple(ref for call in message.use.answers for ref in call.written if ref and outside.tainted)


def record_of(turn: Turn) -> dict[str, object]:
    """Return a turn as a message for a transcript, marked if it is less trusted than its role."""
    expected = "owner" if turn.role == "user" else "agent"
    trust = {"trust": turn.trust} if turn.trust != expected else {}
    time = {"timestamp": turn.time} if turn.time is not None else {}
    return {"role": turn.role, "content": turn.text, **time, **trust}


def lines_of(file: BinaryIO) -> Iterator[tuple[bytes, int, bool]]:
    """Yield each line with its length and whether it is complete. A line that is too long is empty."""
    while line := file.readline(MAX_LINE):
        content, length = line, len(line)
        while not line.endswith(b"\n") and (line := file.readline(MAX_LINE)):
            content, length = b"", length + len(line)
        yield content, length, line.endswith(b"\n")


def turns_of_file(file: BinaryIO, rules: TrustRules) -> Iterator[tuple[Message, tuple[Turn, ...]]]:
    """Yield each line with its turns; none for a line without speech."""
    outside = OutsideText(rules=rules)
    for number, (line, _, _) in enumerate(lines_of(file), 1):
        message = parse_or_empty(line)
        turns, outside = turns_of(message, number, outside)
        yield message, turns


def parse_or_empty(line: bytes) -> Message:
    """Parse one line. A damaged line is an empty message."""
    try:
        return parse(line)
    except DamagedLine:
        return EMPTY_MESSAGE
