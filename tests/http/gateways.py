"""A real gateway on a free port, run in a thread, and clients that call it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from memoriter.config import load
from memoriter.extensions.serving.server import GatewayServer
from memoriter.server.http.gateway import SettingsLoader
from memoriter.tools.tool import Access

#: Long, because machines that run tests are often busy.
TIMEOUT_S = 300.0


class Running:
    """A running gateway, and helpers for tests."""

    def __init__(self, server: GatewayServer) -> None:
        self.server = server
        self.gateway = server.gateway
        self.address = server.address
        self.clients: list[httpx.Client] = []

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        """Return a client with this token, or without one."""
        given = {"Authorization": f"Bearer {token}"} if token else {}
        client = httpx.Client(base_url=self.address, headers={**given, **headers}, timeout=TIMEOUT_S)
        self.clients.append(client)
        return client

    def caller(self, access: Access = "admin", agents: tuple[str, ...] = ()) -> httpx.Client:
        """Return a client with a new token."""
        return self.client(self.gateway.tokens.create(access, agents=agents)[1])

    def page(self) -> httpx.Client:
        """Return a client that signed in with a link, like the scripts of the page."""
        client = self.client(None)
        client.get("/open", params={"ticket": self.gateway.browsers.tickets.issue()})
        client.headers["Origin"] = self.address
        return client


def ask(client: httpx.Client, operation: str, agent: str = "main", **arguments: object) -> Any:
    """Call an operation that must succeed. Return its result."""
    answer = client.post(f"/v1/agents/{agent}/{operation}", json=arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()


Start = Callable[..., Running]


@contextmanager
def running(
    workspace: Path | None,
    home: Path,
    *,
    clock: Callable[[], float] = time.monotonic,
    **settings: object,
) -> Iterator[Running]:
    """Run a gateway over the workspace until the end of the block; over a server's notes without one."""
    fixed: Mapping[str, object] = {"gateway.port": 0, "embedding.provider": "none", "watch.debounce_s": 0.05}
    arguments = {
        **({"workspace": workspace} if workspace else {}),
        "home": home,
        **fixed,
        **{key.replace("__", "."): value for key, value in settings.items()},
    }
    server = GatewayServer(SettingsLoader(load(arguments=arguments), None, arguments), clock=clock)
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(ready.set,), name="gateway under test")
    thread.start()
    assert ready.wait(TIMEOUT_S)
    here = Running(server)
    try:
        yield here
    finally:
        for client in here.clients:
            client.close()
        server.stop()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


class Events:
    """A stream of events, read line by line."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()

    def next(self) -> dict[str, Any]:
        """Return the next event. Skip heartbeats."""
        event: dict[str, Any] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if not line and "event" in event:
                return event
            if name in ("event", "id"):
                event[name] = value
            elif name == "data":
                event["data"] = json.loads(value)
        raise EOFError("the stream has ended")

    def until(self, kind: str) -> dict[str, Any]:
        """Return the next event of this kind. Skip others."""
        while (event := self.next())["event"] != kind:
            pass
        return event


@contextmanager
def listening(client: httpx.Client, agent: str = "main", after: str = "", **headers: str) -> Iterator[Events]:
    """Listen to the events of an agent."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    params = {"agent": agent, "after": after}
    with client.stream("GET", "/v1/events", params=params, headers=named) as answer:
        assert answer.status_code == 200, answer.read()
        yield Events(answer)


def poll(condition: Callable[[], bool], timeout_s: float = TIMEOUT_S) -> None:
    """Wait until the condition is true."""
    until = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until, "the condition did not become true in time"
        time.sleep(0.01)
