"""The operations `settings.*`: the settings that an owner may want to change.

None of them names a program, an address or a key.
"""

from __future__ import annotations

from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import Field

from memoriter.config.fields import described
from memoriter.config.layers import WORKSPACE_FILE
from memoriter.config.settings import Settings, keys
from memoriter.errors import BadArgument
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Arguments, Call, Shape, omitted_if_none, operation

#: In the order of the page.
OFFERED = (
    "entries.approval",
    "entries.capture",
    "entries.workspace_only",
    "retrieval.inject_on_query",
    "retrieval.max_memories",
    "memory.max_injected_chars",
    "search.max_results",
    "search.rerank",
    "cleanup.auto_cleanup",
    "cleanup.retention_days",
    "cleanup.ledger_days",
    "sessions.enabled",
    "watch.enabled",
    "tidy.nightly",
    "profile.files",
)


class SettingJson(Shape):
    """A setting."""

    key: str
    kind: Literal["choice", "switch", "number"]
    value: str | bool | float
    default: str | bool | float
    choices: list[str] = Field(description="The values of a choice.")
    least: float | None = omitted_if_none("The smallest number.")
    most: float | None = omitted_if_none("The greatest number.")
    set_by: str | None = omitted_if_none("What sets it, if that is not the owner's settings file.")


class SettingsResult(Shape):
    """The settings that the page offers."""

    settings: list[SettingJson] = Field(default=[])
    path: str = described("", "The owner's settings file.")


class SetArguments(Arguments):
    key: str = Field(max_length=100, description="The name of the setting, from `settings.list`.")
    value: str | None = described(None, "The new value, as in YAML. Without it: the default.", max_length=100)


class SetResult(Shape):
    """What the settings file says now."""

    key: str = ""
    path: str = ""


@operation("settings.list", owner_only=True)
def settings(call: Call[NoArguments]) -> SettingsResult:
    """List the settings that an owner may want to change, each with its value, its default and what sets it."""
    current = call.memory.settings
    values = {setting.key: setting for setting in current.describe()}
    path = _file(current)
    shown = [_shown(key, values[key].value, values[key].origin, path) for key in OFFERED if key in values]
    return SettingsResult(settings=shown, path=str(path))


@operation("settings.set", read_only=False, owner_only=True)
def set_(call: Call[SetArguments]) -> SetResult:
    """Change one of the settings of `settings.list` in the owner's settings file. Comments in the file are kept."""
    from memoriter.extensions.settings.editing import save_value, unset_value

    asked, current = call.arguments, call.memory.settings
    if asked.key not in OFFERED or asked.key not in keys():
        raise BadArgument(f"`settings.set` does not change {asked.key}. Use `memoriter config set`.", "key")
    path = _file(current)
    if current.origin(asked.key) not in ("default", str(path)):
        raise BadArgument(f"{current.origin(asked.key)} sets {asked.key}, so the file has no effect.", "key")
    if asked.value is None:
        unset_value(path, asked.key)
    else:
        save_value(path, asked.key, asked.value)
    return SetResult(key=asked.key, path=str(path))


def _file(current: Settings) -> Path:
    """Return the owner's settings file: the one that a value came from, or the one in the home."""
    origins = {
        Path(setting.origin) for setting in current.describe() if setting.origin.endswith((".yaml", ".yml"))
    }
    own = [path for path in origins if path.name != WORKSPACE_FILE and path.parent != current.workspace]
    return own[0] if len(own) == 1 else current.home / "config.yaml"


def _shown(key: str, value: Any, origin: str, path: Path) -> SettingJson:
    info = keys()[key]
    annotation = info.annotation
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(one for one in get_args(annotation) if one is not type(None))
    choices = [str(one) for one in get_args(annotation)] if get_origin(annotation) is Literal else []
    limits = {
        name: getattr(one, name) for one in info.metadata for name in ("ge", "le") if hasattr(one, name)
    }
    return SettingJson(
        key=key,
        kind="choice" if choices else "switch" if isinstance(value, bool) else "number",
        value=value,
        default=info.get_default(call_default_factory=True),
        choices=choices,
        least=limits.get("ge"),
        most=limits.get("le"),
        set_by=None if origin in ("default", str(path)) else origin,
    )
