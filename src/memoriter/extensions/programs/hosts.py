"""The command `hosts`, and the choice of `install` without a host: the agents on this machine."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from memoriter.cli import render
from memoriter.cli.context import Json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from memoriter.hosts import Connection, InstallRequest

hosts_command = typer.Typer(add_completion=False)


@hosts_command.command(epilog="Example: memoriter hosts")
def hosts(context: typer.Context, as_json: Json = False) -> None:
    """Show the agents on this machine: which use this memory, and when they last recalled and captured."""
    from memoriter.extensions.programs.commands import _request

    found = connected(_request(context.obj, "user", None, dry_run=True))
    if as_json:
        render.to_json({"hosts": found})
        return
    if not found:
        sys.stdout.write("No agent was found on this machine. `memoriter install HOST` connects one.\n")
        return
    rows = [
        (str(one["title"]), str(one["state"]), _shown(one["recalled"]), _shown(one["captured"]))
        for one in found
    ]
    render.print_table(rows, "host", "state", "last recall", "last capture")


def present(request: InstallRequest) -> Mapping[str, Connection]:
    """Return the hosts on this machine by name."""
    from memoriter.hosts import hosts as all_hosts

    found = {name: host.find(request) for name, host in sorted(all_hosts().items())}
    return {name: connection for name, connection in found.items() if connection is not None}


def connected(request: InstallRequest) -> list[dict[str, object]]:
    """Return the hosts on this machine, and when each last recalled and captured."""
    from memoriter.extensions.hooks.events import stamp_file

    return [
        {
            "host": name,
            **asdict(connection),
            **{act: _time_of(stamp_file(request.settings, name, act)) for act in ("recalled", "captured")},
        }
        for name, connection in present(request).items()
    ]


def choose(request: InstallRequest) -> list[str]:
    """Ask for each host on this machine that is not connected whether to connect it."""
    offered = {name: one for name, one in present(request).items() if one.state != "connected"}
    if not offered:
        sys.stdout.write(
            "No agent was found that could be connected. `memoriter hosts` shows those on this machine.\n"
        )
        return []
    if not sys.stdin.isatty():
        commands = ", ".join(f"`memoriter install {name}`" for name in offered)
        raise typer.BadParameter(f"Name one. Found on this machine: {commands}.", param_hint="HOST")
    return [
        name
        for name, one in offered.items()
        if typer.confirm(f"Connect {one.title} ({one.folder})?", default=True)
    ]


def _time_of(stamp: Path) -> float | None:
    try:
        return stamp.stat().st_mtime
    except OSError:
        return None


def _shown(moment: object) -> str:
    return datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M") if isinstance(moment, float) else "-"  # noqa: DTZ006
