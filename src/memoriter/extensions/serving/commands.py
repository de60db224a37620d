"""Commands of the gateway (`serve`, `open`, `token`), and of programs without one (`call`, `watch`)."""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memoriter.cli import render
from memoriter.cli.context import MAX_JSON_INPUT, Json, read_input
from memoriter.files.platform import command_line

if TYPE_CHECKING:
    from memoriter.agent.service import Synced
    from memoriter.config import Settings
    from memoriter.extensions.serving.server import GatewayServer

serve_command, open_command, call_command, watch_command = (
    typer.Typer(add_completion=False) for _ in range(4)
)
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


# ---- call -----------------------------------------------------------------------------------------------------

_EXAMPLE = ("memoriter", "call", "memory_search", '{"query": "backups"}')


@call_command.command(epilog=f"Examples: {command_line(_EXAMPLE)} · memoriter call entries.list")
def call(
    context: typer.Context,
    operation: Annotated[
        str | None, typer.Argument(help="Name of the operation. Without one, list them.")
    ] = None,
    arguments: Annotated[
        str, typer.Argument(help="Arguments as a JSON object, or '-' to read them from standard input.")
    ] = "{}",
    session: Annotated[str | None, typer.Option(help="Key of the session that makes the call.")] = None,
) -> None:
    """Call a tool or operation and print its result as JSON."""
    from memoriter.tools.table import OPERATIONS
    from memoriter.tools.toolbox import Toolbox

    if operation is None:
        for tool in OPERATIONS.values():
            typer.echo(f"{tool.name:<20} {tool.access:<6} {tool.description.split('. ')[0].rstrip('.')}")
        return
    text = read_input(MAX_JSON_INPUT) if arguments == "-" else arguments
    try:
        json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"This is not JSON: {error}.", param_hint="ARGUMENTS") from error
    with ExitStack() as stack:
        # The toolbox opens the memory itself, so that a memory that cannot be opened is an ordinary error result.
        toolbox = Toolbox(
            lambda: stack.enter_context(context.obj.memory()),
            session=session,
            tools=OPERATIONS,
            interface="cli",
        )
        result = toolbox.call(operation, text)
    render.to_json(result)
    if "error" in result:
        raise typer.Exit(1)


# ---- watch ----------------------------------------------------------------------------------------------------


@watch_command.command(epilog="Example: memoriter watch")
def watch(context: typer.Context, as_json: Json = False) -> None:
    """Keep the index up to date while files change. Prints each update. Stop with Ctrl-C."""
    from memoriter.agent import Agent
    from memoriter.agent.service import MemoryService
    from memoriter.hosts import queues

    with context.obj.memory() as memory:
        service = MemoryService(
            memory,
            on_sync=lambda synced: _print_synced(synced, as_json),
            on_progress=None if as_json else render.progress_lines(),
        )
        with service:
            with Agent.open(memory.settings, service=service, slot="memory-full") as agent:
                for host in queues():
                    host.process_queue(agent)
            if not as_json:
                sys.stdout.write(f"{memory.settings.workspace}: {service.watching}\n")
                sys.stdout.flush()
            _wait_for_interrupt()


def _wait_for_interrupt() -> None:
    # A shell makes background programs ignore SIGINT, so the handler is set explicitly.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        while True:
            time.sleep(3600)  # unlike a lock, a signal interrupts it on Windows
    except KeyboardInterrupt:
        return


def _print_synced(synced: Synced, as_json: bool) -> None:
    report = synced.report
    counts = {
        name: getattr(report, name) if report else 0
        for name in ("changed", "removed", "files", "chunks", "pending")
    }
    if as_json:
        render.to_json({"reason": synced.reason, **counts, "error": synced.error}, indent=None)
    elif synced.error or counts["changed"] or counts["removed"] or synced.reason == "start":
        text = (
            synced.error
            or "{changed} changed, {removed} removed; files: {files}, chunks: {chunks}".format(**counts)
        )
        note = f". Note: {report.degraded}" if report and report.degraded else ""
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} {synced.reason}: {text}{note}\n")
        sys.stdout.flush()
