"""Run the command line in a fork for each line on standard input, with all modules already loaded.

A line holds the arguments, environment and folder, with the input or a terminal. The answer holds the exit status,
standard output and error.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from memoriter.cli import main
from memoriter.cli.app import program
from memoriter.config.settings import full_settings
from memoriter.memory import Memory  # noqa: F401

#: Modules that a hook loads on first use. They are loaded once here, before the forks.
LAZY_MODULES = [
    *("agent.plugins", "embedding", "entries.collection", "entries.search", "llm.chat"),
    *("notes.extractive", "notes.summary", "recall.inject", "search.search"),
    *("entries.collection", "resident.calls", "sessions.seen_turns", "store.ledger", "store.vectors.scan"),
    *("cli.app", "cli.entry_tables", "cli.render", "extensions.importing", "tools.doctor", "tools.table"),
    *("config.yaml_file", "extensions.settings.commands", "extensions.workspaces.setup"),
]
#: Modules of others that commands load on first use.
LAZY_PACKAGES = ["filelock", "rich.console", "typer._adapters"]
for name in [*LAZY_PACKAGES, *(f"memoriter.{module}" for module in LAZY_MODULES)]:
    importlib.import_module(name)
program()
full_settings()
gc.collect()
gc.freeze()  # a collection in a fork would copy every page


def _exit_after(call: Callable[[], None]) -> NoReturn:
    """Call a function and end as the interpreter would. A hook ends the process itself."""
    code = 0
    try:
        call()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except Exception:  # noqa: BLE001 - printed as the interpreter would
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run(call: Mapping[str, Any]) -> dict[str, object]:
    """Run one call and return the exit status, standard output and error."""
    with (
        tempfile.TemporaryFile() as data,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as error,
    ):
        data.write(bytes.fromhex(call["data"]))
        data.seek(0)
        child = os.fork()
        if child == 0:
            terminal = os.open(name, os.O_RDWR | os.O_NOCTTY) if (name := call["terminal"]) else None
            for number, file in enumerate((data, output, error)):
                os.dup2(file.fileno() if terminal is None else terminal, number)
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - the other one has read calls
            if terminal is not None:
                sys.stdout, sys.stderr = (
                    open(number, "w", 1, encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends
                    for number in (1, 2)
                )
            os.chdir(call["cwd"])
            os.environ.clear()
            os.environ.update(call["environment"])
            sys.argv = ["memoriter", *call["arguments"]]
            _exit_after(main)
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
