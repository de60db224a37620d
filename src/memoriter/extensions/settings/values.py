"""Set and remove single settings as a person names them (`memoriter config`)."""

from __future__ import annotations

from pathlib import Path

from memoriter.config.fields import did_you_mean, nearest
from memoriter.config.layers import allows_none, canonical, from_file, is_secret, read
from memoriter.config.loading import check_text
from memoriter.config.settings import keys
from memoriter.config.yaml_file import parse
from memoriter.errors import ConfigError
from memoriter.extensions.settings.editing import remove_value, set_value
from memoriter.files import durable


def save_value(path: Path, key: str, written: str) -> object:
    """Set one setting in a file, and create the file if needed. Returns the value that was written.

    ``written`` is YAML, as a person types it. Nothing is written if the settings would not be valid afterwards.
    """
    text = read(path, follow_links=True) or ""
    value = written if _is_text(key, written) else parse(written, f"The value of {key}")
    changed = set_value(text, key, value)
    check_text(path, changed)
    durable.write(path, changed.encode())
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
