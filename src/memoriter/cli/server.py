"""The commands of the gateway: `serve`, `open`, `token`. What they print is here too, for it is a few lines.

Imports of the package stay inside the functions, so that ``--help`` costs no more than typer itself.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memoriter.cli.context import Json

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.server.http.serve import GatewayServer

token_app = typer.Typer(help="The tokens by which programs call the gateway.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(epilog="Examples: memoriter serve · memoriter serve --port 0 --json")(serve)
    app.command("open", epilog="Example: memoriter open")(open_)
    app.add_typer(token_app, name="token")


def serve(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option(help="The address to listen at [127.0.0.1].", show_default=False)
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port [8377]; 0: any that is free.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Serve the memory over HTTP to programs, to agents and to your browser; Ctrl-C ends it."""
    from memoriter.server.http import access_log
    from memoriter.server.http.agents import SettingsLoader
    from memoriter.server.http.serve import GatewayServer

    chosen = {"gateway.host": host, "gateway.port": port}
    settings = context.obj.settings(**chosen)
    named = settings.origin("logging.level") != "default"
    access_log.setup(settings.logging.level if named else "info")
    _warn(settings)
    server = GatewayServer(SettingsLoader(settings, context.obj.config, context.obj.arguments(**chosen)))
    told = _told(server)
    server.run(on_ready=lambda: _say(told, as_json))


def _warn(settings: Settings) -> None:
    from memoriter.server.http.auth import is_loopback

    host = settings.gateway.host
    if not is_loopback(host):
        sys.stderr.write(
            f"memoriter: {host} can be reached from a network, without encryption: tokens and memories can be read "
            "on the way. Put a proxy with TLS in front, or listen at 127.0.0.1.\n"
        )


def _told(server: GatewayServer) -> dict[str, object]:
    gateway, address = server.gateway, server.address
    secret = gateway.tokens.create_first()
    return {
        "address": address,
        "link": f"{address}/open?ticket={gateway.browsers.tickets.issue()}",
        "tokens": str(gateway.tokens.file),
        **({"token": secret} if secret else {}),
    }


def _say(told: dict[str, object], as_json: bool) -> None:
    if as_json:
        lines = [json.dumps(told)]
    else:
        lines = [f"Serving at {told['address']}", f"Your page, once: {told['link']}"]
        if "token" in told:
            lines.append(f"A token for programs, shown only now: {told['token']}")
        else:
            lines.append("Programs need a token: `memoriter token create` makes one.")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def open_(context: typer.Context, as_json: Json = False) -> None:
    """Make a new link to the page of the running gateway."""
    from memoriter.server.http.auth import Tickets
    from memoriter.server.http.serve import find_running

    home = context.obj.settings().home
    address = find_running(home)
    link = f"{address}/open?ticket={Tickets(home).issue()}"
    sys.stdout.write((json.dumps({"address": address, "link": link}) if as_json else link) + "\n")


@token_app.command(
    "create", epilog="Example: memoriter token create --access read --agent work --name laptop"
)
def create(
    context: typer.Context,
    access: Annotated[Literal["read", "write", "admin"], typer.Option(help="What it may do.")] = "write",
    agents: Annotated[
        list[str] | None,
        typer.Option("--agent", help="Only for this agent; may be repeated.", show_default=False),
    ] = None,
    name: Annotated[str, typer.Option(help="What it is for.", show_default=False)] = "",
    as_json: Json = False,
) -> None:
    """Make a token; it is shown once and kept as a digest."""
    from memoriter.server.http.auth import Tokens

    settings = context.obj.settings()
    made, secret = Tokens(settings.home).create(access, agents=agents or (), name=name)
    for unknown in set(made.agents) - {settings.agent, *settings.gateway.agents}:
        sys.stderr.write(
            f"memoriter: there is no agent {unknown!r} in the settings (`gateway.agents`) yet.\n"
        )
    if as_json:
        sys.stdout.write(
            json.dumps({"id": made.id, "token": secret, "access": made.access, "agents": list(made.agents)})
            + "\n"
        )
    else:
        sys.stdout.write(f"{secret}\n")
        sys.stderr.write(f"Token {made.id} ({made.access}); it is not shown again.\n")


@token_app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """Show which tokens there are, not the tokens themselves."""
    from memoriter.cli import render
    from memoriter.server.http.auth import Tokens

    rows = [
        {
            "id": token.id,
            "access": token.access,
            "agents": list(token.agents),
            "name": token.name,
            "createdAt": token.created_at,
        }
        for token in Tokens(context.obj.settings().home).list()
    ]
    if as_json:
        render.to_json(rows)
        return
    for row in rows:
        whom = ", ".join(row["agents"]) or "every agent"  # type: ignore[arg-type]
        sys.stdout.write(
            render.plain(f"{row['id']}  {row['access']:5}  {whom}  {row['name']}").rstrip() + "\n"
        )


@token_app.command("revoke", epilog="Example: memoriter token revoke 3f2a9c01")
def revoke(
    context: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `memoriter token list` shows it.")],
    as_json: Json = False,
) -> None:
    """Let a token in no more, from the next request on."""
    from memoriter.server.http.auth import Tokens

    gone = Tokens(context.obj.settings().home).revoke(token_id)
    sys.stdout.write((json.dumps({"revoked": gone.id}) if as_json else f"Revoked {gone.id}.") + "\n")
