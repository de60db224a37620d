"""From the places where settings are given to one checked `Settings`.

The order, later wins: defaults, the owner's file, the workspace's own file, the environment, arguments.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from memoriter.config import layers
from memoriter.config.documents import read, shown
from memoriter.config.layers import Given, Layer
from memoriter.config.settings import Settings, keys
from memoriter.errors import ConfigError, UntrustedConfig

CURRENT_FOLDER = "the current folder"


def load(
    *,
    config: Path | None = None,
    arguments: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Read every place, check every value, and remember where each came from.

    `arguments` are keyed like "search.max_results". Raises ConfigError, one sentence, for the first mistake.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd.absolute()
    mistakes: list[ConfigError] = []
    above = layers.from_environment(environ, cwd, mistakes)
    above |= layers.from_arguments(arguments or {}, cwd, mistakes)
    try:
        owner = _owners_file(config, environ, cwd, above, mistakes)
    except ConfigError as error:
        mistakes.append(error)
        owner = {}
    placed = _with_workspace(owner | above, cwd)
    workspace = placed["workspace"].value
    local = layers.from_workspace(workspace, mistakes) if isinstance(workspace, Path) else {}
    return _checked(placed | local | above, mistakes)


def _owners_file(
    config: Path | None, environ: Mapping[str, str], cwd: Path, above: Layer, mistakes: list[ConfigError]
) -> Layer:
    named = config or environ.get(layers.CONFIG_VARIABLE)
    try:
        path = (cwd / Path(named).expanduser() if named else _home(above) / "config.yaml").resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"settings file {shown(str(named))}: not a usable path: {error}") from error
    text = read(path, follow_links=True)
    if text is None and named:
        who = "--config" if config else layers.CONFIG_VARIABLE
        raise ConfigError(f"settings file {shown(path)}, named by {who}, does not exist")
    return layers.from_file(path, text, mistakes) if text is not None else {}


def _home(layer: Layer) -> Path:
    given = layer.get("home")
    return given.value if given and isinstance(given.value, Path) else Path("~/.memoriter").expanduser()


def _with_workspace(layer: Layer, cwd: Path) -> Layer:
    """The layer with a workspace: where none was named, the folder one stands in, if it looks like one."""
    if "workspace" in layer:
        return layer
    if any((cwd / name).exists() for name in ("MEMORY.md", "memory.md", "memory")):
        return layer | {"workspace": Given(cwd.resolve(), CURRENT_FOLDER)}
    return layer | {"workspace": Given((_home(layer) / "workspace").resolve(), "default")}


def _checked(layer: Layer, mistakes: list[ConfigError]) -> Settings:
    try:
        settings = Settings.model_validate(_nested(layer))
    except ValidationError as error:
        mistakes.extend(_sentences(error, layer))
    if mistakes:
        raise _told(mistakes)
    settings._origins = {key: given.origin for key, given in layer.items()}
    return settings


def _nested(layer: Layer) -> dict[str, object]:
    tree: dict[str, object] = {}
    for key, given in layer.items():
        *sections, name = key.split(".")
        folder = tree
        for section in sections:
            folder = folder.setdefault(section, {})  # type: ignore[assignment]
        folder[name] = given.value
    return tree


def _sentences(error: ValidationError, layer: Layer) -> Iterator[ConfigError]:
    for detail in error.errors(include_url=False, include_context=False):
        key = _key_at([str(part) for part in detail["loc"]])
        reason = (
            detail["msg"]
            .removeprefix("Value error, ")
            .replace("Input should be", "must be")
            .replace("tuple", "list")
        )
        reason = reason[:1].lower() + reason[1:]
        if key in layer:
            value = "***" if layers.is_secret(key) else reprlib.repr(detail["input"])
            yield ConfigError(f"{key} = {value} from {layer[key].origin}: {reason}")
        else:
            origins = {given.origin: None for name, given in layer.items() if name.startswith(f"{key}.")}
            yield ConfigError(f"{key} from {' and '.join(origins)}: {reason}")


def _key_at(place: list[str]) -> str:
    """The setting in which a mistake lies, or the section if it is about several."""
    paths = [".".join(place[:size]) for size in range(len(place), 0, -1)]
    return next((path for path in paths if path in keys()), paths[0])


def _told(mistakes: list[ConfigError]) -> ConfigError:
    """The first mistake, with a count of the others; a workspace that reaches too far comes first."""
    first = next((mistake for mistake in mistakes if isinstance(mistake, UntrustedConfig)), mistakes[0])
    more = len(mistakes) - 1
    text = str(first) + (
        f" (and {more} more {'mistake' if more == 1 else 'mistakes'} in the settings)" if more else ""
    )
    return type(first)(text)
