"""Requests that schemathesis generates from our OpenAPI document. No request may cause a 500 or break the document."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from lab.soak.forking import be_command, load_everything
from lab.soak.part import Part, Round, Task
from lab.soak.writers import Home

#: Seconds of one round, and requests for each operation and mode before the next operation.
DURATION_S, EXAMPLES = 300.0, 25
#: Failures after which the control ends.
CONTROL_FAILURES = 3
Answers = dict[str, list[int]]


def ask_everything(
    address: str,
    token: str,
    *,
    examples: int,
    fixed: bool = False,
    both_modes: bool = True,
    on_failure: Callable[[str], None] | None = None,
    until: float = float("inf"),
) -> Answers:
    """Send generated requests to every operation of a gateway and return the statuses by path.

    ``fixed`` generates the same requests each time. Without ``both_modes``, operations alternate between valid and
    invalid requests. A failure is raised, unless ``on_failure`` receives it.
    """
    import requests
    import schemathesis
    from schemathesis import GenerationMode

    headers = {"Authorization": f"Bearer {token}"}
    with requests.Session() as session:
        document = session.get(f"{address}/openapi.json", headers=headers, timeout=900).json()
        schema = schemathesis.openapi.from_dict(document)
        answers: Answers = defaultdict(list)
        modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        found: Any
        for number, found in enumerate(schema.get_all_operations()):
            operation = found.ok()
            chosen = modes if both_modes else (modes[number % 2],)
            for mode in modes[:1] if operation.method == "get" else chosen:
                if answers and time.monotonic() > until:
                    return answers
                ask = _asker(session, address, headers, answers, operation, mode, examples, fixed)
                try:
                    ask()
                except (Exception, BaseExceptionGroup) as failure:
                    if on_failure is None:
                        raise
                    on_failure(f"{operation.method} {operation.path}: {failure}")
    return answers


def _asker(
    session: Any,
    address: str,
    headers: Mapping[str, str],
    answers: Answers,
    operation: Any,
    mode: Any,
    examples: int,
    fixed: bool,
) -> Callable[[], None]:
    """Return a function that sends some requests to one operation and checks the responses."""
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=fixed,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        if case.method.lower() == "post":
            case.path_parameters["agent"] = "main"
        answer = case.call(base_url=address, session=session, headers=dict(headers), timeout=900)
        answers[case.operation.path].append(answer.status_code)
        case.validate_response(answer, checks=checks)
        if answer.status_code >= 400:
            assert {"error", "code"} <= set(answer.json()) <= {"error", "code", "details"}

    return ask


# ---- rounds ---------------------------------------------------------------------------------------------------


@contextmanager
def gateway(home: Home) -> Iterator[tuple[str, str]]:
    """Run a gateway in a fork. Yield its address and a token of the owner."""
    from memoriter.server.http.auth import Tokens

    load_everything()
    token = Tokens(home.home).create("admin")[1]
    limits = {"MEMORITER_GATEWAY__LIMITS__RATE": "100000", "MEMORITER_GATEWAY__LIMITS__BURST": "100000"}
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.dup2(os.open(home.root / "gateway.log", os.O_WRONLY | os.O_CREAT, 0o600), 2)
        be_command(["serve", "--port", "0", "--json"], {**home.environment(), **limits})
    os.close(writing)
    try:
        with os.fdopen(reading, encoding="utf-8") as lines:
            yield json.loads(lines.readline())["address"], token
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def run(task: Task) -> Round:
    """Ask a gateway for some minutes."""
    done, home = Round(), Home(task.folder / "home").create()
    (home.workspace / "MEMORY.md").write_text("# Memory\n\nThe heron stands in the marsh.\n")
    with gateway(home) as (address, token):
        until = time.monotonic() + (10.0 if task.short else DURATION_S)
        while time.monotonic() < until:
            examples = 3 if task.short else EXAMPLES
            answers = ask_everything(address, token, examples=examples, on_failure=done.fail, until=until)
            _count(done, answers.values())
    if not done.counts.get("requests"):
        done.fail("no request was sent")
    errors = [
        line for line in (home.root / "gateway.log").read_text().splitlines() if '"level": "error"' in line
    ]
    for line in errors:
        done.fail(line)
    return done


def _count(done: Round, answers: Sequence[list[int]] | Any) -> None:
    statuses = [status for each in answers for status in each]
    done.count("requests", len(statuses))
    done.count("answered with 200", statuses.count(200))


class Crashing(BaseHTTPRequestHandler):
    """A server whose operations fail: the control."""

    def do_GET(self) -> None:
        from memoriter.server.http.app import openapi

        self._answer(200, openapi() if self.path == "/openapi.json" else {})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(500, {"error": "KeyError", "code": "internal"})

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def control(task: Task) -> Round:
    """Ask a server that always fails."""
    del task
    done = Round()
    server = HTTPServer(("127.0.0.1", 0), Crashing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"

    def fail(failure: str) -> None:
        done.fail(failure)
        if len(done.failures) == CONTROL_FAILURES:
            raise StopIteration

    with suppress(StopIteration):
        ask_everything(address, "none", examples=1, on_failure=fail)
    server.shutdown()
    return done


PART = Part(
    "requests",
    "Requests generated from the OpenAPI document by schemathesis",
    {"seconds": 3600},
    run,
    control,
    "a server that answers 500",
)
