"""Load settings from all places into one checked `Settings`.

Later places win: defaults, the owner's file, the workspace's file, the environment, arguments.
"""

from __future__ import annotations

import contextlib
import os
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from memoriter.config import layers
from memoriter.config.layers import Layer, Value, printable, read
from memoriter.config.settings import Settings, full_settings, keys
from memoriter.config.store import DEFAULT_TENANT, working_copy
from memoriter.errors import BackupError, BadArgument, ConfigError, UntrustedConfig, reason_of
from memoriter.files.platform import is_own, quote

CURRENT_FOLDER = "the current folder"
#: The file in the home that exists while a restore moves files to their places.
RESTORE_MARKER = Path(".restoring", "moves.json")

#: The requirement for a value, by pydantic's type of error. The fields in braces come from pydantic's context.
REQUIREMENTS = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping of names to values",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of usual size",
    "int_type": "a whole number",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "literal_error": "{expected}",
    "mapping_type": "a mapping of names to values",
    "model_attributes_type": "a section with keys",
    "model_type": "a section with keys",
    "path_type": "a path",
    "string_too_long": "a text of at most {max_length} characters",
    "string_too_short": "a text of at least {min_length} characters",
    "string_type": "a text",
    "string_unicode": "a text in UTF-8",
    "too_short": "a list of at least {min_length} items",
    "tuple_type": "a list",
}


def load(
    *,
    config: Path | None = None,
    arguments: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Read all places, check every value and record its origin.

    The keys of `arguments` are dotted, such as "search.max_results". Raises ConfigError for the first error found,
    BadArgument for a workspace while a server holds the notes, and BackupError while a restore is unfinished.
    """
    environ = os.environ if environ is None else environ
    cwd = Path.cwd() if cwd is None else cwd.absolute()
    errors: list[ConfigError] = []
    explicit = layers.from_environment(environ, cwd, errors)
    explicit |= layers.from_arguments(arguments or {}, cwd, errors)
    try:
        owner = _owners_file(config, environ, cwd, explicit, errors)
    except ConfigError as error:
        errors.append(error)
        owner = {}
    _check_restored(_home(owner | explicit))
    explicit |= _named_workspace(owner, explicit, cwd)
    owner |= _server_of_tenant(owner | explicit)
    if copy := _working_copy(owner | explicit):
        settings = _check(owner | explicit | {"workspace": copy}, errors)
        _refuse_folder(explicit.get("workspace"), settings.workspace)
        return settings
    base = _with_workspace(owner, explicit, cwd)
    workspace = base["workspace"].value
    local = layers.from_workspace(workspace, errors) if isinstance(workspace, Path) else {}
    return _check(base | local | explicit, errors)


def owner_path(config: Path | None = None, arguments: Mapping[str, object] | None = None) -> Path:
    """Return the path of the owner's settings file, whether or not it exists."""
    cwd = Path.cwd()
    explicit = layers.from_environment(os.environ, cwd, []) | layers.from_arguments(arguments or {}, cwd, [])
    _check_restored(_home(explicit))
    return _owner_path(config or os.environ.get(layers.CONFIG_VARIABLE), cwd, explicit)


def explicit_places(arguments: Mapping[str, object] | None = None) -> tuple[Path, Path | None]:
    """Return the home, and the workspace if an argument or a variable names one, without reading any file."""
    cwd = Path.cwd()
    explicit = layers.from_environment(os.environ, cwd, []) | layers.from_arguments(arguments or {}, cwd, [])
    workspace = explicit["workspace"].value if "workspace" in explicit else None
    return _home(explicit), workspace if isinstance(workspace, Path) else None


def _check_restored(home: Path) -> None:
    """Raise if a restore was interrupted. The files of the home are then partly old, partly new and partly missing."""
    if (home / RESTORE_MARKER).exists():
        raise BackupError(
            f"A restore into {printable(home)} was interrupted, so the memory there is not complete. Run the same "
            "`memoriter restore` again, which completes it."
        )


def _owner_path(named: Path | str | None, cwd: Path, explicit: Layer) -> Path:
    try:
        return (cwd / Path(named).expanduser() if named else _home(explicit) / "config.yaml").resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"The settings file {printable(str(named))} is not a usable path: {reason_of(error)}."
        ) from error


def _owners_file(
    config: Path | None, environ: Mapping[str, str], cwd: Path, explicit: Layer, errors: list[ConfigError]
) -> Layer:
    named = config or environ.get(layers.CONFIG_VARIABLE)
    path = _owner_path(named, cwd, explicit)
    text = read(path, follow_links=True)
    if text is None and named:
        origin = "--config" if config else layers.CONFIG_VARIABLE
        raise ConfigError(f"The settings file {printable(path)}, named by {origin}, does not exist.")
    return layers.from_file(path, text, errors) if text is not None else {}


def check_text(path: Path, text: str) -> Settings:
    """Return the settings that a file with this text alone would give. Raises ConfigError for the first error."""
    errors: list[ConfigError] = []
    return _check(layers.from_file(path, text, errors), errors)


def _home(layer: Layer) -> Path:
    home = layer.get("home")
    return home.value if home and isinstance(home.value, Path) else Path("~/.memoriter").expanduser()


def find_workspace(folder: Path) -> Path | None:
    """Return the folder or the nearest one above it that `init` set up; None if there is none.

    A file of another user above the folder does not count, because shared folders such as /tmp belong to everyone.
    """
    if (folder / layers.WORKSPACE_FILE).exists():
        return folder
    for above in folder.parents:
        with contextlib.suppress(OSError):
            if is_own(above / layers.WORKSPACE_FILE):
                return above
    return None


def _server_of_tenant(layer: Layer) -> Layer:
    """Return the URL of the server that `store.servers` names for the tenant, if it does."""
    servers = layer["store.servers"].value if "store.servers" in layer else {}
    tenant = layer["store.tenant"].value if "store.tenant" in layer else DEFAULT_TENANT
    if not isinstance(servers, Mapping) or not isinstance(tenant, str) or tenant not in servers:
        return {}
    return {"store.url": Value(servers[tenant], "store.servers")}


def _working_copy(layer: Layer) -> Value | None:
    """Return the workspace if a server holds the notes: a folder that caches them. None without a server."""
    values = {key: layer[key].value for key in ("store.url", "store.tenant", "agent") if key in layer}
    url, tenant = values.get("store.url"), values.get("store.tenant", DEFAULT_TENANT)
    if not isinstance(url, str) or not url:
        return None
    return Value(
        working_copy(_home(layer).absolute(), url, str(tenant), str(values.get("agent", "main"))), "store.url"
    )


def _refuse_folder(named: Value | None, copy: Path) -> None:
    """Raise if a folder was named that is not read, because a server holds the notes."""
    if (
        named is None
        or not isinstance(named.value, Path)
        or os.path.realpath(named.value) == os.path.realpath(copy)
    ):
        return
    is_argument = named.origin == "--workspace"
    # A container may set the variable for every deployment. An empty folder has no notes that would be missed.
    if not is_argument and not (named.value.is_dir() and any(named.value.iterdir())):
        return
    folder = printable(named.value)
    message = (
        f"The folder {folder} is not read, because a server holds the notes (`store.url`): "
        f"{'leave out the workspace' if is_argument else f'unset {named.origin}'}, and run "
        f"`memoriter push {quote(folder)}` to copy the notes to the server."
    )
    raise BadArgument(message, "workspace") if is_argument else ConfigError(message)


def _named_workspace(owner: Layer, explicit: Layer, cwd: Path) -> Layer:
    """Return the folder of the workspace that `--workspace` or a variable calls by a name of the owner's."""
    names = owner["workspaces"].value if "workspaces" in owner else {}
    given = explicit.get("workspace")
    if given is None or not isinstance(names, Mapping) or not isinstance(given.value, Path):
        return {}
    name = given.value.name
    is_name = name in names and given.value.parent in (cwd, cwd.resolve())
    return {"workspace": Value(Path(names[name]).expanduser(), given.origin)} if is_name else {}


def _with_workspace(owner: Layer, explicit: Layer, cwd: Path) -> Layer:
    """Add the workspace if it is not named explicitly.

    It is the current folder or the nearest one above it that `init` set up, else what the owner's file says, else the
    current folder if it contains notes, else a folder in the home.
    """
    layer = owner | explicit
    if "workspace" in explicit:
        return layer
    if folder := find_workspace(cwd):
        origin = CURRENT_FOLDER if folder == cwd else str(folder / layers.WORKSPACE_FILE)
        return layer | {"workspace": Value(folder.resolve(), origin)}
    if "workspace" in owner:
        return layer
    if any((cwd / name).exists() for name in ("MEMORY.md", "memory.md", "memory")):
        return layer | {"workspace": Value(cwd.resolve(), CURRENT_FOLDER)}
    return layer | {"workspace": Value((_home(layer) / "workspace").resolve(), "default")}


def _check(layer: Layer, errors: list[ConfigError]) -> Settings:
    try:
        settings = full_settings().model_validate(_nest(layer))
    except ValidationError as error:
        errors.extend(_messages(error, layer))
    if errors:
        raise _summary(errors)
    settings._origins = {key: setting.origin for key, setting in layer.items()}
    return settings


def _nest(layer: Layer) -> dict[str, object]:
    tree: dict[str, object] = {}
    for key, setting in layer.items():
        *sections, name = key.split(".")
        folder = tree
        for section in sections:
            folder = folder.setdefault(section, {})  # type: ignore[assignment]
        folder[name] = setting.value
    return tree


def _messages(error: ValidationError, layer: Layer) -> Iterator[ConfigError]:
    for detail in error.errors(include_url=False):
        place = [str(part) for part in detail["loc"]]
        key, reason = _key_at(place), _reason(detail)
        reason = f"{'it ' * reason.startswith('must')}{reason}{'' if reason.endswith(('.', '?')) else '.'}"
        if key in layer:
            value = "***" if layers.is_secret(key) else reprlib.repr(_shown(detail["input"]))
            yield ConfigError(f"The setting {key} = {value} from {layer[key].origin} is not valid: {reason}")
        else:
            origins = {value.origin: None for name, value in layer.items() if name.startswith(f"{key}.")}
            yield ConfigError(f"The section {key} from {' and '.join(origins)} is not valid: {reason}")


def _shown(value: object) -> object:
    """Return a wrong value as its author wrote it: a path is a text, and a list is a list."""
    match value:
        case Path():
            return value.as_posix()
        case dict():
            return {name: _shown(item) for name, item in value.items()}
        case list() | tuple():
            return [_shown(item) for item in value]
        case _:
            return value


def _reason(detail: ErrorDetails) -> str:
    """Describe the error of a value, without pydantic's wording."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in ("extra_forbidden", "missing"):
        return f"{'unknown' if kind == 'extra_forbidden' else 'missing'} key {str(detail['loc'][-1])[:80]!r}"
    if kind in REQUIREMENTS:
        return f"must be {REQUIREMENTS[kind].format(**context)}"
    return "is not a valid value"


def _key_at(place: list[str]) -> str:
    """Return the setting that an error is about, or its section if it is about several settings."""
    paths = [".".join(place[:size]) for size in range(len(place), 0, -1)]
    return next((path for path in paths if path in keys()), paths[0])


def _summary(errors: list[ConfigError]) -> ConfigError:
    """Return the first error with a count of the others. Forbidden settings of a workspace come first."""
    first = next((error for error in errors if isinstance(error, UntrustedConfig)), errors[0])
    more = len(errors) - 1
    count = f" The settings contain {more} more {'error' if more == 1 else 'errors'}." if more else ""
    return type(first)(f"{first}{count}")
