"""Other programs' memories: mem0's export, ChatGPT's, plain JSON; our own lines are told apart by their form.

Each becomes entries without a past. An id of theirs becomes one of ours in the same way every time, so an import that
is repeated finds what it brought before.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from recollect.entries.capture import rule_of
from recollect.entries.drafts import Draft
from recollect.entries.exchange import Line, parse_lines
from recollect.entries.kinds import clamped, from_share, type_of
from recollect.errors import WriteError
from recollect.records import Entry, EntryType

_OURS = uuid.UUID(
    "9d7f6f0e-4f0b-5a53-8a53-7f2a1b6c0d11"
)  #: the namespace of ids made from other programs' ids
_TEXTS = ("memory", "text", "content", "statement", "fact")
_LISTS = ("results", "memories", "entries", "data", "items")


def read(text: str, *, at: float) -> Iterator[Line]:
    """The entries of a file, whoever wrote it."""
    whole = _whole(text)
    if whole is None:
        return parse_lines(text.split("\n"))
    return (Line(entry) for entry in _entries(whole, at))


def _whole(text: str) -> Any:
    """The file as one JSON value of another program; None when it is lines of ours."""
    if text.lstrip("\ufeff \n\r\t")[:1] not in ("[", "{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    ours = isinstance(found, dict) and ("entry" in found or "format" in found)
    return None if ours else found


def _entries(whole: Any, at: float) -> Iterator[Entry]:
    records = _records(whole)
    for number, record in enumerate(records, 1):
        try:
            yield _entry(record, at)
        except (ValueError, TypeError, WriteError) as error:
            raise WriteError(f"entry {number}: {error}; nothing was imported") from error


def _records(whole: Any) -> Iterable[Any]:
    if isinstance(whole, dict):
        name = next((name for name in _LISTS if isinstance(whole.get(name), list)), None)
        if name is None:
            raise WriteError("this JSON holds no list of memories; nothing was imported")
        whole = whole[name]
    if whole and all(isinstance(one, dict) and "mapping" in one for one in whole):
        return [saved for conversation in whole for saved in _saved_by_chatgpt(conversation)]
    return list(whole)


def _saved_by_chatgpt(conversation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What ChatGPT wrote into its memory: messages to "bio" in its conversations, and to nobody else."""
    for node in (conversation.get("mapping") or {}).values():
        message = node.get("message") if isinstance(node, dict) else None
        if not isinstance(message, dict) or message.get("recipient") != "bio":
            continue
        parts = (message.get("content") or {}).get("parts") or []
        said = "\n".join(part for part in parts if isinstance(part, str)).strip()
        for line in said.split("\n"):
            if line.strip():
                session = conversation.get("id") or conversation.get("conversation_id")
                found = {"text": line.strip(), "created_at": message.get("create_time"), "session": session}
                yield {**found, "id": f"{message.get('id')}:{line}", "source": "chatgpt"}


def _entry(record: Any, at: float) -> Entry:
    if isinstance(record, str):
        record = {"text": record}
    if not isinstance(record, dict):
        raise ValueError("is no memory")  # noqa: TRY004 - one kind of error for one kind of sentence
    text = next((record[name] for name in _TEXTS if isinstance(record.get(name), str)), None)
    if text is None:
        raise ValueError("has no text")
    created = _seconds(record.get("created_at", record.get("createdAt")), at)
    draft = Draft(
        text,
        _type(record, text),
        importance=_importance(record.get("importance")),
        session=record.get("session") or record.get("run_id"),
        source=str(record.get("source") or ("mem0" if "memory" in record else "import")),
        tags=_tags(record),
    ).cleaned()
    entry = draft.entry(at)  # its time runs from now, however old it is elsewhere
    updated = _seconds(record.get("updated_at"), created)
    return replace(entry, id=_id(record, text), created_at=created, updated_at=updated, valid_from=created)


def _id(record: Mapping[str, Any], text: str) -> str:
    theirs = str(record.get("id") or text)
    try:
        return str(uuid.UUID(theirs))
    except ValueError:
        return str(uuid.uuid5(_OURS, theirs))


def _type(record: Mapping[str, Any], text: str) -> EntryType:
    for name in (record.get("type"), record.get("category")):
        if isinstance(name, str):
            try:
                return type_of(name)
            except WriteError:
                continue
    rule = rule_of(text)
    return rule.type if rule else "other"


def _importance(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 3.0
    return from_share(value) if 0 <= value <= 1 and isinstance(value, float) else clamped(value)


def _tags(record: Mapping[str, Any]) -> tuple[str, ...]:
    found = record.get("tags") or record.get("categories") or ()
    return tuple(str(tag) for tag in found) if isinstance(found, list | tuple) else ()


def _seconds(value: Any, otherwise: float) -> float:
    """A time as a number or as ISO text."""
    if isinstance(value, bool) or value is None:
        return otherwise
    if isinstance(value, int | float):
        return float(value) / (1000 if value > 1e11 else 1)
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return otherwise
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
