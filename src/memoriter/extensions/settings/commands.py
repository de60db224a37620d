"""The commands `collection`, which adds folders of notes, and `config`, which changes settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from memoriter.cli import render
from memoriter.cli.context import GlobalOptions, Json, read_input
from memoriter.extensions.workspaces.setup import announce_rest, index_first

if TYPE_CHECKING:
    from memoriter.config import Setting
    from memoriter.records import Collection, Trust

Key = Annotated[str, typer.Argument(metavar="KEY", help="Name of a setting, such as search.max_results.")]

collection_app = typer.Typer(
    help="Add, list or remove named folders of notes.", no_args_is_help=True, add_completion=False
)
config_app = typer.Typer(help="Show or change the settings.", no_args_is_help=True, add_completion=False)


# ---- collections ----------------------------------------------------------------------------------------------


@collection_app.command("add", epilog='Example: memoriter collection add docs ~/docs --pattern "**/*.md"')
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, '-' and '_'.")],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder of notes.")],
    pattern: Annotated[
        str | None, typer.Option(help="Which files to index (default: files.patterns, **/*.md).")
    ] = None,
    trust: Annotated[
        Literal["owner", "agent", "untrusted"],
        typer.Option(help="Who wrote the notes: you, an agent, or others, whose words enter no prompt."),
    ] = "owner",
    as_json: Json = False,
) -> None:
    """Add a folder of notes under a name, and index it. An existing name gets the new folder."""
    from memoriter.config.search import CollectionSettings, check_collections

    folder = path.expanduser().absolute()
    if not folder.is_dir():
        raise typer.BadParameter(f"'{path}' is not a folder.", param_hint="PATH")
    collections = dict(context.obj.settings().collections)
    collections.pop(name, None)  # the new one is last, so that an error is about it
    try:
        check_collections({**collections, name: CollectionSettings(path=folder.resolve())})
    except ValueError as error:
        raise typer.BadParameter(f"{error}.") from error
    value = collection_value(folder, pattern, trust)
    change_names(context.obj, "collections", lambda known: {**known, name: value})
    with context.obj.memory() as memory:
        indexed = index_first(memory, wait=False, as_json=as_json)
        added = next(collection for collection in memory.notes.collections() if collection.name == name)
    follows = announce_rest(context.obj, context.obj.settings(), indexed)
    _show_collections([added], as_json)
    if follows and not as_json:
        typer.echo(follows)


@collection_app.command("list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """List the collections with their folders and numbers of notes."""
    with context.obj.memory() as memory:
        _show_collections(memory.notes.collections(), as_json)


@collection_app.command("remove", epilog="Example: memoriter collection remove docs")
def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a collection.")],
    as_json: Json = False,
) -> None:
    """Remove a collection from the index. The folder and its notes stay as they are."""
    from memoriter.errors import ConfigError, NotFound
    from memoriter.sentences import sentence

    settings = context.obj.settings()
    folder = settings.collections.get(name)
    if folder is None:
        known = ", ".join(settings.collections)
        code = "collection.unknown" if known else "collection.none"
        raise NotFound(sentence(code, name=name, known=known))
    change_names(context.obj, "collections", lambda known: {key: known[key] for key in known if key != name})
    settings = context.obj.settings()
    if name in settings.collections:
        raise ConfigError(f"{name} stays a collection, because {settings.origin('collections')} sets it.")
    with context.obj.memory() as memory:
        memory.sync()
    text = f"Removed the collection {name}. {folder.path} is unchanged."
    render.show(as_json, {"removed": name, "path": folder.path}, text)


def _show_collections(found: Sequence[Collection], as_json: bool) -> None:
    rows = [
        (
            collection.name,
            render.shorten_home(Path(collection.path)),
            collection.pattern or "",
            collection.trust,
            "folder does not exist" if collection.notes is None else str(collection.notes),
        )
        for collection in found
    ]
    none = "There are no collections. Add one with `memoriter collection add NAME PATH`."
    render.show(
        as_json,
        {"collections": found},
        lambda: (
            render.print_table(rows, "name", "folder", "pattern", "trust", "notes")
            if rows
            else typer.echo(none)
        ),
    )


def collection_value(path: Path, pattern: str | None, trust: Trust) -> object:
    """Return a collection as the settings file has it."""
    more = {"pattern": pattern, "trust": None if trust == "owner" else trust}
    named = {name: value for name, value in more.items() if value}
    return {"path": str(path), **named} if named else str(path)


def change_names(
    options: GlobalOptions, key: str, change: Callable[[dict[str, object]], dict[str, object]]
) -> None:
    """Change a setting with names, such as `collections`, in the owner's settings file."""
    from memoriter.config.loading import owner_path
    from memoriter.extensions.settings.editing import change_value

    path = owner_path(options.config, options.arguments())
    change_value(path, key, lambda known: change(known if isinstance(known, dict) else {}))


# ---- settings -------------------------------------------------------------------------------------------------


@config_app.command("show")
def show_settings(context: typer.Context, as_json: Json = False) -> None:
    """Print every setting with its value and its origin."""
    rows = context.obj.settings().describe()
    shown = {"settings": [_to_json(row) for row in rows]}
    render.show(as_json, shown, lambda: render.settings(rows))


@config_app.command("get", epilog="Example: memoriter config get search.max_results")
def get_setting(context: typer.Context, key: Key, as_json: Json = False) -> None:
    """Print the effective value of one setting."""
    from memoriter.extensions.settings.editing import complete_key

    setting = _setting(context, complete_key(key))
    render.show(as_json, _to_json(setting), render.setting_value(setting.value))


@config_app.command(
    "set",
    context_settings={"ignore_unknown_options": True},  # a negative number is a value
    epilog="Examples: memoriter config set search.max_results 10 · memoriter config set llm.api_key - < key.txt",
)
def set_setting(
    context: typer.Context,
    key: Key,
    value: Annotated[
        str, typer.Argument(help="The new value, as in YAML, or '-' to read it from standard input.")
    ],
    as_json: Json = False,
) -> None:
    """Set one setting in your settings file. Comments in the file are kept."""
    from memoriter.config.loading import owner_path
    from memoriter.extensions.settings.editing import complete_key, save_value

    name = complete_key(key)
    path = owner_path(context.obj.config, context.obj.arguments())
    written = save_value(path, name, read_input().strip() if value == "-" else value)
    effective = _setting(context, name)
    is_effective = effective.origin == str(path)
    if as_json:
        _print_change(effective, path, value=written)
        return
    out, used = render.console(), render.setting_value(effective.value)
    out.print(f"{name} = {used if is_effective else render.setting_value(written)}, written to {path}.")
    if not is_effective:
        note = f"Note: {effective.origin} takes precedence, so the effective value is {used}."
        out.print(note, style="yellow")


@config_app.command("unset", epilog="Example: memoriter config unset search.max_results")
def unset_setting(context: typer.Context, key: Key, as_json: Json = False) -> None:
    """Remove one setting from your settings file. Its default applies again."""
    from memoriter.config.loading import owner_path
    from memoriter.extensions.settings.editing import complete_key, unset_value

    name = complete_key(key)
    path = owner_path(context.obj.config, context.obj.arguments())
    is_removed = unset_value(path, name)
    effective = _setting(context, name)
    if as_json:
        _print_change(effective, path, removed=is_removed)
        return
    action = f"Removed {name} from {path}." if is_removed else f"{path} does not set {name}."
    origin = f"from {effective.origin}" if effective.origin != "default" else "the default"
    render.console().print(f"{action} Its value is {render.setting_value(effective.value)}, {origin}.")


def _setting(context: typer.Context, key: str) -> Setting:
    options: GlobalOptions = context.obj
    return next(setting for setting in options.settings().describe() if setting.key == key)


def _to_json(setting: Setting) -> dict[str, object]:
    return {"key": setting.key, "value": setting.value, "origin": setting.origin}


def _print_change(effective: Setting, path: Path, **change: object) -> None:
    result = {"key": effective.key, "path": path, **change, "effective": effective.value}
    render.to_json({**result, "origin": effective.origin})
