"""What a GGUF file says of itself in its head, read without loading the model."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from memoriter.errors import EmbedderUnavailable

MOST_KEYS = 10_000
MOST_TEXT = 16 * 1024 * 1024  #: bytes of one string; a vocabulary's are skipped, not kept

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9


def read(path: Path) -> dict[str, Any]:
    """The single values of the head by key, such as "general.name"; arrays are left out."""
    try:
        with path.open("rb") as file:
            return _head(file)
    except OSError as error:
        raise EmbedderUnavailable(f"the model file {path} cannot be read: {error.strerror}") from error
    except (struct.error, ValueError, KeyError) as error:
        raise EmbedderUnavailable(f"{path} is not a GGUF model: {error}") from error


def _head(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    version, _tensors, count = _unpack(file, "<IQQ")
    if version not in (2, 3) or count > MOST_KEYS:
        raise ValueError(f"version {version} with {count} keys")
    found = {}
    for _ in range(count):
        key, kind = _text(file), _unpack(file, "<I")[0]
        value = _value(file, kind)
        if value is not None:
            found[key] = value
    return found


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _text(file)
    if kind == _ARRAY:
        inner, length = _unpack(file, "<IQ")
        _skip(file, inner, length)
        return None
    return _unpack(file, "<" + _NUMBERS[kind])[0]


def _skip(file: BinaryIO, kind: int, length: int) -> None:
    if kind in _NUMBERS:
        file.seek(length * struct.calcsize("<" + _NUMBERS[kind]), 1)
        return
    for _ in range(length):
        _value(file, kind)


def _text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "<Q")
    if length > MOST_TEXT:
        raise ValueError("a text in it is too long")
    return file.read(length).decode("utf-8", "replace")


def _unpack(file: BinaryIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))
