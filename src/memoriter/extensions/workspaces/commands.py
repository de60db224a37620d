"""The command `workspace`, which gives folders of notes names for `--workspace NAME`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli import render
from memoriter.cli.context import GlobalOptions, Json
from memoriter.extensions.settings.commands import change_names

if TYPE_CHECKING:
    from memoriter.config import Settings

Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, '-' and '_'.")]

app = typer.Typer(
    help="Give folders of notes names. `--workspace NAME` then selects one, in every command.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List the named workspaces. `*` marks the default, which commands outside of any workspace use."""
    settings = context.obj.settings()
    default = _default(context.obj)
    found = [
        {"name": name, "path": str(folder), "default": folder.resolve() == default, "exists": folder.is_dir()}
        for name, folder in settings.workspaces.items()
    ]
    rows = [
        (
            "*" if row["default"] else "",
            str(row["name"]),
            render.shorten_home(Path(str(row["path"]))) + ("" if row["exists"] else " (does not exist)"),
        )
        for row in found
    ]
    if default and not any(row["default"] for row in found) and default.is_dir():
        rows.append(
            ("*", "", f"{render.shorten_home(default)} (no name: `memoriter workspace add NAME FOLDER`)")
        )
    none = "No workspace has a name. Give one with `memoriter workspace add NAME FOLDER`."
    render.show(
        as_json, {"workspaces": found}, lambda: render.print_table(rows) if rows else typer.echo(none)
    )


@app.command("add", epilog="Example: memoriter workspace add work ~/work-notes")
def add(
    context: typer.Context,
    name: Name,
    path: Annotated[
        Path | None, typer.Argument(help="Folder of notes (default: the current folder).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Give a folder of notes a name. An existing name gets the new folder."""
    from memoriter.config.search import CollectionSettings, check_collections

    folder = (path or Path.cwd()).expanduser().absolute()
    if not folder.is_dir():
        raise typer.BadParameter(f"'{path}' is not a folder.", param_hint="PATH")
    try:
        check_collections({name: CollectionSettings(path=folder)})  # the same rules for names
    except ValueError as error:
        raise typer.BadParameter(f"{error}.") from error
    change_names(context.obj, "workspaces", lambda known: {**known, name: str(folder)})
    is_new = not (folder / ".memoriter.yaml").exists()
    hint = f" It is not set up yet: run `memoriter init --workspace {name}`." if is_new else ""
    render.show(
        as_json, {"name": name, "path": str(folder)}, f"{name} is {render.shorten_home(folder)}.{hint}"
    )


@app.command("use", epilog="Example: memoriter workspace use work")
def use(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Make a workspace the default: commands outside of any workspace use it."""
    from memoriter.config.loading import owner_path
    from memoriter.extensions.settings.editing import change_value

    folder, options = _find(context.obj.settings(), name), context.obj
    change_value(owner_path(options.config, options.arguments()), "workspace", lambda _: str(folder))
    text = f"The default workspace is now {name}, {render.shorten_home(folder)}."
    render.show(as_json, {"name": name, "path": str(folder)}, text)


@app.command("remove", epilog="Example: memoriter workspace remove work")
def remove(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Remove a name. The folder, its notes and its index stay as they are."""
    folder = _find(context.obj.settings(), name)
    change_names(context.obj, "workspaces", lambda known: {key: known[key] for key in known if key != name})
    text = f"{name} is no longer a name of {render.shorten_home(folder)}, which is unchanged."
    render.show(as_json, {"removed": name, "path": str(folder)}, text)


def _find(settings: Settings, name: str) -> Path:
    from memoriter.errors import NotFound
    from memoriter.extension import suggest

    known = settings.workspaces
    if name not in known:
        hint = suggest(name, list(known)) if known else "Give one with `memoriter workspace add NAME FOLDER`."
        raise NotFound(f"No workspace has the name {name!r}. {hint}")
    return known[name]


def _default(options: GlobalOptions) -> Path | None:
    """Return the workspace in the owner's settings file."""
    from memoriter.config import load

    # In the root no folder is a workspace, so only the settings count.
    return load(config=options.config, arguments=options.arguments(), cwd=Path("/")).workspace.resolve()
