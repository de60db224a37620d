"""Limits of requests: size, depth, media type, rate, time and concurrency."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
from gateways import TIMEOUT_S, Running, Start, ask, poll
from pydantic import Field

from memoriter.errors import StoreUnavailable
from memoriter.server.http import app, guard, limits, observe
from memoriter.server.http.limits import MAX_DEPTH, RateLimiter
from memoriter.tools.search import NoArguments
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Arguments, Call, Shape, Tool

JSON = {"Content-Type": "application/json"}


def sent(
    caller: httpx.Client, body: bytes, operation: str = "memory.search", kind: str = JSON["Content-Type"]
):
    answer = caller.post(f"/v1/agents/main/{operation}", content=body, headers={"Content-Type": kind})
    return answer.status_code, answer.json().get("error")


def test_an_invalid_body_is_one_clear_error(gateway: Running) -> None:
    caller = gateway.caller("write")
    not_json = (400, "The request body is not valid JSON.")
    too_deep = (400, f"The request body is nested deeper than {MAX_DEPTH} levels.")
    assert sent(caller, b"{") == not_json
    assert sent(caller, b'{"query": NaN}') == not_json
    assert sent(caller, b'{"query": "x", "minScore": 1e999}') == not_json
    assert sent(caller, b'{"query": ' + b"9" * 5000 + b"}") == not_json
    assert sent(caller, b'{"query": "\xff"}') == not_json
    assert sent(caller, b"[" * 200_000) in (not_json, too_deep)
    assert sent(caller, b"[" * 200_000 + b"]" * 200_000) == too_deep
    assert sent(caller, b'{"query":' * 50_000 + b"1" + b"}" * 50_000) == too_deep
    assert sent(caller, b'{"query":' + b"[" * 99 + b"]" * 99 + b"}") == too_deep
    assert sent(caller, b"[]") == (422, "The request body must be a JSON object with the arguments.")
    assert sent(caller, b'"x"') == (422, "The request body must be a JSON object with the arguments.")
    assert sent(caller, b"{}") == (422, "memory.search needs `query`.")
    assert sent(caller, b'{"query": 7}') == (422, "`query` must be a string of at most 10,000 characters.")
    assert sent(caller, b"{}", kind="text/plain") == (
        415,
        "Send the request body with `Content-Type: application/json`.",
    )
    assert sent(caller, b"query=x", kind="application/x-www-form-urlencoded")[0] == 415


def test_a_body_may_be_empty_and_may_repeat_a_key(gateway: Running) -> None:
    caller = gateway.caller("read")
    assert caller.post("/v1/agents/main/memory.stats").status_code == 200
    assert sent(caller, b'{"query": "nothing", "query": "backup"}')[0] == 200
    assert sent(caller, b'{"query": "half a smile \\ud83d"}')[0] == 200
    assert sent(caller, b"{}", operation="memory.stats", kind="Application/JSON; charset=utf-8")[0] == 200


def test_a_large_body_is_413_with_and_without_a_declared_length(start: Start) -> None:
    gateway = start(watch__enabled=False, gateway__limits__body_bytes=2000)
    caller = gateway.caller("read")

    def drops() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    large = (413, "The request body is larger than 2000 bytes.")
    assert sent(caller, b" " * 2001) == large
    answer = caller.post("/v1/agents/main/memory.stats", content=drops(), headers=JSON)
    assert (answer.status_code, answer.json()["error"]) == large
    assert sent(caller, b'{"query": "backup"}')[0] == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_that_sends_far_too_much_still_gets_the_error(start: Start, chunked: bool) -> None:
    """Most clients send the whole body before they read, so closing the connection would hide the error."""
    gateway = start(gateway__limits__body_bytes=2000, watch__enabled=False)
    body = b"x" * 20_000_000
    head = {**JSON, "Authorization": gateway.caller().headers["Authorization"]}
    if chunked:
        head["Transfer-Encoding"] = "chunked"
    client = http.client.HTTPConnection(gateway.address.removeprefix("http://"), timeout=60)
    blocks = (body[at : at + 100_000] for at in range(0, len(body), 100_000))
    client.request(
        "POST", "/v1/agents/main/recall", blocks if chunked else body, head, encode_chunked=chunked
    )
    answer = client.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]) == (
        413,
        "The request body is larger than 2000 bytes.",
    )
    client.close()


def test_a_rate_bucket_refills_with_time() -> None:
    now = 0.0
    rate = RateLimiter(2.0, 3, clock=lambda: now)
    assert [rate.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert rate.take("b") == 0.0
    now = 0.4
    assert rate.take("a") == pytest.approx(0.1)
    now = 0.5
    assert [rate.take("a"), rate.take("a")] == [0.0, pytest.approx(0.5)]
    now = 1000.0
    assert [rate.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


def test_too_many_requests_are_429_only_for_this_token(start: Start) -> None:
    now = [0.0]
    gateway = start(
        watch__enabled=False, gateway__limits__rate=1, gateway__limits__burst=2, clock=lambda: now[0]
    )
    one, other = gateway.caller("read"), gateway.caller("read")
    statuses = [one.get("/v1/operations").status_code for _ in range(3)]
    refused = one.get("/v1/operations")
    assert statuses == [200, 200, 429]
    assert refused.headers["retry-after"] == "1"
    assert refused.json() == {"error": "Too many requests. Try again in 1 s.", "code": "rate_limited"}
    assert other.get("/v1/operations").status_code == 200
    now[0] = 5.0
    assert one.get("/v1/operations").status_code == 200


def test_files_of_the_page_do_not_count_for_the_rate_limit(start: Start) -> None:
    gateway = start(
        watch__enabled=False, gateway__limits__rate=1, gateway__limits__burst=2, clock=lambda: 0.0
    )
    one = gateway.caller("read")
    assert [one.get("/static/app.js").status_code for _ in range(5)] == [200] * 5
    assert [one.get("/v1/operations").status_code for _ in range(3)] == [200, 200, 429]
    assert one.get("/static/../v1/operations").status_code == 429


# ---- time -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Add an operation that waits for the event."""
    release = threading.Event()

    class Waited(Shape):
        waited: bool = True

    class Anything(Arguments):
        x: str | None = Field(None, description="Nothing.")

    def wait(call: Call[Anything]) -> Waited:
        release.wait(30)
        return Waited()

    tool = Tool("test.slow", "Waits.", Anything, Waited, wait)
    table = {**OPERATIONS, tool.name: tool}
    for module in (guard, observe):
        monkeypatch.setattr(module, "OPERATIONS", table)
    monkeypatch.setattr(app, "OPERATIONS", table)
    yield release
    release.set()


def test_a_client_is_told_to_try_again_while_the_database_does_not_answer(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(call: Call[NoArguments]) -> Shape:
        raise StoreUnavailable("The Postgres server db1 does not answer.")

    tool = Tool("test.write", "Writes.", NoArguments, Shape, write)
    for module in (guard, observe, app):
        monkeypatch.setattr(module, "OPERATIONS", {**OPERATIONS, tool.name: tool})
    answer = start(watch__enabled=False).caller().post("/v1/agents/main/test.write")
    assert (answer.status_code, answer.headers["retry-after"], answer.json()["code"]) == (
        503,
        "5",
        "store_unavailable",
    )


def test_a_request_that_takes_too_long_is_504(start: Start, slow: threading.Event) -> None:
    gateway = start(watch__enabled=False, gateway__limits__timeout_s=0.2)
    caller = gateway.caller("read")
    answer = caller.post("/v1/agents/main/test.slow")
    assert (answer.status_code, answer.json()) == (
        504,
        {"error": "The request took longer than 0.2 s.", "code": "timeout"},
    )
    assert (
        gateway.gateway.workers.in_use == 1
    )  # a thread cannot be stopped, so its place stays taken until it ends
    slow.set()
    poll(lambda: gateway.gateway.workers.in_use == 0)


def unfinished(gateway: Running, path: str) -> socket.socket:
    """Send a request without the rest of its body."""
    place = gateway.address.removeprefix("http://")
    token = gateway.gateway.tokens.create("read")[1]
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\r\n{"
    )
    host, port = place.split(":")
    waiting = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
    waiting.sendall(head.encode())
    return waiting


def whole_answer(waiting: socket.socket) -> str:
    """Return everything until the gateway closes the connection."""
    with waiting:
        return b"".join(iter(lambda: waiting.recv(65536), b"")).decode()


BODIES = ("/v1/agents/main/memory.stats", "/mcp")


@pytest.mark.parametrize("path", BODIES)
def test_a_body_that_does_not_arrive_is_504(start: Start, path: str) -> None:
    gateway = start(watch__enabled=False, gateway__limits__timeout_s=0.2)
    answer = whole_answer(unfinished(gateway, path))
    assert answer.startswith("HTTP/1.1 504 ")
    message = json.loads(answer.rpartition("\r\n")[2])["error"]
    assert message in ("The request body did not arrive in time.", "The request took longer than 0.2 s.")


@pytest.mark.parametrize("path", BODIES)
def test_a_body_that_does_not_arrive_does_not_delay_the_shutdown(
    start: Start, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(limits, "LAST_BODY_S", 0.1)
    gateway = start(watch__enabled=False)
    waiting = unfinished(gateway, path)
    poll(lambda: gateway.gateway.asgi.bodies.waiting == 1)
    gateway.server.stop()
    assert whole_answer(waiting).startswith("HTTP/1.1 504 ")


def test_requests_beyond_the_queue_are_503(start: Start, slow: threading.Event) -> None:
    gateway = start(watch__enabled=False, gateway__limits__concurrency=1)
    callers = [gateway.caller("read") for _ in range(8)]
    statuses: list[int] = []

    def call(caller: httpx.Client) -> None:
        statuses.append(caller.post("/v1/agents/main/test.slow").status_code)

    threads = [threading.Thread(target=call, args=(caller,)) for caller in callers]
    for thread in threads:
        thread.start()
    poll(lambda: gateway.gateway.workers.in_use == 8)
    busy = gateway.caller("read").post("/v1/agents/main/memory.stats")
    slow.set()
    for thread in threads:
        thread.join(120)
    assert (busy.status_code, busy.json()) == (
        503,
        {"error": "The gateway is busy. Try again.", "code": "busy"},
    )
    assert busy.headers["retry-after"] == "1"
    assert statuses == [200] * 8


def test_a_waiting_request_is_dropped_when_its_client_disconnects(
    start: Start, slow: threading.Event
) -> None:
    gateway = start(watch__enabled=False, gateway__limits__concurrency=1)
    holding = threading.Thread(
        target=lambda c: c.post("/v1/agents/main/test.slow"), args=(gateway.caller("read"),)
    )
    holding.start()
    poll(lambda: gateway.gateway.workers.in_use == 1)
    client = gateway.client(gateway.gateway.tokens.create("read")[1])
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/agents/main/memory.stats", timeout=0.2)
    poll(lambda: gateway.gateway.workers.in_use == 1)  # it has left the queue
    slow.set()
    holding.join(120)
    assert ask(gateway.caller("read"), "memory.stats")["disabled"] is False


def test_running_requests_get_responses_when_the_gateway_stops(start: Start, slow: threading.Event) -> None:
    gateway = start(watch__enabled=False)
    caller = gateway.caller("read")
    answers: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: answers.append(caller.post("/v1/agents/main/test.slow")))
    asking.start()
    poll(lambda: gateway.gateway.workers.in_use == 1)
    gateway.server.stop()
    threading.Timer(0.3, slow.set).start()
    asking.join(120)
    assert [answer.json() for answer in answers] == [{"waited": True, "disabled": False}]
