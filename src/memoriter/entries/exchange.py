"""Export and import of entries with their history, one JSON object per line.

An import adds all entries of a file or none. Entries that exist already, by id, stay as they are, so an import can be
repeated. Lists of statements as JSON, which other programs write, can be imported too.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, get_args, get_type_hints

from memoriter.entries.adding import find_tombstone
from memoriter.entries.capture import classify
from memoriter.entries.drafts import TYPES, Draft, clamp, clean_entry, type_of
from memoriter.errors import BadArgument, WriteError
from memoriter.records import (
    IMPORTED,
    TRUST_LEVELS,
    Entry,
    EntryEvent,
    EntryState,
    EntryType,
    Imported,
    from_share,
    is_trusted_like,
)
from memoriter.sentences import Sentence, sentence
from memoriter.store.entry_rows import EntryFilter
from memoriter.store.entry_store import EntryStore
from memoriter.text.redaction import redact

FORMAT = "memoriter entries 1"
EVERYTHING = EntryFilter(states=())

_OPTIONAL = (float | None, str | None)
#: The end of the year 9999, in seconds since the epoch.
MAX_TIME = 253_402_300_799
#: Characters of the note of an event.
MAX_NOTE = 500
#: Texts that the report of an import shows.
MAX_PREVIEW = 20
_INVALID = (ValueError, KeyError, TypeError, RecursionError, BadArgument, WriteError)
_KNOWN = {field.name for field in fields(Entry)}


@dataclass(frozen=True, slots=True)
class EntryLine:
    """One line of a file: an entry with its history."""

    entry: Entry
    history: tuple[EntryEvent, ...] = ()


# ---- export --------------------------------------------------------------------------------------------------


def export_lines(
    entries: EntryStore, where: EntryFilter = EVERYTHING, only: Collection[str] | None = None
) -> Iterator[str]:
    """Yield a header line, then one line for each matching entry, oldest first. ``only`` are ids."""
    yield json.dumps({"format": FORMAT})
    for entry in reversed(entries.find(where)):
        if only is not None and entry.id not in only:
            continue
        history = [_event_json(event) for event in entries.history(entry.id)]
        yield json.dumps({"entry": asdict(entry), "history": history}, ensure_ascii=False)


def _event_json(event: EntryEvent) -> dict[str, object]:
    return {name: value for name, value in asdict(event).items() if value not in (None, "")}


# ---- import --------------------------------------------------------------------------------------------------


def parse_lines(lines: Iterable[str], invalid: list[str] | None = None) -> Iterator[EntryLine]:
    """Yield the entries of an exported file. An invalid line raises an error, or is described in ``invalid``."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if isinstance(record, dict) and "format" in record:
                if record["format"] != FORMAT:
                    raise ValueError(f"the format {record['format']!r} is not supported")
                continue
            yield _clean(_line(record))
        except _INVALID as error:
            _leave_out("line", number, error, invalid)


def _leave_out(kind: str, number: int, error: Exception, invalid: list[str] | None) -> None:
    if invalid is None:
        raise WriteError(sentence(f"import.{kind}", number=number, why=_reason(error))) from error
    invalid.append(sentence(f"import.{kind}.left", number=number, why=_reason(error)))


def import_lines(
    entries: EntryStore, lines: Iterable[EntryLine], *, at: float, actor: str, dry_run: bool = False
) -> Imported:
    """Add the entries that do not exist yet, with their history; all of them or none.

    Texts that were forgotten are refused, and an active entry with the same text is not added again.
    """
    already = refused = 0
    added, texts = dict[str, int](), list[str]()
    with contextlib.nullcontext() if dry_run else entries.transaction():
        numbers = dict[int, int]()  # old number of a change → new number
        for line in lines:
            known = line.entry.id in added or entries.load([line.entry.id])
            if known or _is_double(entries, line.entry):
                already += 1
            elif find_tombstone(entries, line.entry.text):
                refused += 1
            else:
                kept = _without_forgotten(entries, line)
                seq = 0
                if not dry_run:
                    seq = entries.import_entry(kept.entry, kept.history, numbers, at=at, by=actor)
                added[kept.entry.id] = seq
                texts += [kept.entry.text] if len(texts) < MAX_PREVIEW else []
    return Imported(len(added), already, refused, tuple(added.items()), tuple(texts))


def _is_double(entries: EntryStore, entry: Entry) -> bool:
    return entry.state == "active" and any(
        one.state == "active" and is_trusted_like(one.trust, entry.trust)
        for one in entries.same_text(entry.text)
    )


def _without_forgotten(entries: EntryStore, line: EntryLine) -> EntryLine:
    """Return a line without a history that contains a forgotten text."""
    states = (state for event in line.history for state in (event.before, event.after) if state)
    texts = {state.text for state in states} | {event.said for event in line.history if event.said}
    forgotten = any(find_tombstone(entries, text) for text in texts)
    return replace(line, history=()) if forgotten else line


def _clean(line: EntryLine) -> EntryLine:
    """Return a line whose texts passed the same checks as any statement."""
    history = (
        replace(
            event,
            before=clean_entry(event.before) if event.before else None,
            after=clean_entry(event.after) if event.after else None,
            said=Draft(event.said).clean().text if event.said else None,
            note=redact(event.note)[:MAX_NOTE],
        )
        for event in line.history
    )
    return EntryLine(clean_entry(line.entry), tuple(history))


def _line(record: Any) -> EntryLine:
    if not isinstance(record, dict) or not isinstance(record.get("entry"), dict):
        raise ValueError("it contains no entry")  # noqa: TRY004 - all errors of a line are reported alike
    history = tuple(_event(event) for event in record.get("history", ()))
    return EntryLine(entry_from(record["entry"]), history)


def entry_from(values: Mapping[str, Any]) -> Entry:
    """Return an entry from plain data, or raise if it is invalid."""
    if unknown := set(values) - _KNOWN:
        raise ValueError(f"an entry has no field {', '.join(sorted(unknown))}")
    entry = Entry(**dict(values) | {name: _texts(values.get(name, ()), name) for name in ("related", "tags")})
    if not _is_id(entry.id):
        raise ValueError(f"{entry.id!r} is not an id. An id looks like {uuid.NAMESPACE_URL}")
    for name, choices in (("type", TYPES), ("trust", TRUST_LEVELS), ("state", get_args(EntryState))):
        if getattr(entry, name) not in choices:
            raise ValueError(f"{name} must be one of {', '.join(choices)}")
    if not isinstance(entry.text, str) or not any(char.isalnum() for char in entry.text):
        raise ValueError("its text contains no word")
    _check_numbers(entry)
    return entry


def _is_id(text: object) -> bool:
    try:
        return str(uuid.UUID(str(text))) == text
    except ValueError:
        return False


def _check_numbers(entry: Entry) -> None:
    """Raise if a field has the wrong type: it would break every later read."""
    for name, hint in get_type_hints(Entry).items():
        value = getattr(entry, name)
        if hint in _OPTIONAL and value is None:
            continue
        if hint in (float, int, float | None) and not _is_number(value, whole=hint is int):
            raise ValueError(f"{name} must be a number")
        if hint == str | None and not isinstance(value, str):
            raise ValueError(f"{name} must be a string")
    if not 1 <= entry.importance <= 5 or not 0 <= entry.confidence <= 1:
        raise ValueError("importance must be from 1 to 5 and confidence from 0 to 1")


def _is_number(value: object, *, whole: bool) -> bool:
    """Return whether a value is a number in range: times after the year 9999 could not be shown."""
    kinds = int if whole else int | float
    return isinstance(value, kinds) and not isinstance(value, bool) and abs(value) <= MAX_TIME


def _texts(values: object, name: str) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of strings")
    return tuple(values)


def _event(record: Mapping[str, Any]) -> EntryEvent:
    before, after = record.get("before"), record.get("after")
    return EntryEvent(
        int(record["seq"]),
        int(record["change"]),
        float(record["at"]),
        str(record["kind"]),
        str(record["entry_id"]),
        str(record.get("by", "")),
        str(record.get("note", "")),
        entry_from(before) if before else None,
        entry_from(after) if after else None,
        str(record["said"]) if record.get("said") else None,
    )


def _reason(error: Exception) -> str:
    """Return why a record cannot be imported, without a full stop."""
    if isinstance(error, json.JSONDecodeError):
        return sentence("import.not_json")
    if isinstance(error, KeyError):
        return sentence("import.missing", name=str(error.args[0]))
    why = error.args[0] if error.args else ""
    if isinstance(why, Sentence):
        return Sentence(why.removesuffix("."), why.code, why.details)
    return str(error).removesuffix(".") or sentence("import.unreadable")


#: The namespace of ids that are derived from ids of other programs.
_ID_NAMESPACE = uuid.UUID("9d7f6f0e-4f0b-5a53-8a53-7f2a1b6c0d11")
#: Categories of other programs that mean one of our types.
_CATEGORIES = {"user_preferences": "user_preference", "family": "relationship", "technology": "fact"}
_TEXTS = ("memory", "text", "content", "statement", "fact")
#: Names of the list of statements in a file of another program.
LISTS = ("results", "memories", "entries", "data", "items")


def read(text: str, *, at: float, invalid: list[str] | None = None) -> Iterator[EntryLine]:
    """Return the entries of a file of memoriter or of another program. ``invalid`` collects those that are left out."""
    whole = _whole(text)
    if whole is None:
        return parse_lines(text.split("\n"), invalid)
    return (EntryLine(entry) for entry in _entries(whole, at, invalid))


def _whole(text: str) -> Any:
    """Return the file as one JSON value of another program; None for an export of memoriter."""
    if text.lstrip("\ufeff \n\r\t")[:1] not in ("[", "{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    ours = isinstance(found, dict) and ("entry" in found or "format" in found)
    return None if ours else found


def _entries(whole: Any, at: float, invalid: list[str] | None) -> Iterator[Entry]:
    for number, record in enumerate(_records(whole), 1):
        try:
            yield _entry(record, at)
        except _INVALID as error:
            _leave_out("entry", number, error, invalid)


def _records(whole: Any) -> Iterable[Any]:
    if isinstance(whole, dict):
        name = next((name for name in LISTS if isinstance(whole.get(name), list)), None)
        if name is None:
            raise WriteError("Nothing was imported. The JSON contains no list of memories.")
        whole = whole[name]
    return list(whole)


def _entry(record: Any, at: float) -> Entry:
    if isinstance(record, str):
        record = {"text": record}
    if not isinstance(record, dict):
        raise ValueError("is not a memory")  # noqa: TRY004 - all errors of a line are reported alike
    text = next((record[name] for name in _TEXTS if isinstance(record.get(name), str)), None)
    if text is None:
        raise ValueError("it has no text")
    created = seconds_of(record.get("created_at", record.get("createdAt")), at)
    draft = Draft(
        text,
        _type(record, text),
        importance=_importance(record.get("importance")),
        session=record.get("session") or record.get("run_id"),
        source=_source(record),
        tags=_tags(record),
    ).clean()
    entry = draft.entry(at)
    updated = seconds_of(record.get("updated_at"), created)
    expires = record.get("expiration_date")
    return replace(
        entry,
        id=_id(record, text),
        created_at=created,
        updated_at=updated,
        valid_from=created,
        expires_at=seconds_of(expires, at) if expires else entry.expires_at,
    )


def _source(record: Mapping[str, Any]) -> str:
    """Return where a record comes from: ``import``, with the name of the program if it is known."""
    program = record.get("source")
    return f"{IMPORTED}:{program}"[:64] if program else IMPORTED


def _id(record: Mapping[str, Any], text: str) -> str:
    theirs = str(record.get("id") or text)
    try:
        return str(uuid.UUID(theirs))
    except ValueError:
        return str(uuid.uuid5(_ID_NAMESPACE, theirs))


def _type(record: Mapping[str, Any], text: str) -> EntryType:
    details = record.get("metadata")
    more = [details.get("type"), details.get("category")] if isinstance(details, dict) else []
    for name in (record.get("type"), record.get("category"), *more, *_strings(record.get("categories"))):
        if isinstance(name, str):
            with contextlib.suppress(BadArgument):
                return type_of(_CATEGORIES.get(name, name))
    return classify(text)


def _importance(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 3.0
    return from_share(value) if 0 <= value <= 1 and isinstance(value, float) else clamp(value)


def _tags(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tags or categories of a record, and whose it is: some programs serve several users."""
    whose = (
        ("user", record.get("user_id")),
        ("agent", record.get("agent_id")),
        ("app", record.get("app_id")),
    )
    owners = (f"{kind}:{name}" for kind, name in whose if isinstance(name, str) and name)
    return (*_strings(record.get("tags") or record.get("categories")), *owners)


def _strings(found: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in found) if isinstance(found, list | tuple) else ()


def seconds_of(value: Any, otherwise: float) -> float:
    """Return seconds since the epoch from a number or an ISO text."""
    if isinstance(value, bool) or value is None:
        return otherwise
    if isinstance(value, int | float):
        return float(value) / (1000 if value > 1e11 else 1)
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return otherwise
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
