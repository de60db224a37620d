"""Write index.d.ts, the types of the client, from the OpenAPI document of the gateway.

python clients/typescript/generate.py            # writes the file
python clients/typescript/generate.py --check    # fails if it differs
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from memoriter.server.http.app import openapi
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import json_schema

FILE = Path(__file__).with_name("index.d.ts")
PREFIX = "/v1/agents/{agent}/"
#: Fields that every result has.
ALWAYS = ("disabled", "error", "code", "details", "codes")
#: Names that the head uses, and those of the language and of browsers.
TAKEN = (
    *("Always", "Arguments", "Memoriter", "MemoriterError", "Name", "Operations", "Options", "Result"),
    *("Error", "Event", "File", "Memory", "Text"),
)
SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}

HEAD = """\
// Written by generate.py from the OpenAPI document of the gateway.

/** An error of the gateway, or of the way to it. */
export class MemoriterError extends Error {
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number
  /** A stable name of the error. */
  readonly code: string
  /** Values that the message mentions. */
  readonly details: Record<string, unknown>
}

export interface Options {
  /** The address of the gateway (default: http://127.0.0.1:8377). */
  url?: string
  /** A token, from `memoriter token create`. */
  token?: string
  /** The agent whose memory it is (default: main). */
  agent?: string
  /** The session key, where the settings allow only some sessions. */
  session?: string
  /** How long a call may take (default: 30,000). */
  timeoutMs?: number
}

export type Name = keyof Operations
export type Arguments<N extends Name> = Operations[N]["arguments"]
export type Result<N extends Name> = Operations[N]["result"]

/** The memory of one agent. */
export class Memoriter {
  constructor(options?: Options)
  /** Run an operation of the gateway and return its result. Rejects with `MemoriterError`. */
  call<N extends Name>(operation: N, input?: Arguments<N>, options?: { signal?: AbortSignal }): Promise<Result<N>>
  /** Search notes, sessions and entries. */
  search(query: string, options?: Omit<Arguments<"memory_search">, "query">): Promise<Result<"memory_search">>
  /** Return the block of memories about a query, for the prompt of an agent. */
  recall(query: string, options?: Omit<Arguments<"recall">, "query">): Promise<Result<"recall">>
  /** Store one statement. */
  store(text: string, options?: Omit<Arguments<"memory_store">, "text">): Promise<Result<"memory_store">>
  /** Learn from a conversation. The whole conversation may be sent each time. */
  capture(
    messages: Arguments<"capture">["messages"],
    options?: Omit<Arguments<"capture">, "messages">,
  ): Promise<Result<"capture">>
}

/** The operations of the gateway. */
"""


def types() -> str:
    """Return the text of index.d.ts."""
    paths: Any = openapi()["paths"]
    lines = [HEAD + "export interface Operations {"]
    for path, methods in sorted(paths.items()):
        if path.startswith(PREFIX) and "post" in methods:
            post = methods["post"]
            sent = post["requestBody"]["content"]["application/json"]["schema"]
            result = post["responses"]["200"]["content"]["application/json"]["schema"]
            shared = {name: value for name, value in result["properties"].items() if name in ALWAYS}
            own = {name: value for name, value in result["properties"].items() if name not in ALWAYS}
            lines += [
                f"  /** {_comment(post['summary'])} */",
                f"  {json.dumps(path.removeprefix(PREFIX))}: {{",
                f"    arguments: {type_of(sent, 4)}",
                f"    result: Always & {type_of({**result, 'properties': own}, 4)}"
                if own
                else "    result: Always",
                "  }",
            ]
    lines.append("}")
    lines += ["", "/** What every result has. */"]
    lines.append(f"export interface Always {_members({'properties': shared, 'required': ['disabled']}, 0)}")
    for name, model in sorted(_names().values(), key=lambda one: one[0]):
        lines += ["", f"/** {_comment(str(model.__doc__))} */"]
        lines.append(f"export interface {name} {_members(json_schema(model), 0)}")
    return "\n".join([*lines, ""])


@cache
def _names() -> Mapping[str, tuple[str, type[BaseModel]]]:
    """Return the models inside arguments and results by their members, each with a name for its type."""
    found = dict[type[BaseModel], None]()
    for tool in OPERATIONS.values():
        for model in (tool.arguments, tool.result):
            found.update(dict.fromkeys(_models_in(model)))
    by_members = {_members(json_schema(model), 0, named=False): model for model in found}
    short = {
        model: re.sub("Arguments$", "Input", model.__name__.removesuffix("Json"))
        for model in by_members.values()
    }
    often = Counter(short.values())
    return {
        members: (
            name if often[name := short[model]] == 1 and name not in TAKEN else _place(model) + name,
            model,
        )
        for members, model in by_members.items()
    }


def _place(model: type[BaseModel]) -> str:
    """Return where a model belongs, to tell it apart from another one with the same name."""
    *_, folder, module = model.__module__.split(".")
    return "".join(word.capitalize() for word in (folder if module == "operations" else module).split("_"))


def _models_in(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the models of the fields of a model, at any depth."""
    waiting = [field.annotation for field in model.model_fields.values()]
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield kind
            yield from _models_in(kind)


def type_of(schema: Mapping[str, Any], indent: int = 0, *, named: bool = True) -> str:
    """Return the type of a JSON schema, ``named`` by its name where it has one.

    >>> type_of({"anyOf": [{"type": "string"}, {"type": "null"}]})
    'string | null'
    >>> type_of({"type": "array", "items": {"enum": ["a", "b"]}})
    '("a" | "b")[]'
    """
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(one, indent, named=named) for one in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        items = type_of(schema.get("items", {}), indent, named=named)
        return f"({items})[]" if " | " in items else f"{items}[]"
    if kind == "object":
        return _object(schema, indent, named=named)
    return SIMPLE.get(str(kind), "unknown")


def _object(schema: Mapping[str, Any], indent: int, *, named: bool) -> str:
    if not schema.get("properties"):
        more = schema.get("additionalProperties", True)
        if more is False:
            return "Record<string, never>"
        values = type_of(more, indent, named=named) if isinstance(more, dict) and more else "unknown"
        return f"Record<string, {values}>"
    known = _names().get(_members(schema, 0, named=False)) if named else None
    return known[0] if known else _members(schema, indent, named=named)


def _members(schema: Mapping[str, Any], indent: int, *, named: bool = True) -> str:
    pad, lines = " " * (indent + 2), ["{"]
    for name, value in schema["properties"].items():
        if value.get("description"):
            lines.append(f"{pad}/** {_comment(value['description'])} */")
        key = name if name.isidentifier() else json.dumps(name)
        mark = "" if name in schema.get("required", ()) else "?"
        lines.append(f"{pad}{key}{mark}: {type_of(value, indent + 2, named=named)}")
    return "\n".join([*lines, " " * indent + "}"])


def _comment(text: str) -> str:
    return " ".join(text.split()).replace("*/", "* /")


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        if not FILE.exists() or FILE.read_text("utf-8") != types():
            raise SystemExit("index.d.ts is not up to date. Run `python clients/typescript/generate.py`.")
    else:
        FILE.write_text(types(), "utf-8")
