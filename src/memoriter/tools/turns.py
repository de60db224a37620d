"""Operations that an agent's host calls around a turn: recall before it, capture after it, and what to write down.

Arguments are the conversation's own messages; what is worth keeping is decided in the rooms behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memoriter.tools import results
from memoriter.tools.agent_entries import remembered_json
from memoriter.tools.tool import Call, Param, Result, Tool, WrongArgument
from memoriter.tools.toolbox import TOOLS, Toolbox

if TYPE_CHECKING:
    from memoriter.records import Saved

QUERY_CHARS = 8_000
SESSION = "main"  #: of a host that names none

_MESSAGES = Param(
    "messages",
    "array",
    "The conversation, oldest first: objects with `role` and `content`.",
    longest=2_000,
    items="object",
)
_SESSION = Param("session", "string", "The session's id; `main` if not given.", longest=500)
_NEEDED = Param(
    "messages", "array", _MESSAGES.description, required=True, longest=_MESSAGES.longest, items="object"
)


def _session(call: Call) -> str:
    return str(call["session"] or call.session_key or SESSION)


def _recall(call: Call) -> Result:
    from memoriter.agent.service import question

    query = call["query"]
    if (query is None) == (call["messages"] is None):
        raise WrongArgument("recall needs either query or messages.")
    told = call.memory.recall(
        question(call["messages"]) if query is None else query,
        session_key=call.session_key,
        session=call["session"],
        door="host",
        tokens=call["tokens"],
    )
    lines = [{"ref": line.ref, "group": line.group, "text": line.text} for line in told.lines]
    return {"text": told.text, "recallId": told.id, "lines": lines, "degraded": told.degraded}


def _capture(call: Call) -> Result:
    done = call.memory.capture_messages(call["messages"], session=_session(call), by=call.by)
    return {"remembered": [remembered_json(one) for one in done]}


def _flush(call: Call) -> Result:
    window, tokens = call["window"], call["tokens"]
    return _saved(call.memory.flush(call["messages"], _session(call), window=window, tokens=tokens))


def _summarise(call: Call) -> Result:
    return _saved(call.memory.summarise(call["messages"], _session(call)))


def _saved(saved: Saved | None) -> dict[str, Any]:
    if saved is None:
        return dict(_NOTHING)
    return {
        "saved": True,
        "path": saved.path,
        "startLine": saved.start_line,
        "endLine": saved.end_line,
        "already": saved.already,
        "note": saved.note,
    }


_NOTHING = {"saved": False, "path": "", "startLine": 0, "endLine": 0, "already": False, "note": None}


def _prompt(call: Call) -> Result:
    from memoriter.agent.plugins import load_plugin

    plugin = load_plugin(call.memory.settings.plugins.slots.memory)
    names = [name for name in (plugin.tools if plugin else ()) if name in TOOLS]
    toolbox = Toolbox(call.memory, session_key=call.session_key, names=names)
    return {"text": toolbox.prompt(call["language"] or "en") if names else ""}


HOSTS = (
    Tool(
        "recall",
        "What is remembered about a query or a conversation, as the block of text that is put before the agent; "
        "noted in the ledger. Empty when nothing fits.",
        (
            Param("query", "string", "What the moment is about, in any language.", longest=QUERY_CHARS),
            _MESSAGES,
            Param("session", "string", "The session's id, for the ledger.", longest=500),
            Param("tokens", "integer", "Most tokens that the block may take.", minimum=0, maximum=10_000_000),
        ),
        _recall,
        {},
        empty={"text": "", "recallId": "", "lines": [], "degraded": None},
        returns={
            "text": results.TEXT,
            "recallId": results.TEXT,
            "lines": results.many(
                results.shape(ref=results.TEXT, group=results.TEXT, text=results.TEXT),
            ),
            "degraded": results.DEGRADED,
        },
    ),
    Tool(
        "capture",
        "Remember what the owner's words in a conversation are worth. The whole conversation may be sent each time: "
        "what is known is counted, not kept twice. From a caller without admin access they are an agent's statements.",
        (_NEEDED, _SESSION),
        _capture,
        {},
        empty={"remembered": []},
        returns={"remembered": results.many(results.shape(**results.REMEMBERED))},
        read_only=False,
    ),
    Tool(
        "flush",
        "Before a conversation is shortened: write down what it would lose, once for each overflow. Without `window` "
        "the caller says that it is time.",
        (
            _NEEDED,
            _SESSION,
            Param(
                "window",
                "integer",
                "The model's context window, in tokens.",
                minimum=1,
                maximum=1_000_000_000,
            ),
            Param("tokens", "integer", "Tokens of the conversation now.", minimum=0, maximum=1_000_000_000),
        ),
        _flush,
        {},
        empty=_NOTHING,
        returns=results.SAVED,
        read_only=False,
    ),
    Tool(
        "summarise",
        "Write the summary of a session that has ended, as a note.",
        (_NEEDED, _SESSION),
        _summarise,
        {},
        empty=_NOTHING,
        returns=results.SAVED,
        read_only=False,
    ),
    Tool(
        "prompt",
        "The section of the system prompt that tells an agent when to use its memory tools.",
        (Param("language", "string", "The language of the section.", choices=("en", "zh")),),
        _prompt,
        {},
        empty={"text": ""},
        returns={"text": results.TEXT},
    ),
)
