"""The program: its options, which commands share, and the list of commands in ``--help``, in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperGroup

from memoriter.files.platform import quote
from memoriter.resident.command_line import GLOBAL_OPTIONS, read

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.memory import Memory

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
#: A text that needs no quotes.
Words = list[str]
#: MiB of standard input. The index reads no more of a note.
MAX_INPUT = 4
#: MiB of standard input with messages or arguments of an operation, as the gateway and the resident process accept.
MAX_JSON_INPUT = 16
#: Variables that name a workspace.
WORKSPACE_VARIABLES = ("MEMORITER_WORKSPACE", "MEMORY_DIR")


def join_words(words: Words, if_empty: str) -> str:
    """Return the words of a text. An empty text is wrong usage."""
    text = " ".join(words).strip()
    if not text:
        raise typer.BadParameter(if_empty)
    return text


def read_words(words: Words, if_empty: str) -> str:
    """Return the words of a text, or standard input for "-". It must be UTF-8 and small enough for the index."""
    if words == ["-"]:
        return join_words([read_input()], if_empty)
    text = join_words(words, if_empty)
    return _decode(text.encode(errors="surrogateescape"), "The argument")


def read_input(limit: int = MAX_INPUT) -> str:
    """Return standard input. It must be UTF-8 and not longer than a limit in MiB."""
    import sys

    data = sys.stdin.buffer.read((limit << 20) + 1)
    if len(data) > limit << 20:
        raise typer.BadParameter(f"Standard input has more than {limit} MiB. Nothing was stored.")
    return _decode(data, "Standard input")


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        message = f"{source} is not UTF-8 text (byte {error.start}). Nothing was stored."
        raise typer.BadParameter(message) from error


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """The options typed before the command."""

    workspace: Path | None = None
    home: Path | None = None
    agent: str | None = None
    config: Path | None = None
    store: str | None = None
    #: Variables, folder and open memories of a command that runs in the resident process.
    environ: Mapping[str, str] | None = None
    cwd: Path | None = None
    open: Callable[[Settings], AbstractContextManager[Memory]] | None = None

    def arguments(self, **overrides: object) -> dict[str, object]:
        """Return the options that were given, together with overrides of single settings."""
        places = {"workspace": self.workspace, "home": self.home, "agent": self.agent}
        options = {**places, "store.url": self.store, **overrides}
        return {key: value for key, value in options.items() if value is not None}

    def given(self) -> dict[str, str]:
        """Return the options that were given as they were typed."""
        options = {name: getattr(self, name) for name in GLOBAL_OPTIONS}
        return {name: str(value) for name, value in options.items() if value is not None}

    def settings(self, **overrides: object) -> Settings:
        """Load the settings and set up logging."""
        from memoriter import logs
        from memoriter.config import load

        settings = load(
            config=self.config, arguments=self.arguments(**overrides), environ=self.environ, cwd=self.cwd
        )
        logs.setup(settings.logging.level)
        return settings

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        """Open the memory for the duration of a command. Its folders must exist if they were named."""
        from memoriter.memory import Memory

        # A command ends with its answer. Only the resident process computes vectors in the background.
        settings = self.settings() if self.open else self.settings(**{"embedding.background": False})
        self._check_folders(settings)
        self._name_workspace(settings)
        with self.open(settings) if self.open else Memory.open(settings=settings) as memory:
            yield memory

    def _name_workspace(self, settings: Settings) -> None:
        """Print the workspace on stderr if it is not the current folder, and offer to set that up if it has notes."""
        import sys

        from memoriter.cli.render import plain, shorten_home

        here, workspace = (self.cwd or Path.cwd()).resolve(), settings.workspace.resolve()
        is_named = self.workspace is not None or settings.store.is_shared
        if is_named or here == workspace or workspace in here.parents:
            return
        has_notes = any((here / name).exists() for name in ("MEMORY.md", "memory.md", "memory"))
        has_notes |= not workspace.exists() and any(here.glob("*.md"))  # nothing is set up yet
        if settings.origin("workspace") in WORKSPACE_VARIABLES and not has_notes:
            return
        offer = (
            " The current folder has notes but is not set up: run `memoriter init .`." if has_notes else ""
        )
        sys.stderr.write(plain(f"memoriter: The workspace is {shorten_home(workspace)}.{offer}\n"))

    def _check_folders(self, settings: Settings) -> None:
        """Refuse named folders that do not exist. Opening the memory would create an index for a mistyped name."""
        from memoriter.errors import NotFound

        if settings.store.is_shared:
            return  # the folders cache what the server holds
        home, workspace, origin = settings.home, settings.workspace, settings.origin("workspace")
        if self.home is not None and not home.is_dir():
            create = f"memoriter --home {quote(str(home))} init"
            raise NotFound(f"There is no folder {home}, which --home names. `{create}` creates it.")
        if origin != "default" and not workspace.is_dir():
            names = (
                f" The names of workspaces are: {', '.join(known)}." if (known := settings.workspaces) else ""
            )
            raise NotFound(
                f"There is no folder {workspace}, the workspace that {origin} names. If you moved it, run"
                f" `memoriter init` in its new place. `memoriter init {quote(str(workspace))}` creates an empty one."
                f"{names}"
            )


# ---- help ------------------------------------------------------------------------------------------------------


class NamedArgument(TyperArgument):
    """An argument that help shows by convention: ``NAME``, ``[NAME]`` or ``NAME...``, without its Python type."""

    @property
    def display_name_raw(self) -> str:
        """The name in upper case."""
        return super().display_name_raw.upper()

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the argument as the usage line shows it."""
        name = self.display_name_raw if self.required else f"[{self.display_name_raw}]"
        return [name if self.nargs == 1 else f"{name}..."]

    def display_type_rich(self, ctx: Any) -> str | None:  # noqa: ARG002
        """Return no type: the help text says what the argument is."""
        return None


def grouped_commands() -> dict[str, dict[str, str]]:
    """Return every command with one line about it, by group: those of `commands.txt`, then those of extensions."""
    from memoriter.extension import offers

    groups, group = dict[str, dict[str, str]](), dict[str, str]()
    for line in Path(__file__).with_name("commands.txt").read_text("utf-8").splitlines():
        if line.startswith(" "):
            name, _, summary = line.strip().partition(" ")
            group[name] = summary.strip()
        elif line and not line.startswith("#"):
            group = groups.setdefault(line, {})
    for name, offer in offers("commands").items():
        group = groups.setdefault(offer.group or "Other", {})
        group[name] = group.get(name) or offer.summary
    return groups


#: Commands and the names that other programs give to them.
OTHER_NAMES = {
    "add": "remember store new",
    "edit": "update change",
    "forget": "delete remove rm erase",
    "get": "show cat read",
    "init": "setup",
    "save": "note write",
    "search": "query find ask",
    "serve": "start ui",
    "--version": "version",
}


class CommandGroup(TyperGroup):
    """The program with all its commands. Those of extensions are loaded when they are used."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        _name_arguments(self)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name. An extension offers a command as a `typer.Typer` that has only this one."""
        if cmd_name not in self.commands:
            from typer.main import get_command

            from memoriter.extension import offers

            if offer := offers("commands").get(cmd_name):
                try:
                    command: Any = get_command(offer.load())
                except ImportError as error:
                    raise typer.BadParameter(f"{cmd_name} cannot be loaded: {error}.") from error
                command.name = cmd_name
                _name_arguments(command)
                self.commands[cmd_name] = command
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is to run. For an unknown name, those of extensions are suggested too."""
        if self.get_command(ctx, args[0]) is None:
            for meant, names in OTHER_NAMES.items():
                if args[0] in names.split():
                    ctx.fail(f"No such command {args[0]!r}. Did you mean {meant!r}?")
            for name in self.list_commands(ctx):
                with suppress(typer.BadParameter):
                    self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        from memoriter.extension import offers

        return list(dict.fromkeys([*super().list_commands(ctx), *offers("commands")]))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Global options may also follow the command, unless it has one of the same name."""
        own = [option.removeprefix("--") for option in self._own_options(read(args).words)]
        return super().parse_args(ctx, read(args, own=own).ordered())

    def _own_options(self, words: list[str]) -> list[str]:
        """Return the options of the command that the words begin with, or of the command of its group."""
        command: Any = self
        while words and hasattr(command, "commands"):
            command, words = command.get_command(None, words[0]), words[1:]
        return [option for parameter in getattr(command, "params", ()) for option in parameter.opts]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in groups, with one line each."""
        hidden = {name for name, command in self.commands.items() if command.hidden}
        shown, groups = set(self.list_commands(ctx)) - hidden, grouped_commands()
        grouped = {name for commands in groups.values() for name in commands}
        width = max(map(len, shown))
        other = {name: self.commands[name].get_short_help_str(60) for name in sorted(shown - grouped)}
        groups["Other"] = groups.get("Other", {}) | other
        for title, commands in groups.items():
            rows = [(name, line) for name, line in commands.items() if name in shown]
            if rows:
                with formatter.section(title):
                    for name, line in rows:
                        formatter.write(f"  {name:<{width}}  {line}\n")


def _name_arguments(command: Any) -> None:
    """Show a command and its subcommands plainly, and their arguments by convention. Typer takes no class of them."""
    command.rich_markup_mode = None
    for parameter in command.params:
        if isinstance(parameter, TyperArgument):
            parameter.__class__ = NamedArgument
    for subcommand in getattr(command, "commands", {}).values():
        _name_arguments(subcommand)
