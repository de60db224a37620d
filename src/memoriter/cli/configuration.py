"""The commands `config show`, `config get`, `config set` and `config unset`.

Imports of the package stay inside the functions, so that ``--help`` loads only typer.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from memoriter.cli.context import GlobalOptions, Json

if TYPE_CHECKING:
    from memoriter.config import Setting

Key = Annotated[str, typer.Argument(metavar="KEY", help="Name of a setting, such as search.max_results.")]

app = typer.Typer(help="Show or change the settings.", no_args_is_help=True)


@app.command("show")
def show(context: typer.Context, as_json: Json = False) -> None:
    """Print every setting with its value and its origin."""
    from memoriter.cli import render

    render.settings(context.obj.settings(), as_json)


@app.command("get", epilog="Example: memoriter config get search.max_results")
def get(context: typer.Context, key: Key, as_json: Json = False) -> None:
    """Print the effective value of one setting."""
    from memoriter.cli import render
    from memoriter.config.editing import complete_key

    setting = _setting(context, complete_key(key))
    if as_json:
        render.to_json({"key": setting.key, "value": setting.value, "origin": setting.origin})
    else:
        render.console().print(render.setting_value(setting.value))


@app.command(
    "set",
    context_settings={"ignore_unknown_options": True},  # a negative number is a value
    epilog="Examples: memoriter config set search.max_results 10 · memoriter config set llm.api_key - < key.txt",
)
def set_(
    context: typer.Context,
    key: Key,
    value: Annotated[
        str, typer.Argument(help="The new value, as in YAML, or '-' to read it from standard input.")
    ],
    as_json: Json = False,
) -> None:
    """Set one setting in your settings file. Comments in the file are kept."""
    from memoriter.cli import render
    from memoriter.config.editing import complete_key, save_value
    from memoriter.config.loading import owner_path

    name = complete_key(key)
    path = owner_path(context.obj.config, context.obj.arguments())
    written = save_value(path, name, sys.stdin.read().strip() if value == "-" else value)
    effective = _setting(context, name)
    is_effective = effective.origin == str(path)
    if as_json:
        render.to_json(
            {
                "key": name,
                "value": written,
                "path": str(path),
                "effective": effective.value,
                "origin": effective.origin,
            }
        )
        return
    out, used = render.console(), render.setting_value(effective.value)
    out.print(f"{name} = {used if is_effective else render.setting_value(written)}, written to {path}.")
    if not is_effective:
        note = f"Note: {effective.origin} takes precedence, so the effective value is {used}."
        out.print(note, style="yellow")


@app.command("unset", epilog="Example: memoriter config unset search.max_results")
def unset(context: typer.Context, key: Key, as_json: Json = False) -> None:
    """Remove one setting from your settings file. Its default applies again."""
    from memoriter.cli import render
    from memoriter.config.editing import complete_key, unset_value
    from memoriter.config.loading import owner_path

    name = complete_key(key)
    path = owner_path(context.obj.config, context.obj.arguments())
    is_removed = unset_value(path, name)
    effective = _setting(context, name)
    if as_json:
        render.to_json(
            {
                "key": name,
                "removed": is_removed,
                "path": str(path),
                "effective": effective.value,
                "origin": effective.origin,
            }
        )
        return
    action = f"Removed {name} from {path}." if is_removed else f"{path} does not set {name}."
    origin = "the default" if effective.origin == "default" else f"from {effective.origin}"
    render.console().print(f"{action} Its value is {render.setting_value(effective.value)}, {origin}.")


def _setting(context: typer.Context, key: str) -> Setting:
    options: GlobalOptions = context.obj
    return next(setting for setting in options.settings().describe() if setting.key == key)
