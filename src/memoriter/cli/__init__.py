"""The command line. Exit status: 0 on success, 1 on failure (one sentence on stderr), 2 on wrong usage.

With ``--json``, a failure also prints an object with ``error``, ``code`` and ``details`` on standard output.
"""

from __future__ import annotations

import difflib
import json
import os
import sys

TYPE_CHECKING = False  # `typing` costs a third of the start
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    import typer

    from memoriter.cli.context import GlobalOptions
    from memoriter.resident.command_line import HookCommand

#: Words of pydantic in the messages of typer, and what we write instead.
_PLAIN_WORDS = {
    "Value error, ": "",
    "Input should be": "must be",
    ", unable to parse string as an integer": "",
    ", unable to parse string as a number": "",
}
#: Names that other programs give to options of ours.
_OTHER_NAMES = {
    "--limit": "--max-results",
    "--top": "--max-results",
    "--scope": "--access",
    "--role": "--access",
}


def main() -> None:
    """Run the command line. Every expected failure is reported as one sentence."""
    # One search multiplies too little to gain from a second BLAS thread.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments = sys.argv[1:]
    try:
        _prepare_output()
        from memoriter.resident import calls
        from memoriter.resident.command_line import read, read_hook

        if hook := read_hook(arguments):
            _answer_hook(hook, arguments)
        status = calls.run_command(read(arguments), arguments)
        raise SystemExit(execute(arguments) if status is None else status)
    except KeyboardInterrupt:
        sys.stdout.flush()
        os._exit(130)  # without waiting for threads that still compute
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe. Python must not try to flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _prepare_output() -> None:
    """Write UTF-8 with LF to files and pipes. A character that the terminal cannot show becomes a question mark."""
    from io import TextIOWrapper

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            encoding, newline = (None, None) if stream.isatty() else ("utf-8", "\n")
            stream.reconfigure(encoding=encoding, errors="replace", newline=newline)


def _answer_hook(command: HookCommand, arguments: list[str]) -> NoReturn:
    """Answer a hook and end the process."""
    from memoriter.resident import calls

    unanswered = None
    try:
        calls.answer_hook(command, arguments)
    except calls.Unanswered as failure:
        unanswered = failure
    from memoriter.errors import BadArgument
    from memoriter.hosts import find_host

    try:
        host = find_host(command.host)
    except BadArgument as error:
        # A wrong command in a host's settings must not stop the host.
        sys.stderr.write(f"memoriter: {error}\n")
        sys.stdout.write("{}\n")
        sys.exit(0)
    host.answer_hook(command, unanswered)


def execute(arguments: Sequence[str], options: GlobalOptions | None = None) -> int:
    """Run a command and return its exit status. The resident process adds ``options`` of its caller."""
    import typer

    from memoriter.cli.app import program
    from memoriter.errors import BadArgument, MemoriterError, message_of

    try:
        status = program()(args=list(arguments), prog_name="memoriter", standalone_mode=False, obj=options)
    except typer.TyperException as error:
        return _report_usage(error, arguments)
    except typer.Abort:
        hint = "" if sys.stdin and sys.stdin.isatty() else " Without a terminal, confirm with --yes."
        return _report(f"Cancelled; nothing was changed.{hint}", arguments)
    except MemoriterError as error:
        is_option = isinstance(error, BadArgument) and "workspace" in error.arguments
        return _report(str(error), arguments, error, status=2 if is_option else 1)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _report(f"{message_of(error)}.", arguments, error)
    return status if isinstance(status, int) else 0


def _report_usage(error: typer.TyperException, arguments: Sequence[str]) -> int:
    message = _suggest_option(error) or error.format_message()
    for pydantic, plain in _PLAIN_WORDS.items():
        message = message.replace(pydantic, plain)
    if type(error).__name__ == "NoArgsIsHelpError":  # typer does not export it; its message is the help
        sys.stderr.write(f"{message}\n")
        return error.exit_code
    _print_json_error(message, arguments)
    context: typer.Context | None = getattr(error, "ctx", None)
    if context is not None:
        sys.stderr.write(f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n\n")
    sys.stderr.write(f"Error: {message}\n")
    # Some hosts treat status 2 as a veto. They may have called a hook with a wrong option before the first word.
    is_unknown = context is None or context.parent is None
    return 1 if is_unknown and "hook" in arguments else error.exit_code


def _suggest_option(error: typer.TyperException) -> str:
    """Return the message for an unknown option, with the nearest option of the command or all of them."""
    context: typer.Context | None = getattr(error, "ctx", None)
    if type(error).__name__ != "NoSuchOption" or context is None:
        return ""
    from memoriter.extension import suggest

    own = [option for parameter in context.command.params for option in parameter.opts]
    known = [option for option in [*own, "--help"] if option.startswith("--")]
    others = {name: option for name, option in _OTHER_NAMES.items() if option in known}
    given = str(getattr(error, "option_name", ""))
    near = difflib.get_close_matches(given, [*others, *known], n=1)
    meant = others.get(near[0], near[0]) if near else given
    return f"{getattr(error, 'message', '')}. {suggest(meant, known)}"


def _report(
    message: str, arguments: Sequence[str], error: Exception | None = None, *, status: int = 1
) -> int:
    _print_json_error(message, arguments, error)
    sys.stderr.write(f"memoriter: {message}\n")
    return status


def _print_json_error(message: str, arguments: Sequence[str], error: Exception | None = None) -> None:
    """Print a failure as an operation returns it, if the caller wants JSON."""
    if "--json" not in arguments:
        return
    from memoriter.tools.toolbox import error_code

    code, details = error_code(error) if error else ("bad_request", {})
    text = json.dumps(
        {"error": message, "code": code, "details": dict(details)}, ensure_ascii=False, default=str
    )
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
