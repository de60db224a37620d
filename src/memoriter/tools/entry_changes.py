"""Operations by which the owner changes entries: add, edit, merge, supersede, undo, forget, approve, reject, carry.

Each is an event in the entry's history. Whoever has looked at an entry may hand back its `seq` as `ifSeq`: if somebody
has changed it meanwhile, the answer is a sentence and nothing is changed.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from memoriter.tools import results
from memoriter.tools.agent_entries import receipt_json, remembered_json
from memoriter.tools.entries import ID, SINCE, UNTIL, entry_json, event_json
from memoriter.tools.tool import LATEST, Call, Param, Result, Tool, WrongArgument

if TYPE_CHECKING:
    from memoriter.records import Entry

MOST_EXPORTED = 20_000
MOST_IMPORTED = 64_000_000  #: characters

_TEXT = Param("text", "string", "One statement that stands alone.", longest=10_000)
_IF_SEQ = Param(
    "ifSeq", "integer", "Change it only if this is still its `seq`.", minimum=0, maximum=2**53 - 1
)
_IDS = Param("ids", "array", "The entries' ids.", required=True, longest=500)
_TYPE = Param("type", "string", "The kind of entry.", choices=results.TYPES)
_IMPORTANCE = Param("importance", "number", "1 to 5; 5 never expires.", minimum=1, maximum=5)
_TAGS = Param("tags", "array", "Words to find it by.", longest=64)


def _needed(param: Param) -> Param:
    return Param(param.name, param.kind, param.description, required=True, longest=param.longest)


def _now(call: Call, entry: Entry) -> dict[str, Any]:
    """An entry as it stands after the change: one whose time is over has expired."""
    return entry_json(call.memory.entries.as_of_now(entry))


def _add(call: Call) -> Result:
    importance = call["importance"]
    done = call.memory.entries.add(
        call["text"],
        call["type"] or "other",
        importance=3.0 if importance is None else importance,
        tags=tuple(call["tags"] or ()),
        session=call.session_key,
        source="owner",
    )
    entry = _now(call, done.entry) if done.entry else None
    return {"action": done.action, "entry": entry, "replaced": done.replaced, "note": done.note}


def _edit(call: Call) -> Result:
    given: dict[str, Any] = {
        "text": call["text"],
        "type": call["type"],
        "importance": call["importance"],
        "tags": None if call["tags"] is None else tuple(call["tags"]),
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if call["expiresAt"] is not None:
        changes["expires_at"] = call["expiresAt"] or None
    if not changes:
        raise WrongArgument(
            "entries.edit needs something to change: text, type, importance, tags or expiresAt."
        )
    return {"entry": _now(call, call.memory.entries.update(call["id"], if_seq=call["ifSeq"], **changes))}


def _merge(call: Call) -> Result:
    made = call.memory.entries.merge(call["ids"], call["text"], if_seqs=call["ifSeqs"] or ())
    return {
        "entry": _now(call, made),
        "replaced": [one.id for one in call.memory.entries.replaced_by(made.id)],
    }


def _supersede(call: Call) -> Result:
    done = call.memory.entries.supersede(call["id"], call["text"], if_seq=call["ifSeq"])
    assert done.entry is not None
    return {"entry": _now(call, done.entry), "replaced": [done.replaced]}


def _undo(call: Call) -> Result:
    undone, now = call.memory.entries.undo(call["id"], if_seq=call["ifSeq"])
    return {"undone": [event_json(event) for event in undone], "entries": [_now(call, one) for one in now]}


def _forget(call: Call) -> Result:
    what = {name: call[name] for name in ("query", "session", "source", "since", "until")}
    if call["dryRun"]:
        receipt = call.memory.entries.forget(call["id"], **what, dry_run=True)
    else:
        receipt = call.memory.forget(call["id"], **what)
    return {**receipt_json(receipt), "dryRun": receipt.dry_run}


def _approve(call: Call) -> Result:
    done = call.memory.entries.approve(call["ids"])
    return {"approved": [remembered_json(one) for one in done]}


def _reject(call: Call) -> Result:
    return {"rejected": [one.id for one in call.memory.entries.reject(call["ids"])]}


def _export(call: Call) -> Result:
    lines = call.memory.entries.export(call["type"])
    taken = list(islice(lines, MOST_EXPORTED + 1))
    truncated = next(lines, None) is not None
    return {"data": "\n".join(taken) + "\n", "total": len(taken) - 1, "truncated": truncated}


def _import(call: Call) -> Result:
    done = call.memory.entries.import_(call["data"])
    return {"added": done.added, "already": done.already}


_CHANGED = {"entry": results.maybe(results.ENTRY), "replaced": results.many(results.TEXT)}


def _owners(
    name: str, description: str, params: tuple[Param, ...], run: Any, *, removes: bool = False, **more: Any
) -> Tool:
    return Tool(name, description, params, run, {}, read_only=False, destructive=removes, owner=True, **more)


CHANGES = (
    _owners(
        "entries.add",
        "Remember a statement of the owner's. The same statement is kept once; one that contradicts an older one takes "
        "its place.",
        (_needed(_TEXT), _TYPE, _IMPORTANCE, _TAGS),
        _add,
        empty={"action": "refused", "entry": None, "replaced": None, "note": None},
        returns={
            "action": results.REMEMBERED["action"],
            "entry": results.maybe(results.ENTRY),
            "replaced": results.MAYBE_TEXT,
            "note": results.MAYBE_TEXT,
        },
    ),
    _owners(
        "entries.edit",
        "Change what an entry says or how it is kept; what it was stays in its history.",
        (
            ID,
            _TEXT,
            _TYPE,
            _IMPORTANCE,
            _TAGS,
            Param("expiresAt", "number", "Seconds since the epoch; 0: never.", minimum=0, maximum=LATEST),
            _IF_SEQ,
        ),
        _edit,
        empty={"entry": None},
        returns={"entry": _CHANGED["entry"]},
    ),
    _owners(
        "entries.merge",
        "Put one entry in the place of several; it says the text, or what the longest of them says.",
        (
            _IDS,
            _TEXT,
            Param(
                "ifSeqs", "array", "The `seq` of each, in the order of the ids.", longest=500, items="integer"
            ),
        ),
        _merge,
        empty={"entry": None, "replaced": []},
        returns=_CHANGED,
        removes=True,
    ),
    _owners(
        "entries.supersede",
        "Put a new statement in an entry's place; the old one is hidden and stays as history.",
        (ID, _needed(_TEXT), _IF_SEQ),
        _supersede,
        empty={"entry": None, "replaced": []},
        returns=_CHANGED,
        removes=True,
    ),
    _owners(
        "entries.undo",
        "Take back the newest change, of one entry or of all. What was forgotten cannot come back.",
        (Param("id", "string", "Only changes of this entry.", longest=64), _IF_SEQ),
        _undo,
        empty={"undone": [], "entries": []},
        returns={"undone": results.many(results.EVENT), "entries": results.many(results.ENTRY)},
        removes=True,
    ),
    _owners(
        "entries.forget",
        "Erase entries for good, every copy of them, named in exactly one way: an id, a query, a session, a source or "
        "a time. A query erases only a single sure hit; otherwise the candidates are returned.",
        (
            Param("id", "string", ID.description, longest=64),
            Param("query", "string", "What the entry says.", longest=8_000),
            Param("session", "string", "All that was learned in this session.", longest=500),
            Param("source", "string", "All that came from this source.", longest=500),
            SINCE,
            UNTIL,
            Param("dryRun", "boolean", "Only say what would be forgotten."),
        ),
        _forget,
        empty={"forgotten": [], "covered": [], "notCovered": [], "candidates": [], "dryRun": False},
        returns={**results.RECEIPT, "dryRun": results.BOOLEAN},
        removes=True,
    ),
    _owners(
        "entries.approve",
        "Let staged entries come into force; each is judged beside what is known, so that nothing is kept twice.",
        (_IDS,),
        _approve,
        empty={"approved": []},
        returns={"approved": results.many(results.shape(**results.REMEMBERED))},
    ),
    _owners(
        "entries.reject",
        "Refuse staged entries: they are hidden, not staged again, and erased after the time that expired ones are "
        "kept. Until then it can be undone.",
        (_IDS,),
        _reject,
        empty={"rejected": []},
        returns={"rejected": results.many(results.TEXT)},
        removes=True,
    ),
    _owners(
        "entries.export",
        f"Entries with their history, one JSON object a line; at most {MOST_EXPORTED}, `memoriter export` writes all.",
        (_TYPE,),
        _export,
        empty={"data": "", "total": 0, "truncated": False},
        returns={"data": results.TEXT, "total": results.COUNT, "truncated": results.BOOLEAN},
    ),
    _owners(
        "entries.import",
        "Take in an export of memoriter, mem0 or ChatGPT, or plain JSON: all of it or nothing; what is there already "
        "is left as it is.",
        (Param("data", "string", "What the file holds.", required=True, longest=MOST_IMPORTED),),
        _import,
        empty={"added": 0, "already": 0},
        returns={"added": results.COUNT, "already": results.COUNT},
    ),
)
