"""Access rules, tested for every route and operation, so that new ones cannot be forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from gateways import Running, Start, ask
from starlette.routing import Mount, Route

from memoriter import __version__
from memoriter.server.http import app
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import ACCESS, grants

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
PUBLIC = {"/healthz", "/health", "/open"}
#: Paths below a mount, also such that are public or files of the page elsewhere.
BELOW = ("", "/", "/healthz", "/open", "/static/app.js", "/v1/memories/", "/v1/events", "/nothing")


NOT_FOUND = {"error": "Not found.", "code": "not_found"}
AGENT_NOT_FOUND = {
    "error": "Agent not found. GET /v1/agents lists all agents.",
    "code": "unknown_agent",
}
OPERATION_NOT_FOUND = {
    "error": "Operation not found. GET /v1/operations lists all operations.",
    "code": "unknown_operation",
}


def paths(gateway: Running) -> Iterator[str]:
    """Yield every path of the application, and some unknown ones."""
    for route in app.build(gateway.gateway).routes:
        if isinstance(route, Mount):
            yield from (f"{route.path}{below}" for below in BELOW)
            continue
        assert isinstance(route, Route), f"a route of another kind: {route}"
        path = route.path.replace("{agent}", "main").replace("{name:path}", "app.js")
        if path != "/v1/events":
            yield path
    yield from (
        "/v1/events",
        "/nothing",
        "/v1",
        "/v1/agents/main",
        "/v1/agents/main/no.such",
        "/docs",
        "/mcp/x",
    )


def asked(client: httpx.Client, method: str, path: str, **headers: str) -> httpx.Response:
    """Return the response. Do not read the body of a stream, which never ends."""
    request = client.build_request(method, path, headers=headers)
    answer = client.send(request, stream=True)
    if answer.headers["content-type"].startswith("text/event-stream"):
        answer.close()
    else:
        answer.read()
        answer.close()
    return answer


def test_without_a_token_every_route_and_method_is_401(gateway: Running) -> None:
    anonymous = gateway.client()
    answers = {
        (method, path): asked(anonymous, method, path).status_code
        for path in paths(gateway)
        for method in METHODS
        if path not in PUBLIC
    }
    assert len(answers) > len(METHODS) * len(OPERATIONS)
    assert set(answers.values()) == {401}, [key for key, status in answers.items() if status != 401]


def test_a_wrong_token_is_401(gateway: Running) -> None:
    stranger = gateway.client()
    for shown in (
        "Bearer wrong",
        "Bearer x y",
        f"Bearer mmr_{'x' * 43}",
        "Bearer mmr_é",
        "a" * 10_000,
        "Basic YTpi",
    ):
        given = [(b"authorization", shown.encode())]
        answer = stranger.post("/v1/agents/main/memory.stats", headers=httpx.Headers(given))
        assert (answer.status_code, answer.json()) == (
            401,
            {
                "error": "Missing or invalid token. Send it as `Authorization: Bearer <token>`.",
                "code": "unauthorized",
            },
        )
        assert answer.headers["www-authenticate"] == "Bearer"


FOREIGN = (
    {"Host": "evil.example"},
    {"Origin": "https://evil.example"},
    {"Host": "127.0.0.1"},
    {"Host": "127.0.0.1:1"},
    {"Host": ""},
    {"Host": "localhost.evil.example:{port}"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": ""},
    {"Origin": "http://127.0.0.1:{port}.evil.example"},
)


def test_a_foreign_host_or_origin_is_403_on_every_route_even_with_an_admin_token(gateway: Running) -> None:
    owner = gateway.caller("admin")
    port = gateway.address.rpartition(":")[2]
    every = list(paths(gateway))
    for number, headers in enumerate(FOREIGN):
        foreign = {name: value.replace("{port}", port) for name, value in headers.items()}
        # Two of them on every route. The others take the same code path, so a few routes are enough.
        some = every if number < 2 else ["/", "/healthz", "/open", "/mcp", "/v1/agents/main/memory.stats"]
        answers = [asked(owner, method, path, **foreign) for path in some for method in ("GET", "POST")]
        assert {answer.status_code for answer in answers} == {403}, headers
        code = "host_not_allowed" if "Host" in headers else "origin_not_allowed"
        assert {answer.json()["code"] for answer in answers} == {code}, headers
        assert not any("access-control-allow-origin" in answer.headers for answer in answers)


def test_the_gateways_own_hosts_and_origins_are_allowed(gateway: Running) -> None:
    owner = gateway.caller("admin")
    port = gateway.address.rpartition(":")[2]
    for name in ("127.0.0.1", "localhost", "[::1]", "LOCALHOST"):
        headers = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}"}
        assert asked(owner, "GET", "/v1/agents", **headers).status_code == 200


def test_an_operation_that_requires_more_access_is_403(gateway: Running) -> None:
    for granted in ACCESS:
        caller = gateway.caller(granted)
        answers = {
            name: caller.post(f"/v1/agents/main/{name}", json={"no such argument": 1}) for name in OPERATIONS
        }
        refused = {name: answer.status_code == 403 for name, answer in answers.items()}
        assert refused == {name: not grants(granted, tool.access) for name, tool in OPERATIONS.items()}
        assert {answer.status_code for name, answer in answers.items() if not refused[name]} == {422}
        for name in (name for name in answers if refused[name]):
            needed = OPERATIONS[name].access
            assert answers[name].json() == {
                "error": f"{name} requires {needed} access. This caller has {granted} access.",
                "code": "forbidden",
                "details": {"operation": name, "required": needed, "granted": granted},
            }


def test_readers_cannot_call_operations_that_change_data(gateway: Running) -> None:
    reader = gateway.caller("read")
    writing = [name for name, tool in OPERATIONS.items() if not tool.read_only]
    assert {"memory_save", "memory_store", "memory_forget", "capture", "memory.sync"} <= set(writing)
    assert {
        name: reader.post(f"/v1/agents/main/{name}", json={}).status_code for name in writing
    } == dict.fromkeys(writing, 403)


def test_only_admin_callers_speak_for_the_owner(gateway: Running) -> None:
    trust = {}
    for granted in ("write", "admin"):
        message = {"role": "user", "content": f"I prefer {granted} tea."}
        captured = ask(gateway.caller(granted), "capture", messages=[message], session=granted)  # type: ignore[arg-type]
        trust[granted] = captured["remembered"][0]["memory"]["trust"]
    assert trust == {"write": "agent", "admin": "owner"}


def test_a_note_that_waits_names_the_token_that_wrote_it(start: Start) -> None:
    gateway = start(entries__approval="agent")
    caller = gateway.client(gateway.gateway.tokens.create("write", name="Cursor two")[1])
    ask(caller, "memory_save", content="The bakery opens at six")
    ask(caller, "memory_save", content="The ferry runs hourly", title="Ferry", category="town")
    waiting = ask(gateway.caller(), "notes.waiting")["notes"]
    assert {one["source"] for one in waiting} == {"tool:Cursor two"}


def test_the_text_of_a_note_that_waits_cannot_name_another_writer(start: Start, workspace: Path) -> None:
    note = '---\ntrust: "agent"\napproval: "pending"\n---\n\nmade_by: "tool:Bob"\n'
    (workspace / "memory" / "claims.md").write_text(note)
    gateway = start(entries__approval="agent")
    assert [one["source"] for one in ask(gateway.caller(), "notes.waiting")["notes"]] == ["tool"]


def test_editing_an_entry_that_has_changed_is_409(gateway: Running) -> None:
    owner = gateway.caller("admin")
    entry = ask(owner, "entries.add", text="I drink tea")["entry"]
    stale = {"id": entry["id"], "text": "I drink coffee", "ifSeq": entry["seq"] + 1}
    answer = owner.post("/v1/agents/main/entries.edit", json=stale)
    assert (answer.status_code, answer.json()["code"]) == (409, "entry.changed")


def test_no_operation_can_change_settings_commands_or_folders() -> None:
    words = ("config", "setting", "command", "workspace", "home", "base_url", "endpoint", "token")
    named = {
        f"{tool.name}.{argument}"
        for tool in OPERATIONS.values()
        for argument in tool.schema()["properties"]
        if any(word in argument.lower() for word in words) and argument != "tokens"
    }
    assert named == {"entries.list.workspace", "entries.export.workspace"}  # filters


def test_other_methods_are_405(gateway: Running) -> None:
    owner = gateway.caller("admin")
    for path, right in (("/v1/agents/main/memory.stats", "POST"), ("/v1/agents", "GET"), ("/metrics", "GET")):
        for method in METHODS:
            if method not in (right, "HEAD"):
                answer = asked(owner, method, path)
                assert answer.status_code == 405, (method, path)
                if method != "HEAD":
                    assert answer.json() == {"error": "Method not allowed.", "code": "method_not_allowed"}


def test_unknown_paths_agents_and_operations_are_404(gateway: Running) -> None:
    owner = gateway.caller("admin")
    unknown = {
        "/v1/agents/unknown/memory.stats": AGENT_NOT_FOUND,
        "/v1/agents/main/no.such": OPERATION_NOT_FOUND,
        "/v1/agents/main/memory.stats/more": OPERATION_NOT_FOUND,
        "/v1/agents/..%2Fmain/memory.stats": AGENT_NOT_FOUND,
        "/v1/agents/": AGENT_NOT_FOUND,
        "/v1/agents/main": NOT_FOUND,
        "/nothing": NOT_FOUND,
        "/mcp/more": NOT_FOUND,
    }
    for path, body in unknown.items():
        answer = owner.post(path, json={})
        assert (answer.status_code, answer.json()) == (404, body), path


def test_a_control_character_in_a_path_is_404(gateway: Running) -> None:
    owner = gateway.caller("admin")
    for path in (
        "/mcp%0a",
        "/v1/events%0a",
        "/v1/agents%0a",
        "/v1/agents/main/memory.stats%0a",
        "/%00",
        "/x%7f",
    ):
        for method in ("GET", "POST"):
            answer = asked(owner, method, path)
            assert (answer.status_code, answer.json()) == (404, NOT_FOUND), path


def test_a_duplicate_header_is_400(gateway: Running) -> None:
    token = gateway.gateway.tokens.create("admin")[1].encode()
    twice = [(b"authorization", b"Bearer " + token), (b"authorization", b"Bearer x")]
    answer = gateway.client().get("/v1/agents", headers=httpx.Headers(twice))
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "The authorization header must be sent only once.", "code": "bad_header"},
    )


def test_every_response_has_the_security_headers(gateway: Running) -> None:
    owner, anonymous = gateway.caller("admin"), gateway.client()
    answers = [
        owner.get("/v1/agents"),
        anonymous.get("/"),
        anonymous.get("/healthz"),
        anonymous.post("/v1/agents/main/memory.stats"),
        owner.get("/nothing"),
        owner.get("/static/app.js"),
        owner.get("/", headers={"Host": "evil"}),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("path", ["/healthz", "/health"])
def test_health_needs_no_token_and_returns_only_a_status(gateway: Running, path: str) -> None:
    answer = gateway.client().get(path)
    assert (answer.status_code, answer.text) == (200, '{"status":"ok"}')


def test_the_version_is_shown_to_callers_with_a_token(gateway: Running) -> None:
    answer = gateway.caller("read").get("/v1/version")
    assert answer.json() == {"name": "memoriter", "version": __version__}
    assert gateway.caller("read").get("/openapi.json").json()["info"]["version"] == __version__
    assert gateway.client().get("/v1/version").status_code == 401
