"""How much may be asked: size, depth, kind, rate and time; each is one sentence, and nothing falls over."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
from gateways import PATIENCE_S, Running, Start, ask, poll
from pydantic import Field

from memoriter.server.http import guard, limits, observe
from memoriter.server.http.limits import MAX_DEPTH, RateLimiter
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Arguments, Call, Shape, Tool

JSON = {"Content-Type": "application/json"}


def sent(
    caller: httpx.Client, body: bytes, operation: str = "memory.search", kind: str = JSON["Content-Type"]
):
    answer = caller.post(f"/v1/agents/main/{operation}", content=body, headers={"Content-Type": kind})
    return answer.status_code, answer.json().get("error")


def test_a_body_that_cannot_be_used_is_told_in_one_sentence(gateway: Running) -> None:
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
    assert sent(caller, b'{"query": 7}') == (422, "`query` must be a string.")
    assert sent(caller, b"{}", kind="text/plain") == (
        415,
        "Send the request body with `Content-Type: application/json`.",
    )
    assert sent(caller, b"query=x", kind="application/x-www-form-urlencoded")[0] == 415


def test_a_body_may_be_left_out_and_may_say_a_thing_twice(gateway: Running) -> None:
    caller = gateway.caller("read")
    assert caller.post("/v1/agents/main/memory.stats").status_code == 200
    assert sent(caller, b'{"query": "nothing", "query": "backup"}')[0] == 200
    assert sent(caller, b'{"query": "half a smile \\ud83d"}')[0] == 200
    assert sent(caller, b"{}", operation="memory.stats", kind="Application/JSON; charset=utf-8")[0] == 200


def test_a_large_body_is_413_whether_it_says_so_or_not(start: Start) -> None:
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
def test_who_sends_far_too_much_reads_the_answer_all_the_same(start: Start, chunked: bool) -> None:
    """Most clients send all of a body before they read: a connection that is closed on it is no answer to them."""
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


def test_a_bucket_is_emptied_by_requests_and_filled_by_time() -> None:
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


def test_too_many_requests_are_429_for_this_token_alone(start: Start) -> None:
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


def test_the_files_of_the_page_may_be_asked_for_all_at_once_again_and_again(start: Start) -> None:
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
    """An operation that lasts until it is let go, offered beside the real ones."""
    let_go = threading.Event()

    class Waited(Shape):
        waited: bool = True

    class Anything(Arguments):
        x: str | None = Field(None, description="Nothing.")

    def wait(call: Call[Anything]) -> Waited:
        let_go.wait(30)
        return Waited()

    tool = Tool("test.slow", "Waits.", Anything, Waited, wait)
    table = {**OPERATIONS, tool.name: tool}
    for module in (guard, observe):
        monkeypatch.setattr(module, "OPERATIONS", table)
    from memoriter.server.http import app

    monkeypatch.setattr(app, "OPERATIONS", table)
    yield let_go
    let_go.set()


def test_what_takes_too_long_is_504_and_the_gateway_goes_on(start: Start, slow: threading.Event) -> None:
    gateway = start(watch__enabled=False, gateway__limits__timeout_s=0.2)
    caller = gateway.caller("read")
    answer = caller.post("/v1/agents/main/test.slow")
    assert (answer.status_code, answer.json()) == (
        504,
        {"error": "The request took longer than 0.2 s.", "code": "timeout"},
    )
    assert (
        gateway.gateway.workers.in_use == 1
    )  # a thread cannot be stopped; its place is given back at its end
    slow.set()
    poll(lambda: gateway.gateway.workers.in_use == 0)


def unfinished(gateway: Running, path: str) -> socket.socket:
    """A request whose body does not come."""
    place = gateway.address.removeprefix("http://")
    token = gateway.gateway.tokens.create("read")[1]
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000\r\n"
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\r\n{"
    )
    host, port = place.split(":")
    waiting = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    waiting.sendall(head.encode())
    return waiting


def whole_answer(waiting: socket.socket) -> str:
    """What comes until the other side closes."""
    with waiting:
        return b"".join(iter(lambda: waiting.recv(65536), b"")).decode()


BODIES = ("/v1/agents/main/memory.stats", "/mcp")


@pytest.mark.parametrize("path", BODIES)
def test_a_body_that_does_not_come_is_given_up(start: Start, path: str) -> None:
    gateway = start(watch__enabled=False, gateway__limits__timeout_s=0.2)
    answer = whole_answer(unfinished(gateway, path))
    assert answer.startswith("HTTP/1.1 504 ")
    said = json.loads(answer.rpartition("\r\n")[2])["error"]
    assert said in ("The request body did not arrive in time.", "The request took longer than 0.2 s.")


@pytest.mark.parametrize("path", BODIES)
def test_a_body_that_does_not_come_does_not_keep_the_gateway_from_ending(
    start: Start, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(limits, "LAST_BODY_S", 0.1)
    gateway = start(watch__enabled=False)
    waiting = unfinished(gateway, path)
    poll(lambda: gateway.gateway.asgi.bodies.waiting == 1)
    gateway.server.stop()
    assert whole_answer(waiting).startswith("HTTP/1.1 504 ")


def test_who_comes_when_all_are_busy_is_told_to_come_again(start: Start, slow: threading.Event) -> None:
    gateway = start(watch__enabled=False, gateway__limits__concurrency=1)
    callers = [gateway.caller("read") for _ in range(4)]
    done: list[int] = []

    def call(caller: httpx.Client) -> None:
        done.append(caller.post("/v1/agents/main/test.slow").status_code)

    threads = [threading.Thread(target=call, args=(caller,)) for caller in callers]
    for thread in threads:
        thread.start()
    poll(lambda: gateway.gateway.workers.in_use == 4)
    busy = gateway.caller("read").post("/v1/agents/main/memory.stats")
    slow.set()
    for thread in threads:
        thread.join(10)
    assert (busy.status_code, busy.json()) == (
        503,
        {"error": "The gateway is busy. Try again.", "code": "busy"},
    )
    assert busy.headers["retry-after"] == "1"
    assert done == [200] * 4


def test_who_goes_away_is_not_worked_for(start: Start, slow: threading.Event) -> None:
    gateway = start(watch__enabled=False, gateway__limits__concurrency=1)
    holding = threading.Thread(
        target=lambda c: c.post("/v1/agents/main/test.slow"), args=(gateway.caller("read"),)
    )
    holding.start()
    poll(lambda: gateway.gateway.workers.in_use == 1)
    impatient = gateway.client(gateway.gateway.tokens.create("read")[1])
    with pytest.raises(httpx.ReadTimeout):
        impatient.post("/v1/agents/main/memory.stats", timeout=0.2)
    poll(lambda: gateway.gateway.workers.in_use == 1)  # its place in the queue is free again
    slow.set()
    holding.join(10)
    assert ask(gateway.caller("read"), "memory.stats")["disabled"] is False


def test_a_graceful_end_answers_what_runs(start: Start, slow: threading.Event) -> None:
    gateway = start(watch__enabled=False)
    caller = gateway.caller("read")
    answers: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: answers.append(caller.post("/v1/agents/main/test.slow")))
    asking.start()
    poll(lambda: gateway.gateway.workers.in_use == 1)
    gateway.server.stop()
    threading.Timer(0.3, slow.set).start()
    asking.join(10)
    assert [answer.json() for answer in answers] == [{"waited": True, "disabled": False}]
