"""Commands that serve the memory: `serve`, `open`, `token` for the gateway, and `mcp` for MCP clients.

Imports of the package stay inside the functions, so that ``--help`` loads only typer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memoriter.cli.context import GlobalOptions, Json
from memoriter.server.mcp.client_config import Client

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.server.http.serve import GatewayServer

MCP_EXAMPLES = (
    "Examples: memoriter --workspace ~/notes mcp --print-config claude-desktop · memoriter mcp --access read · "
    "claude mcp add --scope user memoriter -- memoriter --workspace ~/notes mcp"
)

token_app = typer.Typer(help="Manage the tokens that programs use to call the gateway.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command(
        epilog="Examples: memoriter serve · memoriter serve --port 0 --json · memoriter serve --stdio"
    )(serve)
    app.command("open", epilog="Example: memoriter open")(open_)
    app.add_typer(token_app, name="token")
    app.command(epilog=MCP_EXAMPLES)(mcp)


# ---- gateway --------------------------------------------------------------------------------------------------


def serve(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on (default: 127.0.0.1).", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port to listen on (default: 8377). 0 picks a free port.", show_default=False),
    ] = None,
    stdio: Annotated[
        bool,
        typer.Option(
            "--stdio", help="Serve one agent over standard I/O instead, with one JSON object per line."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Serve the memory over HTTP, and its web page. Stop with Ctrl-C."""
    if stdio:
        from memoriter.agent import ReloadingAgent
        from memoriter.server.lines import serve as serve_lines

        serve_lines(ReloadingAgent(context.obj.settings, slot="memory-full"))
        return
    from memoriter.server.http import access_log
    from memoriter.server.http.agents import SettingsLoader
    from memoriter.server.http.serve import GatewayServer

    overrides = {"gateway.host": host, "gateway.port": port}
    settings = context.obj.settings(**overrides)
    level_is_set = settings.origin("logging.level") != "default"
    access_log.setup(settings.logging.level if level_is_set else "info")
    _warn_if_public(settings)
    server = GatewayServer(SettingsLoader(settings, context.obj.config, context.obj.arguments(**overrides)))
    details = _connection_details(server)
    server.run(on_ready=lambda: _print_details(details, as_json))


def _warn_if_public(settings: Settings) -> None:
    from memoriter.server.http.auth import is_loopback

    host = settings.gateway.host
    if not is_loopback(host):
        sys.stderr.write(
            f"memoriter: Warning: {host} is reachable from the network without encryption, so others can read "
            "tokens and memories in transit. Put a TLS proxy in front of it, or listen on 127.0.0.1.\n"
        )


def _connection_details(server: GatewayServer) -> dict[str, object]:
    gateway, address = server.gateway, server.address
    secret = gateway.tokens.create_first()
    return {
        "address": address,
        "link": f"{address}/open?ticket={gateway.browsers.tickets.issue()}",
        "tokens": str(gateway.tokens.file),
        **({"token": secret} if secret else {}),
    }


def _print_details(details: dict[str, object], as_json: bool) -> None:
    if as_json:
        lines = [json.dumps(details)]
    else:
        lines = [f"Serving at {details['address']}", f"Web page (single-use link): {details['link']}"]
        if "token" in details:
            lines.append(f"Token for programs (shown only once): {details['token']}")
        else:
            lines.append("Programs need a token: run `memoriter token create`.")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def open_(context: typer.Context, as_json: Json = False) -> None:
    """Print a new single-use link to the web page. The gateway must be running."""
    from memoriter.memory import gateway_files
    from memoriter.server.http.auth import Tickets
    from memoriter.server.http.serve import find_running

    settings = context.obj.settings()
    address = find_running(settings.home)
    with gateway_files(settings) as folder:
        link = f"{address}/open?ticket={Tickets(folder).issue()}"
    sys.stdout.write((json.dumps({"address": address, "link": link}) if as_json else link) + "\n")


# ---- tokens ---------------------------------------------------------------------------------------------------


@token_app.command(
    "create", epilog="Example: memoriter token create --access read --agent work --name laptop"
)
def create(
    context: typer.Context,
    access: Annotated[
        Literal["read", "write", "admin"], typer.Option(help="What the token permits.")
    ] = "write",
    agents: Annotated[
        list[str] | None,
        typer.Option("--agent", help="Limit the token to this agent. Can be repeated.", show_default=False),
    ] = None,
    name: Annotated[str, typer.Option(help="Description of the token.", show_default=False)] = "",
    as_json: Json = False,
) -> None:
    """Create a token. It is shown once; only its digest is stored."""
    from memoriter.memory import gateway_files
    from memoriter.server.http.auth import Tokens

    settings = context.obj.settings()
    with gateway_files(settings) as folder:
        token, secret = Tokens(folder).create(access, agents=agents or (), name=name)
    for unknown in set(token.agents) - {settings.agent, *settings.gateway.agents}:
        sys.stderr.write(
            f"memoriter: Warning: the settings have no agent {unknown!r} yet (`gateway.agents`).\n"
        )
    if as_json:
        sys.stdout.write(
            json.dumps(
                {"id": token.id, "token": secret, "access": token.access, "agents": list(token.agents)}
            )
            + "\n"
        )
    else:
        sys.stdout.write(f"{secret}\n")
        sys.stderr.write(f"Created token {token.id} ({token.access}). It is not shown again.\n")


@token_app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List the tokens, without their secrets."""
    from memoriter.cli import render
    from memoriter.memory import gateway_files
    from memoriter.server.http.auth import Tokens

    with gateway_files(context.obj.settings()) as folder:
        tokens = Tokens(folder).list()
    if as_json:
        render.to_json(
            [
                {
                    "id": token.id,
                    "access": token.access,
                    "agents": list(token.agents),
                    "name": token.name,
                    "createdAt": token.created_at,
                }
                for token in tokens
            ]
        )
        return
    if not tokens:
        sys.stdout.write("There are no tokens. Create one with `memoriter token create`.\n")
    for token in tokens:
        agents = ", ".join(token.agents) or "all agents"
        sys.stdout.write(
            render.plain(f"{token.id}  {token.access:5}  {agents}  {token.name}").rstrip() + "\n"
        )


@token_app.command("revoke", epilog="Example: memoriter token revoke 3f2a9c01")
def revoke(
    context: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="Id from `memoriter token list`.")],
    as_json: Json = False,
) -> None:
    """Revoke a token. Takes effect on the next request."""
    from memoriter.memory import gateway_files
    from memoriter.server.http.auth import Tokens

    with gateway_files(context.obj.settings()) as folder:
        token = Tokens(folder).revoke(token_id)
    sys.stdout.write((json.dumps({"revoked": token.id}) if as_json else f"Revoked {token.id}.") + "\n")


# ---- MCP ------------------------------------------------------------------------------------------------------


def mcp(
    context: typer.Context,
    access: Annotated[
        Literal["read", "write", "admin"],
        typer.Option(help="What the client may do: read, also write, or everything the owner may."),
    ] = "write",
    session: Annotated[
        str | None,
        typer.Option(help="Session key to check against `memory.scope`.", show_default=False),
    ] = None,
    slot: Annotated[
        str | None,
        typer.Option(
            help="Memory plugin to use if the settings do not name one (default: memory-core).",
            show_default=False,
        ),
    ] = None,
    print_config: Annotated[
        Client | None,
        typer.Option(help="Print the configuration for this client, ready to copy.", show_default=False),
    ] = None,
) -> None:
    """Serve the memory to an MCP client over standard I/O. For MCP over HTTP, use `memoriter serve`."""
    if print_config is not None:
        from memoriter.server.mcp.client_config import client_entry, client_location, server_command

        options = {"--access": access if access != "write" else None, "--session": session, "--slot": slot}
        command = server_command(_absolute_options(context.obj), _flatten(options))
        sys.stdout.write(client_entry(print_config, command) + "\n")
        sys.stderr.write(client_location(print_config, command) + "\n")
        return
    from memoriter.agent import ReloadingAgent
    from memoriter.server.mcp.stdio import serve as serve_stdio

    serve_stdio(ReloadingAgent(context.obj.settings, slot=slot), access=access, session=session)


def _absolute_options(options: GlobalOptions) -> list[str]:
    """Return the options before the command so that they work from any folder and in any environment."""
    settings = options.settings()
    home = settings.home if settings.origin("home") != "default" else None
    config = Path(options.config).expanduser().absolute() if options.config else None
    paths = {"--workspace": settings.workspace, "--home": home, "--config": config}
    return _flatten({name: str(path) for name, path in paths.items() if path} | {"--agent": options.agent})


def _flatten(options: Mapping[str, str | None]) -> list[str]:
    return [part for name, value in options.items() if value is not None for part in (name, value)]
