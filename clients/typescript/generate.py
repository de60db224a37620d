"""Write index.d.ts, the types of the client, from the OpenAPI document of the gateway.

python clients/typescript/generate.py            # writes the file
python clients/typescript/generate.py --check    # fails if it differs
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoriter.server.http.app import openapi

FILE = Path(__file__).with_name("index.d.ts")
PREFIX = "/v1/agents/{agent}/"
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
            lines += [
                f"  /** {_comment(post['summary'])} */",
                f"  {json.dumps(path.removeprefix(PREFIX))}: {{",
                f"    arguments: {type_of(sent, 4)}",
                f"    result: {type_of(result, 4)}",
                "  }",
            ]
    return "\n".join([*lines, "}", ""])


def type_of(schema: Mapping[str, Any], indent: int = 0) -> str:
    """Return the type of a JSON schema.

    >>> type_of({"anyOf": [{"type": "string"}, {"type": "null"}]})
    'string | null'
    >>> type_of({"type": "array", "items": {"enum": ["a", "b"]}})
    '("a" | "b")[]'
    """
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(one, indent) for one in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "array":
        items = type_of(schema.get("items", {}), indent)
        return f"({items})[]" if " | " in items else f"{items}[]"
    if kind == "object":
        return _object(schema, indent)
    return SIMPLE.get(str(kind), "unknown")


def _object(schema: Mapping[str, Any], indent: int) -> str:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not properties:
        more = schema.get("additionalProperties", True)
        if more is False:
            return "Record<string, never>"
        return f"Record<string, {type_of(more, indent) if isinstance(more, dict) and more else 'unknown'}>"
    pad, lines = " " * (indent + 2), ["{"]
    for name, value in properties.items():
        if value.get("description"):
            lines.append(f"{pad}/** {_comment(value['description'])} */")
        key = name if name.isidentifier() else json.dumps(name)
        lines.append(f"{pad}{key}{'' if name in required else '?'}: {type_of(value, indent + 2)}")
    return "\n".join([*lines, " " * indent + "}"])


def _comment(text: str) -> str:
    return " ".join(text.split()).replace("*/", "* /")


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        if not FILE.exists() or FILE.read_text("utf-8") != types():
            raise SystemExit("index.d.ts is not up to date. Run `python clients/typescript/generate.py`.")
    else:
        FILE.write_text(types(), "utf-8")
