"""The server of the vendors, and its host name."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import vendors as fake
from vendors import DIMS, HOST, KEY, Vendors, running, url

from memoriter import Memory


@pytest.fixture
def vendors(monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendors]:
    """The server. Other host names are errors."""
    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    real = socket.getaddrinfo
    with running() as state:

        def lookup(host: Any, port: Any, *args: Any, **options: Any) -> Any:
            name = host.decode() if isinstance(host, bytes) else host
            if name == HOST:
                return real("127.0.0.1", state.resolve(name), *args, **options)
            assert name == "127.0.0.1", f"a connection to {name} was attempted"
            return real(host, port, *args, **options)

        monkeypatch.setattr(socket, "getaddrinfo", lookup)
        yield state


OpenProvider = Callable[..., Memory]


def settings(provider: str, **more: object) -> dict[str, object]:
    """Settings with which the provider's embedder uses the server."""
    own: dict[str, object] = {
        "embedding.provider": provider,
        "embedding.dimensions": DIMS,
        "embedding.base_url": url(provider),
        "embedding.query_timeout_s": 60,  # a vendor's package loads slowly on a busy machine
    }
    if provider != "ollama":
        own[f"embedding.{provider}_api_key"] = KEY
    return own | {name.replace("__", "."): value for name, value in more.items()}


@pytest.fixture
def open_provider(
    vendors: Vendors, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenProvider]:
    """Open the workspace's memory with a vendor's embedder, without retries."""
    monkeypatch.setattr("memoriter.extensions.vendors.embedder.MAX_RETRIES", 0)
    monkeypatch.setattr(
        "memoriter.embedding.guarded.LINGER_S", 0.0
    )  # so that the end of a thread is that of its call
    opened: list[Memory] = []

    def open_(provider: str, **more: object) -> Memory:
        memory = Memory.open(workspace, home=tmp_path / "state", overrides=settings(provider, **more))
        opened.append(memory)
        return memory

    yield open_
    vendors.release.set()
    for thread in threading.enumerate():  # an abandoned call closes its connection first
        if thread.name == "memoriter-embed-call":
            thread.join(timeout=1)  # a call that is still connecting cannot be interrupted
    for memory in opened:
        memory.close()


@pytest.fixture(params=fake.PATHS)
def provider(request: pytest.FixtureRequest) -> str:
    """Each vendor."""
    return str(request.param)
