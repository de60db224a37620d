"""Programs that a test interrupts as Ctrl+C does."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Sequence

#: Windows sends Ctrl+C only to all programs of a console, so the program raises the signal when a connection ends.
_PROGRAM = """
import signal, socket, sys, threading
from memoriter.cli import main

def interrupt(stream):
    stream.recv(1)
    signal.raise_signal(signal.SIGINT)

stream = socket.create_connection(("127.0.0.1", int(sys.argv.pop(1))))
threading.Thread(target=interrupt, args=[stream], daemon=True).start()
main()
"""


class Interrupt:
    """Interrupts one `memoriter` that was started by its command."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0)) if sys.platform == "win32" else None

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that runs `memoriter` with arguments."""
        if self._listener is None:
            return [sys.executable, "-m", "memoriter", *arguments]
        return [sys.executable, "-c", _PROGRAM, str(self._listener.getsockname()[1]), *arguments]

    def send(self, process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
        """Interrupt the program."""
        if self._listener is None:
            process.send_signal(signal.SIGINT)
        else:
            with self._listener:
                self._listener.accept()[0].close()
