"""The resident process on loopback, as on Windows and for long paths on macOS: real processes that know a token."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memoriter.files import platform
from memoriter.resident import client

PATIENCE_S = 600


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home without Unix sockets. Its process is stopped at the end."""
    monkeypatch.setattr(platform, "MAX_ADDRESS_BYTES", 0)
    monkeypatch.setattr(client, "LOOPBACK_S", 5.0)
    home = tmp_path / "home"
    yield home
    with suppress(client.Unavailable):
        ask(home, "stop")


def ask(home: Path, operation: str = "describe", *, start: bool = False) -> dict[str, object]:
    return client.Connection(str(home), start=start, timeout_s=PATIENCE_S).ask({"operation": operation})


def test_a_process_on_loopback_answers_those_who_know_its_token(home: Path) -> None:
    first = ask(home, start=True)
    assert ask(home, start=True)["pid"] == first["pid"] != os.getpid()
    file = home / "resident" / "socket"
    port, token = client.read_token(str(file.parent))
    assert platform.is_private(file.parent)
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as stranger:
        stranger.sendall(b"00 00\n")
        assert stranger.recv(1) == b""
    file.write_text(f"{port} {'0' * len(token)}")
    with pytest.raises(client.Unavailable):
        ask(home)
    file.write_text(f"{port} {token}")
    assert ask(home, "stop")["pid"] == first["pid"]


def test_a_program_that_got_the_port_of_an_ended_process_is_not_believed(home: Path) -> None:
    folder = Path(client.folder_of(str(home)))
    folder.mkdir(parents=True)
    platform.make_private(folder)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (folder / "socket").write_text(f"{listener.getsockname()[1]} {'a' * 64}")

        def greet() -> None:
            stream, _ = listener.accept()
            with stream:
                greeting = {"ready": True, "identity": client.identity(), "pid": 1, "proof": "0" * 64}
                stream.sendall(json.dumps(greeting).encode() + b"\n")
                stream.recv(1000)

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(client.Unavailable, match="another program has its port"):
            ask(home)
        thread.join()
    (folder / "socket").write_text("")
    with pytest.raises(client.Unavailable):
        ask(home)
