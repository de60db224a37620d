"""The page `/docs` of the gateway: what `/openapi.json` describes, for people. It has no scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from memoriter.server.http.app import openapi
from memoriter.server.http.gateway import Gateway, Mount

#: Headers and the agent, which every operation has.
_COMMON = ("agent", "X-Memoriter-Session", "X-Memoriter-Access")


class ApiPage(Mount):
    """The ASGI application of the route `/docs`."""

    methods = ("GET",)

    def __init__(self, gateway: Gateway) -> None:
        """Need nothing of the gateway: the operations are the same for everyone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await HTMLResponse(render(openapi()))(scope, receive, send)


def render(document: Mapping[str, Any]) -> str:
    """Return an OpenAPI document as a page."""
    title = f"{document['info']['title']} {document['info']['version']}: HTTP API"
    operations = "\n".join(
        part
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for part in _operation(path, method.upper(), operation)
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="/static/mark.svg" type="image/svg+xml">
<link rel="stylesheet" href="/static/style/base.css">
<link rel="stylesheet" href="/static/style/api.css">
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p>Send a token with each request: <code>Authorization: Bearer TOKEN</code>. <code>memoriter token create</code> prints
one. <code>{{agent}}</code> is the name of an agent, such as <code>main</code>. Programs read
<a href="/openapi.json">openapi.json</a>.</p>
{operations}
</main>
</body>
</html>
"""


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one operation: its summary, its arguments and a request with curl."""
    yield f"<details><summary><code>{method} {escape(path)}</code></summary>"
    access = "".join(f" Requires {escape(tag)} access." for tag in operation.get("tags", ()))
    yield f"<p>{escape(operation['summary'])}{access}</p>"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    asked = [one for one in operation.get("parameters", ()) if one["name"] not in _COMMON]
    rows = {one["name"]: one["schema"] for one in asked} | body.get("properties", {})
    if rows:
        yield "<table><tr><th>argument</th><th>type</th><th>meaning</th></tr>"
        for name, schema in rows.items():
            needed = " (required)" if name in body.get("required", ()) else ""
            meaning = escape(schema.get("description", ""))
            yield f"<tr><td><code>{escape(name)}</code>{needed}</td><td>{_type(schema)}</td><td>{meaning}</td></tr>"
        yield "</table>"
    required = {name: f"<{name}>" for name in body.get("required", ())}
    data = (
        f" \\\n  -H 'Content-Type: application/json' -d '{json.dumps(required)}'" if method == "POST" else ""
    )
    request = f"curl -H 'Authorization: Bearer TOKEN' 'http://127.0.0.1:8377{path.replace('{agent}', 'main')}'{data}"
    yield f"<pre><code>{escape(request)}</code></pre></details>"


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a JSON value in words."""
    kinds = schema.get("anyOf") or [schema]
    words = (
        " | ".join(map(str, kind["enum"])) if "enum" in kind else str(kind.get("type", "object"))
        for kind in kinds
    )
    return escape(" | ".join(words))
