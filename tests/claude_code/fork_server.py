"""Runs the command line in a fork for each line on standard input, with everything loaded already.

A line holds arguments, data, environment and folder; the answer the exit status, standard output and error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from memoriter.cli import main
from memoriter.memory import Memory  # noqa: F401

LATER = [
    *("agent.plugins", "embedding", "entries.collection", "entries.search", "llm.budget", "llm.structured"),
    *("notes.extractive", "notes.flush", "notes.writer", "recall.inject", "search.search"),
    *("sessions.seen_turns", "store.ledger", "store.vectors.scan"),
]
for name in LATER:  # what a hook loads when it needs it: here once, before the forks
    importlib.import_module(f"memoriter.{name}")


def _exit_as(call: Callable[[], None]) -> NoReturn:
    """End as the interpreter would; a hook has ended before."""
    code = 0
    try:
        call()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except Exception:  # noqa: BLE001 - shown as Python would
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(call: Mapping[str, Any]) -> dict[str, object]:
    """The exit status and what came on standard output and error."""
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as error,
    ):
        given.write(bytes.fromhex(call["data"]))
        given.seek(0)
        child = os.fork()
        if child == 0:
            for number, file in enumerate((given, output, error)):
                os.dup2(file.fileno(), number)
            os.chdir(call["cwd"])
            os.environ.clear()
            os.environ.update(call["environment"])
            sys.argv = ["memoriter", *call["arguments"]]
            _exit_as(main)
        _, status = os.waitpid(child, 0)
        output.seek(0)
        error.seek(0)
        return {
            "code": os.waitstatus_to_exitcode(status),
            "output": output.read().hex(),
            "error": error.read().hex(),
        }


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()
