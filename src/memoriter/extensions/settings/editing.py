"""Set and remove single settings in a file. Comments, order and everything else in the file stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from memoriter.config.fields import did_you_mean, nearest
from memoriter.config.layers import allows_none, canonical, from_file, is_secret, read
from memoriter.config.loading import check_text
from memoriter.config.settings import keys
from memoriter.config.yaml_file import Loader, parse
from memoriter.errors import ConfigError
from memoriter.files import durable

INDENT = 2


def change_value(path: Path, key: str, change: Callable[[object], object], *, mode: int = 0o600) -> bool:
    """Replace one setting in a file by what ``change`` returns for its value (None if it is not set).

    Return whether the file changed.
    """
    text = read(path, follow_links=True) or ""
    changed = set_value(text, key, change(_value_in(text, key)))
    check_text(path, changed)
    return changed != text and durable.write(path, changed.encode(), mode=mode)


def save_value(path: Path, key: str, written: str) -> object:
    """Set one setting in a file, and create the file if needed. Returns the value that was written.

    ``written`` is YAML, as a person types it. Nothing is written if the settings would not be valid afterwards.
    """
    value = written if _is_text(key, written) else parse(written, f"The value of {key}")
    change_value(path, key, lambda _: value)
    return "***" if is_secret(key) else value


def unset_value(path: Path, key: str) -> bool:
    """Remove one setting from a file. Return whether the file had it."""
    text = read(path, follow_links=True) or ""
    before = from_file(path, text, [])
    if key not in before:
        return False
    changed = remove_value(text, key)
    after = from_file(path, changed, [])
    if after != {name: value for name, value in before.items() if name != key}:
        raise ConfigError(f"{key} cannot be removed from {path} automatically. Edit the file by hand.")
    check_text(path, changed)
    durable.write(path, changed.encode())
    return True


def complete_key(key: str) -> str:
    """Return the setting that a person names. Raises `ConfigError` with the nearest name."""
    known = canonical(key)
    if known in keys():
        return known
    section = [name for name in keys() if name.startswith(f"{known}.")]
    if section:
        raise ConfigError(f"{key!r} is a section. Name one of its settings, such as {section[0]!r}.")
    near = nearest(known, keys())
    hint = did_you_mean(near) if near else ". `memoriter config show` lists all settings."
    raise ConfigError(f"Unknown setting {key!r}{hint}")


def _is_text(key: str, written: str) -> bool:
    """Return whether a setting takes a text as it is: the model `1.10` is a name, although YAML reads a number."""
    if allows_none(key) and written in ("null", "~"):
        return False
    return keys()[key].annotation in (str, str | None)


def set_value(text: str, key: str, value: object) -> str:
    """Return the text of a settings file in which ``key`` has this value."""
    root = yaml.compose(text, Loader)
    name = key.split(".")
    if root is None:
        edited = _append(text, _lines(name, value, 0))
    elif not isinstance(root, yaml.MappingNode):
        raise ConfigError("The settings file must contain keys with values, such as 'agent: main'.")
    else:
        edited = _edit(text, _find(root, key), value)
    with suppress(yaml.YAMLError):  # a mapping in braces cannot be extended
        if _value_in(edited, key) == value:
            return edited
    raise ConfigError(f"{key} cannot be set automatically in this file. Edit it by hand.")


# ---- the place of a key -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a key is, or belongs: the value to replace, or the section to extend and the names that are missing."""

    section: yaml.MappingNode
    value: yaml.Node | None
    missing: tuple[str, ...] = ()


def _find(section: yaml.MappingNode, key: str, prefix: str = "") -> _Place:
    """Return the place of a key. A file may name sections and keys as other programs do."""
    for name, value in section.value:
        here = canonical(f"{prefix}{name.value}")
        if here == key:
            return _Place(section, value)
        if key.startswith(f"{here}."):
            if isinstance(value, yaml.MappingNode) and value.value:
                return _find(value, key, f"{here}.")
            return _Place(section, value, tuple(key.removeprefix(f"{here}.").split(".")))
    return _Place(section, None, tuple(key.removeprefix(prefix).split(".")))


def _value_in(text: str, key: str) -> object:
    root = yaml.compose(text, Loader)
    place = _find(root, key) if isinstance(root, yaml.MappingNode) else None
    if place is None or place.value is None or place.missing:
        return None
    loader = Loader("")
    return loader.construct_document(place.value)


# ---- changing the text --------------------------------------------------------------------------------------------


def _edit(text: str, place: _Place, value: object) -> str:
    column = place.section.start_mark.column
    if place.value is None:
        lines = _lines(list(place.missing), value, column)
        end = _end(place.section)
        if place.section.flow_style or end == 0:
            return _append(text, _lines(list(place.missing), value, 0))
        return _insert(text, end, lines)
    if place.missing:  # a section without content
        return _insert(text, _end(place.value), _lines(list(place.missing), value, column + INDENT))
    start, end = place.value.start_mark.index, _end(place.value)
    if start == end:  # `key:` without a value
        return f"{text[:start]} {_dump(value)}{text[end:]}"
    if isinstance(place.value, yaml.CollectionNode) and not place.value.flow_style:
        start = text.rindex(":", 0, start) + 1  # a list below its key becomes a value beside it
        return f"{text[:start]} {_dump(value)}{text[end:]}"
    return f"{text[:start]}{_dump(value)}{text[end:]}"


def remove_value(text: str, key: str) -> str:
    """Return the text without a key, and without the sections that contain nothing else."""
    root = yaml.compose(text, Loader)
    place = _find(root, key) if isinstance(root, yaml.MappingNode) else None
    if place is None or place.value is None or place.missing:
        return text
    section = place.section
    if section.flow_style:
        left = [pair for pair in section.value if pair[1] is not place.value]
        remaining = Loader("").construct_document(yaml.MappingNode(section.tag, left))
        return f"{text[: section.start_mark.index]}{_dump(remaining)}{text[section.end_mark.index :]}"
    if section is not root and len(section.value) == 1:
        return remove_value(text, key.rpartition(".")[0])
    name = next(name for name, value in section.value if value is place.value)
    end = _end(place.value)
    if text[end - 1] != "\n":  # the mark of a text of several lines is at the beginning of the next line
        end = text.find("\n", end) + 1 or len(text)
    return text[: text.rfind("\n", 0, name.start_mark.index) + 1] + text[end:]


def _end(node: yaml.Node) -> int:
    """Return where the text of a node ends. The mark of a block also covers the comments after it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _insert(text: str, after: int, lines: str) -> str:
    """Insert lines below the line that contains a position."""
    at = text.find("\n", after)
    return f"{text}\n{lines}" if at < 0 else f"{text[: at + 1]}{lines}{text[at + 1 :]}"


def _append(text: str, lines: str) -> str:
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{lines}"


def _lines(names: list[str], value: object, column: int) -> str:
    """Return the lines that set a value below sections."""
    head = "".join(f"{' ' * (column + INDENT * depth)}{name}:\n" for depth, name in enumerate(names[:-1]))
    indent = " " * (column + INDENT * (len(names) - 1))
    return f"{head}{indent}{names[-1]}: {_dump(value)}\n"


def _dump(value: object) -> str:
    """Return a value as YAML on one line."""
    dumped = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6, sort_keys=False)
    return dumped.removesuffix("\n").removesuffix("\n...")
