"""The command line. Exit status: 0 on success, 1 on failure (one sentence on stderr), 2 on wrong usage.

With ``--json``, a failure also prints an object with the sentence as ``error`` on standard output.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import typer


#: Words of pydantic in the messages of typer, and what we write instead.
_PLAIN_WORDS = {
    "Value error, ": "",
    "Input should be": "must be",
    ", unable to parse string as an integer": "",
    ", unable to parse string as a number": "",
}


def main() -> None:
    """Run the command line. Every expected failure is reported as one sentence."""
    # One search multiplies too little to gain from a second BLAS thread.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if "hook" in sys.argv[1:]:
        from memoriter.integrations.claude_code.hook import main as run_hook
        from memoriter.integrations.claude_code.hook import parse

        if command := parse(sys.argv[1:]):
            run_hook(command)
    import typer

    from memoriter.cli.app import app
    from memoriter.errors import MemoriterError

    try:
        status = app(standalone_mode=False)
    except typer.TyperException as error:
        _fail_usage(error)
    except typer.Abort:
        _fail("Cancelled.")
    except MemoriterError as error:
        _fail(str(error))
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe. Python must not try to flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        _fail(f"{path}{error.strerror or error}.")
    else:
        raise SystemExit(status if isinstance(status, int) else 0)


def _fail_usage(error: typer.TyperException) -> NoReturn:
    message = error.format_message()
    for pydantic, plain in _PLAIN_WORDS.items():
        message = message.replace(pydantic, plain)
    if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export it; its message is the help
        sys.stderr.write(f"{message}\n")
        raise SystemExit(error.exit_code)
    _print_json_error(message)
    context: typer.Context | None = getattr(error, "ctx", None)
    if context is not None:
        sys.stderr.write(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n\n")
    sys.stderr.write(f"Error: {message}\n")
    raise SystemExit(error.exit_code)


def _fail(message: str) -> NoReturn:
    _print_json_error(message)
    sys.stderr.write(f"memoriter: {message}\n")
    raise SystemExit(1)


def _print_json_error(message: str) -> None:
    if "--json" in sys.argv[1:]:
        sys.stdout.write(json.dumps({"error": message}, ensure_ascii=False) + "\n")
        sys.stdout.flush()
