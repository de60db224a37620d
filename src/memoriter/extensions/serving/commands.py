"""Commands of the gateway: `serve`, `open` and `token`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memoriter.cli import render
from memoriter.cli.context import Json

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.extensions.serving.server import GatewayServer

serve_command, open_command = (typer.Typer(add_completion=False) for _ in range(2))
token_app = typer.Typer(
    add_completion=False,
    help="Manage the tokens that programs use to call the gateway.",
    no_args_is_help=True,
)


# ---- gateway --------------------------------------------------------------------------------------------------


@serve_command.command(
    epilog="Examples: memoriter serve · memoriter serve --port 0 --json · memoriter serve --stdio"
)
def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="Address to listen on (default: 127.0.0.1).")] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on (default: 8377). 0 picks a free port.")
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
    from memoriter.extensions.serving.server import GatewayServer
    from memoriter.server.http import observe
    from memoriter.server.http.gateway import SettingsLoader

    overrides = {"gateway.host": host, "gateway.port": port}
    settings = context.obj.settings(**overrides)
    level_is_set = settings.origin("logging.level") != "default"
    observe.setup(settings.logging.level if level_is_set else "info")
    _warn_if_public(settings)
    server = GatewayServer(SettingsLoader(settings, context.obj.config, context.obj.arguments(**overrides)))
    # Created before the gateway accepts requests, and printed when it does.
    secret = server.gateway.tokens.create_first()
    link = f"{server.address}/open?ticket={server.gateway.browsers.tickets.issue()}"
    server.run(on_ready=lambda: _print_details(server, link, secret, as_json))


def _warn_if_public(settings: Settings) -> None:
    from memoriter.server.http.auth import is_loopback

    host = settings.gateway.host
    if not is_loopback(host):
        sys.stderr.write(
            f"memoriter: Warning: {host} is reachable from the network without encryption, so others can read "
            "tokens and memories in transit. Put a TLS proxy in front of it, or listen on 127.0.0.1.\n"
        )


def _print_details(server: GatewayServer, link: str, secret: str | None, as_json: bool) -> None:
    if as_json:
        shown = {"address": server.address, "link": link, "tokens": server.gateway.tokens.file}
        render.to_json(shown | ({"token": secret} if secret else {}), indent=None)
        return
    lines = [f"Serving at {server.address}", f"Web page (single-use link): {link}"]
    if secret:
        lines.append(f"Token for programs (shown only once): {secret}")
    else:
        lines.append("Programs need a token: run `memoriter token create`.")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


@open_command.command(epilog="Example: memoriter open")
def open_(context: typer.Context, as_json: Json = False) -> None:
    """Print a new single-use link to the web page. The gateway must be running."""
    from memoriter.extensions.serving.server import find_running
    from memoriter.memory import gateway_files
    from memoriter.server.http.auth import Tickets

    settings = context.obj.settings()
    address = find_running(settings.home)
    with gateway_files(settings) as folder:
        link = f"{address}/open?ticket={Tickets(folder).issue()}"
    render.show(as_json, {"address": address, "link": link}, link)


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
        list[str] | None, typer.Option("--agent", help="Limit the token to this agent. Can be repeated.")
    ] = None,
    name: Annotated[str, typer.Option(help="Description of the token.")] = "",
    as_json: Json = False,
) -> None:
    """Create a token. It is shown once; only its digest is stored."""
    from memoriter.extensions.serving.operations import open_tokens

    settings = context.obj.settings()
    with open_tokens(settings) as known:
        token, secret = known.create(access, agents=agents or (), name=name)
    for unknown in set(token.agents) - {settings.agent, *settings.gateway.agents}:
        sys.stderr.write(
            f"memoriter: Warning: the settings have no agent {unknown!r} yet (`gateway.agents`).\n"
        )
    if not as_json:
        sys.stderr.write(f"Created token {token.id} ({token.access}). It is not shown again.\n")
    shown = {"id": token.id, "token": secret, "access": token.access, "agents": token.agents}
    render.show(as_json, shown, secret)


@token_app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List the tokens, without their secrets."""
    from memoriter.extensions.serving.operations import open_tokens

    with open_tokens(context.obj.settings()) as known:
        tokens = known.list()
    lines = [
        f"{one.id}  {one.access:5}  {', '.join(one.agents) or 'all agents'}  {one.name}".rstrip()
        for one in tokens
    ]
    shown = [one.model_dump(by_alias=True, exclude={"digest"}) for one in tokens]
    none = "There are no tokens. Create one with `memoriter token create`."
    render.show(as_json, {"tokens": shown}, "\n".join(lines) or none)


@token_app.command("revoke", epilog="Example: memoriter token revoke 3f2a9c01")
def revoke(
    context: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="Id from `memoriter token list`.")],
    as_json: Json = False,
) -> None:
    """Revoke a token. Takes effect on the next request."""
    from memoriter.extensions.serving.operations import open_tokens

    with open_tokens(context.obj.settings()) as known:
        token = known.revoke(token_id)
    render.show(as_json, {"revoked": token.id}, f"Revoked {token.id}.")
