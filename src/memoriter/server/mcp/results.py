"""How a tool and its result look in the protocol: schemas, hints, text beside structure, and never too much at once.

Clients cut or refuse a result above some 25,000 tokens. Ours are cut before that, at their longest parts, and say so.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping
from typing import Any

import mcp_types as types

from memoriter.tools.tool import Outcome, Result, Tool

MOST_BYTES = 60_000
"""Of a result as JSON. A token is hardly ever less than 2.4 bytes, in Chinese as in English: 25,000 tokens at most."""


SMALL = 64  #: bytes of what is not worth cutting in itself


def listed(tool: Tool) -> types.Tool:
    """A tool as clients list it."""
    hints = {"idempotentHint": True, **tool.annotations()}  # what is said twice is kept once
    return types.Tool(
        name=tool.name,
        title=tool.name.replace("_", " ").replace(".", " ").capitalize(),
        description=tool.description,
        input_schema=tool.schema(),
        output_schema=tool.output_schema(),
        annotations=types.ToolAnnotations.model_validate(hints),
    )


def answered(tool: Tool, outcome: Outcome, result: Result) -> types.CallToolResult:
    """What became of a call: the structure, and the same as text; one sentence where it failed."""
    known = tool.output_schema()["properties"]
    assert isinstance(known, Mapping)
    shown = bounded({name: value for name, value in result.items() if name in known or name != "disabled"})
    failed = outcome != "ok"
    text = str(result.get("error") or outcome) if failed else _json(shown)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=shown, is_error=failed
    )


def bounded(result: Result, most: int = MOST_BYTES) -> Result:
    """The result, with its longest parts shortened until it is small enough; ``cut`` then says what is missing."""
    if _size(result) <= most:
        return result
    kept, cut = copy.deepcopy(result), set[str]()
    while (over := _size({**kept, "cut": _sentence(result, kept, cut)}) - most) > 0:
        cut.add(max(kept, key=lambda name: _size(kept[name])))
        if not _shorten(kept, over):
            break
    return {**kept, "cut": _sentence(result, kept, cut)}


def _shorten(held: Any, over: int) -> bool:
    """Take about that many bytes from the longest list, table or text within; False where there is nothing to take.

    The shape stays what it was.
    """
    while held:
        place = max(held if isinstance(held, dict) else range(len(held)), key=lambda one: _size(held[one]))
        value = held[place]
        if isinstance(value, str):
            held[place] = value[: max(0, int(len(value) * (1 - over / _size(value))) - 1)]
            return value != ""
        if isinstance(value, list) and len(value) > 1:
            while len(value) > 1 and over > 0:
                over -= _size(value.pop()) + 2
            return True
        if not isinstance(value, list | dict):
            return False
        if isinstance(value, dict) and all(_size(one) <= SMALL for one in value.values()):
            while value and over > 0:  # many small things: those that were named last go first
                name, one = value.popitem()
                over -= _size(name) + _size(one) + 4
            return True
        held = value  # one thing that is long in itself
    return False


def _sentence(whole: Result, kept: Result, cut: Collection[str]) -> str:
    parts = (
        f"{len(kept[name])} of {len(whole[name])} {name}"
        if isinstance(whole[name], list | dict) and len(kept[name]) < len(whole[name])
        else f"a part of {name}"
        for name in sorted(cut)
    )
    return f"Too long for one answer: this is {', '.join(parts)}. Ask for less at once."


def _size(value: object) -> int:
    return len(_json(value).encode("utf-8", "surrogatepass"))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
