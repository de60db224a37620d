"""Operations over standard input and output, one JSON object per line, for a host that keeps a process per agent.

A request is `{"id", "operation", "arguments", "session", "access"}`; only `operation` is required. The response is
`{"id", "outcome", "result"}`, with the same result as over HTTP. Responses come in the order in which they are ready.
A caller may lower its access for one request, so that words of an agent do not count as the owner's.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any, get_args

from memoriter import __version__, logs
from memoriter.agent import ReloadingAgent
from memoriter.tools.table import OPERATIONS
from memoriter.tools.tool import Access, Outcome, Result, grants
from memoriter.tools.toolbox import Toolbox

log = logs.get("lines")

#: Maximum number of concurrent requests. Others wait.
MAX_THREADS = 8
#: Maximum size of a request in bytes.
MAX_LINE = 16 * 1024 * 1024
#: Time for the memory to close. Its files are consistent without it, too.
CLOSE_TIMEOUT_S = 3.0


def serve(agent: ReloadingAgent) -> None:
    """Serve until the host closes standard input. Requests that have begun are completed."""
    logs.setup()  # until the settings are loaded, which may fail
    # Anything else that is printed must not mix with responses.
    responses = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    agent.wake(load_model=True)
    server = LineServer(lambda request: _call_operation(agent, request), responses)
    server.respond({"ready": True, "version": __version__})
    with ThreadPoolExecutor(MAX_THREADS, "memoriter-lines") as threads:
        while line := sys.stdin.buffer.readline(MAX_LINE):
            threads.submit(server.handle, line)
    agent.close(CLOSE_TIMEOUT_S, cancel=True)


class LineServer:
    """Answers requests in lines of JSON, through a function that returns the outcome and the result."""

    def __init__(self, call: Callable[[dict[str, Any]], tuple[Outcome, Result]], responses: IO[str]) -> None:
        self._call = call
        self._responses = responses
        self._lock = threading.Lock()

    def handle(self, line: bytes) -> None:
        """Answer one request. A wrong request gets an answer too."""
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict) or not isinstance(request.get("operation"), str):
            message = "A request must be a JSON object on one line, with `operation`."
            result: Result = {"error": message, "code": "bad_request"}
            self.respond({"id": None, "outcome": "invalid", "result": result})
            return
        try:
            outcome, result = self._call(request)
        except Exception as error:  # a bug must not leave the host without an answer
            log.exception("the operation %s failed", request["operation"])
            failure = f"{request['operation']} failed: {type(error).__name__}."
            outcome, result = "broken", {"error": failure, "code": "internal_error"}
        self.respond({"id": request.get("id"), "outcome": outcome, "result": result})

    def respond(self, response: dict[str, object]) -> None:
        """Write one response. A host that no longer reads gets none."""
        text = json.dumps(response, ensure_ascii=False)
        with self._lock, suppress(BrokenPipeError, ValueError):
            try:
                self._responses.write(f"{text}\n")
            except UnicodeEncodeError:  # a lone surrogate, which JSON can escape
                self._responses.write(f"{json.dumps(response)}\n")
            self._responses.flush()


def _call_operation(agent: ReloadingAgent, request: dict[str, Any]) -> tuple[Outcome, Result]:
    access, session = request.get("access", "admin"), request.get("session")
    if access not in get_args(Access) or not isinstance(session, str | None):
        message = "`access` must be read, write or admin, and `session` a string."
        return "invalid", {"error": message, "code": "bad_request"}
    tool = OPERATIONS.get(request["operation"])
    if tool is not None and not grants(access, tool.access):
        return "refused", {"error": f"{tool.name} needs the access {tool.access}.", "code": "forbidden"}
    toolbox = Toolbox(lambda: agent().memory, session=session, tools=OPERATIONS, access=access)
    return toolbox.outcome(request["operation"], request.get("arguments"))
