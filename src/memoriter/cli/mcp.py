"""`memoriter mcp`: the memory for every client that speaks the Model Context Protocol.

Imports of the package stay inside the functions, so that ``--help`` costs no more than typer itself.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from memoriter.cli.app import Globals

EPILOG = (
    "Examples: memoriter --workspace ~/notes mcp --print-config claude · memoriter mcp --access read · "
    "claude mcp add --scope user memoriter -- memoriter --workspace ~/notes mcp"
)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog=EPILOG)(mcp)


def mcp(
    context: typer.Context,
    access: Annotated[
        Literal["read", "write", "admin"],
        typer.Option(help="What the client may do: read; also write; or everything that the owner may."),
    ] = "write",
    session: Annotated[
        str | None,
        typer.Option(help="The session key that memory.scope is asked with.", show_default=False),
    ] = None,
    slot: Annotated[
        str | None,
        typer.Option(
            help="The memory plugin, where the settings name none [memory-core].", show_default=False
        ),
    ] = None,
    print_config: Annotated[
        Literal["claude", "cursor", "codex", "openclaw", "json"] | None,
        typer.Option(help="Print the entry for this client's settings, ready to copy.", show_default=False),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Not here: `memoriter serve` offers it at /mcp.")
    ] = False,
) -> None:
    """Serve the memory to an MCP client over standard input and output."""
    if http:
        raise typer.BadParameter(
            "streamable HTTP is part of the gateway: `memoriter serve` offers it at /mcp."
        )
    if print_config is not None:
        from memoriter.server.mcp.client_config import client_entry, client_location, server_command

        given = {"--access": access if access != "write" else None, "--session": session, "--slot": slot}
        started = server_command(_before(context.obj), _options(given))
        sys.stdout.write(client_entry(print_config, started) + "\n")
        sys.stderr.write(client_location(print_config, started) + "\n")
        return
    from memoriter.agent import ReloadingAgent
    from memoriter.server.mcp.stdio import serve

    serve(ReloadingAgent(context.obj.settings, slot=slot), access=access, session=session)


def _before(given: Globals) -> list[str]:
    """What was typed before the command, as it is right from any folder and in any environment."""
    settings = given.settings()
    home = settings.home if settings.origin("home") != "default" else None
    config = Path(given.config).expanduser().absolute() if given.config else None
    paths = {"--workspace": settings.workspace, "--home": home, "--config": config}
    return _options({name: str(path) for name, path in paths.items() if path} | {"--agent": given.agent})


def _options(given: Mapping[str, str | None]) -> list[str]:
    return [part for name, value in given.items() if value is not None for part in (name, value)]
