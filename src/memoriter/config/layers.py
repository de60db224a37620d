"""What one place sets: a file, the environment or the arguments, as dotted keys with values and origins.

Unknown keys are found here, paths are made absolute against the place that names them, and a workspace's own
file is held to what a stranger may set. Whether a value fits its key is the duty of `settings`.
"""

from __future__ import annotations

import os
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import NamedTuple

from pydantic import SecretStr

from memoriter.config.base import did_you_mean, nearest
from memoriter.config.documents import parse, read, shown
from memoriter.config.settings import keys
from memoriter.errors import ConfigError, UntrustedConfig

PREFIX = "MEMORITER_"
CONFIG_VARIABLE = "MEMORITER_CONFIG"
NO_SETTINGS = (CONFIG_VARIABLE, "MEMORITER_INSIDE_", "MEMORITER_TEST_", "MEMORITER_SOAK")  #: beginnings
WORKSPACE_FILE = ".memoriter.yaml"

SHARED = {
    "STORAGE_DIR": "home",
    "MEMORY_DIR": "workspace",
    "OLLAMA_BASE_URL": "embedding.ollama_base_url",
    "OPENAI_BASE_URL": "embedding.openai_base_url",
    "OPENAI_API_KEY": "embedding.openai_api_key",
    "GOOGLE_API_KEY": "embedding.gemini_api_key",
    "GEMINI_API_KEY": "embedding.gemini_api_key",
    "VOYAGE_API_KEY": "embedding.voyage_api_key",
}
"""Variables that other tools know too, with their keys; of two for one key the later wins."""

WORKSPACE_MAY_SET = ("chunking.", "search.", "memory.citations", "files.patterns", "files.extra_paths")
"""A workspace may arrive with a cloned repository: its file tunes, and names no programs, hosts or keys."""

ALSO_CALLED = {
    "memory.qmd.collections": "memory.qmd.paths",
    "memory.qmd.citations": "memory.citations",
    "memory.qmd.limits.max_injected_chars": "memory.max_injected_chars",
    "memory.qmd.scope": "memory.scope",
}
"""Names that other memories have for the same settings; here they hold for every backend."""

DEEPEST = 4  #: dots in a key; sections lie no deeper

OWNERS_PLACE = "put it into your own config.yaml"


class Given(NamedTuple):
    """A value, and who gave it."""

    value: object
    origin: str


Layer = dict[str, Given]


def from_file(path: Path, text: str, mistakes: list[ConfigError]) -> Layer:
    """What the owner's file sets."""
    origin = shown(path)
    layer = Layer()
    try:
        entries = list(_entries(parse(text, origin), origin, mistakes))
    except ConfigError as error:
        mistakes.append(error)
        return layer
    for key, value in entries:
        _put(layer, key, value, origin=origin, base=path.parent, mistakes=mistakes)
    return layer


def from_workspace(workspace: Path, mistakes: list[ConfigError]) -> Layer:
    """What the workspace's own file sets, of what it may."""
    path = workspace / WORKSPACE_FILE
    try:
        text = read(path, follow_links=False)
    except ConfigError as error:
        mistakes.append(error)
        return {}
    layer = from_file(path, text, mistakes) if text is not None else {}
    mistakes.extend(_overreach(layer, workspace))
    return layer


def from_environment(environ: Mapping[str, str], cwd: Path, mistakes: list[ConfigError]) -> Layer:
    """What `MEMORITER_…` sets, and the names that other tools share with us."""
    names = variables()
    layer = Layer()
    for name in (*SHARED, *sorted(_ours(environ))):
        if name not in names:
            near = nearest(name.removeprefix(PREFIX).lower().replace("__", "."), keys())
            mistakes.append(
                ConfigError(f"unknown variable {shown(name)}{did_you_mean(near and variable(near))}")
            )
        elif text := environ.get(name):
            try:
                value = _parsed(names[name], text, name)
            except ConfigError as error:
                mistakes.append(error)
            else:
                _put(layer, names[name], value, origin=name, base=cwd, mistakes=mistakes)
    if "workspace" in layer and layer["workspace"].origin == "MEMORY_DIR":
        # Who sets MEMORY_DIR keeps the notes right in that folder, not in a folder `memory` below it.
        layer.setdefault("files.extra_paths", Given((layer["workspace"].value,), "MEMORY_DIR"))
    return layer


def from_arguments(arguments: Mapping[str, object], cwd: Path, mistakes: list[ConfigError]) -> Layer:
    """What the caller sets; None means not given."""
    layer = Layer()
    for name, value in arguments.items():
        key = canonical(name)
        origin = "--" + key.rpartition(".")[2].replace("_", "-")
        if key not in keys():
            mistakes.append(
                ConfigError(f"unknown setting {key!r} in the arguments{did_you_mean(nearest(key, keys()))}")
            )
        elif value is not None:
            _put(layer, key, value, origin=origin, base=cwd, mistakes=mistakes)
    return layer


def canonical(key: str) -> str:
    """The key as we write it: small letters with underscores, under our name for it."""
    if key in keys():
        return key
    key = re.sub(r"(?<=[a-z0-9])[A-Z]", lambda letter: f"_{letter[0].lower()}", key)
    for other, ours in ALSO_CALLED.items():
        if key == other or key.startswith(f"{other}."):
            return ours + key[len(other) :]
    return key


def variables() -> dict[str, str]:
    """Every environment variable that sets something, with its key."""
    return {**SHARED, **{variable(key): key for key in keys()}}


def variable(key: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + key.upper().replace(".", "__")


def allows_none(key: str) -> bool:
    """Whether null is a value of this setting, rather than "not given"."""
    return NoneType in typing.get_args(keys()[key].annotation)


def is_secret(key: str) -> bool:
    """Whether the value must never be shown."""
    return _holds(key, SecretStr)


def _ours(environ: Mapping[str, str]) -> Iterator[str]:
    return (name for name in environ if name.startswith(PREFIX) and not name.startswith(NO_SETTINGS))


def _entries(data: object, origin: str, mistakes: list[ConfigError]) -> Iterator[tuple[str, object]]:
    """The known settings of a file; the unknown ones become mistakes."""
    if data is None:
        return
    if not isinstance(data, dict):
        raise ConfigError(f"{origin}: must be keys with values, such as 'agent: main'")
    yield from _below("", data, origin, mistakes)


def _below(
    prefix: str, data: Mapping[object, object], origin: str, mistakes: list[ConfigError]
) -> Iterator[tuple[str, object]]:
    for name, value in data.items():
        key = canonical(f"{prefix}{name}")
        if key in keys():
            yield key, value
        elif isinstance(value, dict) and key.count(".") < DEEPEST:
            yield from _below(f"{key}.", value, origin, mistakes)
        elif example := next((known for known in keys() if known.startswith(f"{key}.")), None):
            if value is not None:
                mistakes.append(
                    ConfigError(f"{key} in {origin}: must be a section with keys such as {example!r}")
                )
        else:
            mistakes.append(
                ConfigError(f"unknown setting {key[:200]!r} in {origin}{did_you_mean(nearest(key, keys()))}")
            )


def _put(
    layer: Layer, key: str, value: object, *, origin: str, base: Path, mistakes: list[ConfigError]
) -> None:
    if value is None and not allows_none(key):
        return
    if _holds(key, tuple) and isinstance(value, str | Path):
        value = [value]  # `extra_paths: ~/journal` means what it says
    try:
        layer[key] = Given(_anchored(value, base) if _holds(key, Path) else value, origin)
    except (OSError, RuntimeError, ValueError) as error:
        mistakes.append(
            ConfigError(f"{key} from {origin}: not a usable path: {' '.join(str(error).split())[:200]}")
        )


def _parsed(key: str, text: str, name: str) -> object:
    """A variable's text as its setting wants it: lists as YAML or joined as in PATH, else as it stands."""
    if allows_none(key) and text.lower() in ("null", "none", "~"):
        return None
    if _holds(key, Mapping):
        return parse(text, name)
    if not _holds(key, tuple):
        return text
    if text.lstrip().startswith("["):
        return parse(text, name)
    return [item for item in text.split(os.pathsep) if item]


def _holds(key: str, kind: type) -> bool:
    annotation = keys()[key].annotation
    return kind in (annotation, typing.get_origin(annotation), *typing.get_args(annotation))


def _anchored(value: object, base: Path) -> object:
    match value:
        case str() | Path():
            if not str(value):
                raise ValueError("it is empty")
            return (base / Path(value).expanduser()).resolve()
        case list() | tuple():
            return tuple(_anchored(item, base) for item in value)
        case dict():
            return {str(name): _anchored(item, base) for name, item in value.items()}
        case None:
            return None
        case _:
            raise ValueError(f"{str(value)[:80]!r} is no text")


def _overreach(layer: Layer, workspace: Path) -> Iterator[UntrustedConfig]:
    """What a workspace's file sets and may not."""
    for key, given in layer.items():
        if not key.startswith(WORKSPACE_MAY_SET):
            yield UntrustedConfig(
                f"{key} in {given.origin}: a workspace's own file may not set it; {OWNERS_PLACE}"
            )
    for path in _paths(layer.get("files.extra_paths")):
        if not path.is_relative_to(workspace):
            file = shown(workspace / WORKSPACE_FILE)
            yield UntrustedConfig(
                f"files.extra_paths in {file}: {shown(path)} is outside the workspace; {OWNERS_PLACE}"
            )


def _paths(given: Given | None) -> list[Path]:
    if given is None or not isinstance(given.value, tuple):
        return []
    return [path for path in given.value if isinstance(path, Path)]
