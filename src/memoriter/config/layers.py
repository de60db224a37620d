"""The settings of one source (a file, the environment or the arguments), as dotted keys with values and origins.

This module finds unknown keys, resolves paths relative to the place that names them, and limits what a workspace's
file may set. `settings` checks the values.
"""

from __future__ import annotations

import os
import re
import stat
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import NoneType
from typing import NamedTuple

from pydantic import SecretStr

from memoriter.config.fields import did_you_mean, nearest
from memoriter.config.search import CollectionSettings
from memoriter.config.settings import keys
from memoriter.errors import ConfigError, UntrustedConfig, reason_of
from memoriter.extension import extensions, resolve
from memoriter.files.platform import READ, open_plain

Convert = Callable[[object], Mapping[str, object]]


@cache
def other_names() -> Mapping[str, str | Convert]:
    """Return the names of settings in other programs: one of our settings each, or a function that returns several."""
    known = {name: code for extension in extensions() for name, code in extension.other_names.items()}
    return {name: resolve(code) if ":" in code else code for name, code in known.items()}


PREFIX = "MEMORITER_"
CONFIG_VARIABLE = "MEMORITER_CONFIG"
#: Prefixes of variables that are not settings.
NOT_SETTINGS = (
    *(CONFIG_VARIABLE, "MEMORITER_INSIDE_", "MEMORITER_RESIDENT_WAIT_S", "MEMORITER_TEST_", "MEMORITER_SOAK"),
)
WORKSPACE_FILE = ".memoriter.yaml"
#: Bytes. A settings file is a page or two.
MAX_FILE_BYTES = 256 * 1024

#: Variables that other tools use too, with their keys. Of two variables for one key, the later wins.
SHARED_VARIABLES = {"STORAGE_DIR": "home", "MEMORY_DIR": "workspace"}


def shared_variables() -> dict[str, str]:
    """Return the variables that other tools use too, those of extensions included, with their settings."""
    return SHARED_VARIABLES | {
        name: key for extension in extensions() for name, key in extension.variables.items()
    }


#: A workspace may come from a cloned repository. Its file may tune the search, but not name programs, hosts or keys.
WORKSPACE_MAY_SET = ("chunking.", "search.", "memory.citations", "files.patterns", "files.extra_paths")

#: Maximum number of dots in a key.
MAX_DEPTH = 4


class Value(NamedTuple):
    """A value and its origin."""

    value: object
    origin: str


Layer = dict[str, Value]


def read(path: Path, *, follow_links: bool) -> str | None:
    """Return the text of a settings file, or None if it does not exist.

    The file of a workspace may come from a stranger. It must not be a link to another file, and a pipe in its place
    must not block.
    """
    try:
        with os.fdopen(os.open(path, READ) if follow_links else open_plain(path), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"The settings file {printable(path)} is not a regular file.")
            data = file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = reason_of(error)
        raise ConfigError(f"The settings file {printable(path)} cannot be read: {reason}.") from error
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"The settings file {printable(path)} is larger than {MAX_FILE_BYTES // 1024} KiB.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"The settings file {printable(path)} is not UTF-8 (byte {error.start})."
        ) from error


def _parse(text: str, place: str) -> object:
    # Most users have no settings file, so the YAML parser is imported only when there is one.
    from memoriter.config.yaml_file import parse

    return parse(text, place)


def printable(path: Path | str) -> str:
    """Return the path on one line, even if its name contains control characters."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def from_file(path: Path, text: str, errors: list[ConfigError]) -> Layer:
    """Return what the owner's file sets."""
    origin = printable(path)
    layer = Layer()
    try:
        entries = list(_entries(_parse(text, origin), origin, errors))
    except ConfigError as error:
        errors.append(error)
        return layer
    for key, value in entries:
        _put(layer, key, value, origin=origin, base=path.parent, errors=errors)
    return layer


def from_workspace(workspace: Path, errors: list[ConfigError]) -> Layer:
    """Return what the workspace's file sets. Add an error for each setting that it may not set."""
    path = workspace / WORKSPACE_FILE
    try:
        text = read(path, follow_links=False)
    except ConfigError as error:
        errors.append(error)
        return {}
    layer = from_file(path, text, errors) if text is not None else {}
    errors.extend(_forbidden(layer, workspace))
    return layer


def from_environment(environ: Mapping[str, str], cwd: Path, errors: list[ConfigError]) -> Layer:
    """Return what `MEMORITER_…` variables set, and the variables shared with other tools."""
    names = variables()
    layer = Layer()
    own = (name for name in environ if name.startswith(PREFIX) and not name.startswith(NOT_SETTINGS))
    for name in (*shared_variables(), *sorted(own)):
        if name not in names:
            near = nearest(name.removeprefix(PREFIX).lower().replace("__", "."), keys())
            errors.append(
                ConfigError(f"Unknown variable {printable(name)}{did_you_mean(near and variable(near))}")
            )
        elif text := environ.get(name):
            try:
                values = [
                    (key, _variable_value(key, value, name) if isinstance(value, str) else value)
                    for key, value in translate(names[name], text)
                ]
            except ConfigError as error:
                errors.append(error)
            else:
                for key, value in values:
                    _put(layer, key, value, origin=name, base=cwd, errors=errors)
    if "workspace" in layer and layer["workspace"].origin == "MEMORY_DIR":
        _put_memory_dir(layer, layer["workspace"].value)
    return layer


def _put_memory_dir(layer: Layer, folder: object) -> None:
    """Set the workspace so that notes are read from, and written to, the folder that `MEMORY_DIR` names.

    A folder `memory` is part of a workspace. A folder with another name is a workspace and its folder of notes.
    """
    if isinstance(folder, Path) and folder.name == "memory":
        layer["workspace"] = Value(folder.parent, "MEMORY_DIR")
    else:
        layer.setdefault("files.folder", Value(".", "MEMORY_DIR"))


#: Settings that the command line takes as global options. Other arguments are overrides of single settings.
_OPTIONS = {"workspace": "--workspace", "home": "--home", "agent": "--agent", "store.url": "--store"}


def from_arguments(arguments: Mapping[str, object], cwd: Path, errors: list[ConfigError]) -> Layer:
    """Return what the caller sets. None means not set."""
    layer = Layer()
    for name, value in arguments.items():
        known = canonical(name)
        origin = _OPTIONS.get(known, "overrides")
        for key, item in translate(known, value):
            if key not in keys():
                hint = did_you_mean(nearest(key, keys()))
                errors.append(ConfigError(f"Unknown setting {key!r} in {origin}{hint}"))
            elif item is not None:
                _put(layer, key, item, origin=origin, base=cwd, errors=errors)
    return layer


def canonical(key: str) -> str:
    """Return the key in snake case, and under our name if another program has another."""
    if key in keys():
        return key
    key = re.sub(r"(?<=[a-z0-9])[A-Z]", lambda letter: f"_{letter[0].lower()}", key)
    for other, name in other_names().items():
        if isinstance(name, str) and (key == other or key.startswith(f"{other}.")):
            return name + key[len(other) :]
    return key


def translate(key: str, value: object) -> list[tuple[str, object]]:
    """Return the settings that a key in snake case sets. Another program's setting may stand for several of ours."""
    convert = other_names().get(key)
    if convert is None or isinstance(convert, str) or value is None:
        return [(key, value)]
    return list(convert(value).items())


def variables() -> dict[str, str]:
    """Return every environment variable that sets something, with its key."""
    others = {
        variable(other): name if isinstance(name, str) else other for other, name in other_names().items()
    }
    known = {name: key for name, key in others.items() if key in keys() or key in other_names()}
    return {**shared_variables(), **known, **{variable(key): key for key in keys()}}


def variable(key: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + key.upper().replace(".", "__")


def allows_none(key: str) -> bool:
    """Return whether null is a value of this setting rather than "not set"."""
    return NoneType in typing.get_args(keys()[key].annotation)


def is_secret(key: str) -> bool:
    """Return whether the value must never be shown."""
    return _holds(key, SecretStr)


def _entries(data: object, origin: str, errors: list[ConfigError]) -> Iterator[tuple[str, object]]:
    """Yield the known settings of a file. Add an error for each unknown one."""
    if data is None:
        return
    if not isinstance(data, dict):
        raise ConfigError(f"{origin} must contain keys with values, such as 'agent: main'.")
    yield from _below("", data, origin, errors)


def _below(
    prefix: str, data: Mapping[object, object], origin: str, errors: list[ConfigError]
) -> Iterator[tuple[str, object]]:
    for name, value in data.items():
        key = canonical(f"{prefix}{name}")
        if key in keys():
            yield key, value
        elif key in other_names():
            yield from translate(key, value)
        elif isinstance(value, dict) and key.count(".") < MAX_DEPTH:
            yield from _below(f"{key}.", value, origin, errors)
        elif example := next((known for known in keys() if known.startswith(f"{key}.")), None):
            if value is not None:
                errors.append(
                    ConfigError(f"{key} in {origin} must be a section with keys such as {example!r}.")
                )
        else:
            errors.append(
                ConfigError(f"Unknown setting {key[:200]!r} in {origin}{did_you_mean(nearest(key, keys()))}")
            )


def _put(
    layer: Layer, key: str, value: object, *, origin: str, base: Path, errors: list[ConfigError]
) -> None:
    if value is None and not allows_none(key):
        return
    if _holds(key, tuple) and isinstance(value, str | Path):
        value = [value]  # allow `extra_paths: ~/journal`
    try:
        layer[key] = Value(_resolve(value, base) if _holds_paths(key) else value, origin)
    except (OSError, RuntimeError, ValueError) as error:
        errors.append(
            ConfigError(
                f"The setting {key} from {origin} is not a usable path: {' '.join(reason_of(error).split())[:200]}."
            )
        )


def _variable_value(key: str, text: str, name: str) -> object:
    """Return the value of a variable. Lists are YAML, or joined as in PATH."""
    if allows_none(key) and text.lower() in ("null", "none", "~"):
        return None
    if _holds(key, Mapping):
        return _parse(text, name)
    if not _holds(key, tuple):
        return text
    if text.lstrip().startswith("["):
        return _parse(text, name)
    return [item for item in text.split(os.pathsep) if item]


def _kinds(key: str) -> tuple[object, ...]:
    annotation = keys()[key].annotation
    return (annotation, typing.get_origin(annotation), *typing.get_args(annotation))


def _holds(key: str, kind: type) -> bool:
    return kind in _kinds(key)


def _holds_paths(key: str) -> bool:
    return any(isinstance(kind, type) and issubclass(kind, Path | CollectionSettings) for kind in _kinds(key))


def _resolve(value: object, base: Path) -> object:
    match value:
        case str() | Path():
            if not str(value):
                raise ValueError("the path is empty")
            return (base / Path(value).expanduser()).resolve()
        case list() | tuple():
            return tuple(_resolve(item, base) for item in value)
        case dict() if "path" in value:  # a path with its name and pattern
            return {**value, "path": _resolve(value["path"], base)}
        case dict():
            return {str(name): _resolve(item, base) for name, item in value.items()}
        case None:
            return None
        case _:
            raise ValueError(f"{str(value)[:80]!r} is not a text")


def _forbidden(layer: Layer, workspace: Path) -> Iterator[UntrustedConfig]:
    """Yield an error for each setting that a workspace's file may not set."""
    for key, setting in layer.items():
        if not key.startswith(WORKSPACE_MAY_SET):
            yield UntrustedConfig(
                f"{key} in {setting.origin}: a workspace's file may not set this. Set it in your own config.yaml."
            )
    extra = layer["files.extra_paths"].value if "files.extra_paths" in layer else ()
    for path in extra if isinstance(extra, tuple) else ():
        if isinstance(path, Path) and not path.is_relative_to(workspace):
            file = printable(workspace / WORKSPACE_FILE)
            yield UntrustedConfig(
                f"files.extra_paths in {file}: {printable(path)} is outside the workspace. "
                "Set it in your own config.yaml."
            )
