"""The command line as far as every caller needs it: global options, the first word, and the places that they name.

This is the only reader of command lines besides typer, which parses what follows the first word. Hooks are read here
as a whole: on wrong usage typer exits with status 2, which some hosts treat as a veto, and loading typer takes longer
than the rest of the start. For the same reason this module imports few others.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` costs a third of the start
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

#: Options of the program itself, all with a value. They also work after the first word.
GLOBAL_OPTIONS = ("workspace", "home", "agent", "config", "store")
#: Variables that name the home. The first wins.
HOME_VARIABLES = ("MEMORITER_HOME", "STORAGE_DIR")
#: Time for the answer of a hook, in seconds, unless its command line names another.
DEADLINE_S = 2.0
#: Options of a hook with a value.
HOOK_OPTIONS = ("deadline", "server")


class CommandLine:
    """A command line: its global options with their values, unknown options before the first word, and the words."""

    __slots__ = ("options", "unknown", "words")

    def __init__(self, options: dict[str, str], unknown: list[str], words: list[str]) -> None:
        self.options = options
        self.unknown = unknown
        #: The first word names the command. The others include its own options.
        self.words = words

    @property
    def command(self) -> str:
        """The first word; empty if there is none."""
        return self.words[0] if self.words else ""

    def ordered(self) -> list[str]:
        """Return the arguments with all global options first."""
        options = [f"--{name}={value}" for name, value in self.options.items()]
        return [*options, *self.unknown, *self.words]


def read(arguments: Sequence[str], *, more: Collection[str] = (), own: Collection[str] = ()) -> CommandLine:
    """Read a command line.

    ``more``: options with a value besides the global ones. ``own``: options that belong to the command where they
    follow the first word. Nothing after ``--`` is an option.
    """
    line = CommandLine({}, [], [])
    remaining = list(arguments)
    while remaining:
        argument = remaining.pop(0)
        name, equals, value = argument.removeprefix("--").partition("=")
        is_known = argument.startswith("--") and (name in GLOBAL_OPTIONS or name in more)
        if argument == "--":
            (line.words or line.unknown).append(argument)
            line.words += remaining
            break
        if not argument.startswith("-") or argument == "-":
            line.words.append(argument)
        elif is_known and (equals or remaining) and not (line.words and name in own):
            line.options[name] = value if equals else remaining.pop(0)
        else:
            (line.words or line.unknown).append(argument)
    return line


# ---- places ----------------------------------------------------------------------------------------------------


def find_home(options: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return the home folder as the settings do, without loading them."""
    named = options.get("home") or next((environ[name] for name in HOME_VARIABLES if environ.get(name)), "")
    return os.path.abspath(os.path.expanduser(named or "~/.memoriter"))  # noqa: PTH100, PTH111 - pathlib is slow


def find_config(options: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Return the owner's settings file."""
    named = options.get("config") or environ.get("MEMORITER_CONFIG")
    path = os.path.expanduser(named) if named else f"{find_home(options, environ)}/config.yaml"  # noqa: PTH111
    return os.path.abspath(path)  # noqa: PTH100


# ---- hooks -----------------------------------------------------------------------------------------------------


class HookCommand:
    """The command line of a hook. It is read tolerantly: a mistake is logged and never rejected."""

    __slots__ = ("deadline_s", "detach", "event", "host", "mistake", "options", "server", "wait")

    def __init__(
        self,
        host: str = "",
        event: str = "",
        *,
        deadline_s: float = DEADLINE_S,
        wait: bool = False,
        detach: bool = False,
        server: str = "",
        options: Mapping[str, str] | None = None,
        mistake: str = "",
    ) -> None:
        self.host = host
        self.event = event
        self.deadline_s = deadline_s
        #: Exit when all work is finished, not when the answer is printed.
        self.wait = wait
        #: Let another process do the work, because the host ends this one soon.
        self.detach = detach
        #: The name of our MCP server in the host's settings.
        self.server = server
        #: The global options that were given.
        self.options = options or {}
        self.mistake = mistake


def read_hook(arguments: Sequence[str]) -> HookCommand | None:
    """Read the command line of a hook; return None if it is another command or asks for help."""
    line = read(arguments, more=HOOK_OPTIONS)
    words = [word for word in line.words if not word.startswith("-")]
    flags = [word for word in line.words if word.startswith("-")]
    if words[:1] != ["hook"] or (len(words) == 1 and {"-h", "--help"} & {*line.unknown, *flags}):
        return None
    _, host, event = (*words, "", "")[:3]
    mistakes = [*line.unknown, *(flag for flag in flags if flag not in ("--wait", "--detach"))]
    return HookCommand(
        host,
        event,
        deadline_s=_seconds(line.options.get("deadline", "")),
        wait="--wait" in flags,
        detach="--detach" in flags,
        server=line.options.get("server", ""),
        options={name: value for name, value in line.options.items() if value and name in GLOBAL_OPTIONS},
        mistake=f"ignored unknown arguments: {', '.join(mistakes)}" if mistakes else "",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return DEADLINE_S
    return min(max(seconds, 0.05), 600.0) if seconds == seconds else DEADLINE_S  # noqa: PLR0124 - NaN
