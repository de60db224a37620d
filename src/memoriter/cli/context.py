"""Options that commands share: those typed before the command, and ``--json``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.memory import Memory

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
#: A text that needs no quotes.
Words = list[str]


def join_words(words: Words, if_empty: str) -> str:
    """Return the words of a text. An empty text is wrong usage."""
    text = " ".join(words).strip()
    if not text:
        raise typer.BadParameter(if_empty)
    return text


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

        # A command ends with its answer, so embedding in the background is left to `memoriter index`.
        settings = self.settings(**{"embedding.background": False})
        self._check_folders(settings)
        with self.open(settings) if self.open else Memory.open(settings=settings) as memory:
            yield memory

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
            create = f"memoriter init {quote(str(workspace))}"
            raise NotFound(
                f"There is no folder {workspace}, the workspace that {origin} names. `{create}` creates it."
            )
