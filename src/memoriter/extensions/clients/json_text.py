"""Edit JSON as text, so that comments, order and formatting of the file stay as its owner wrote them.

Settings of editors are JSON with comments and trailing commas. `read` finds the places of values in such a text, and
the other functions insert a value there or remove one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from memoriter.errors import ConfigError

_SPACE = re.compile(r"(?:[\s\ufeff]|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENTS_OF_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")
_KEY = re.compile(r'"(?:[^"\\\n]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"')
_SCALAR = re.compile(r'"(?:[^"\\\n]|\\.)*"|[^\s,:\[\]{}"/]+')
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is in a text, with the places of what it contains."""

    start: int
    end: int
    #: The key, if the value is a member of an object.
    key: str = ""
    #: Where the key starts, or the value if it has none.
    first: int = 0
    kind: str = ""
    inner: list[Place] = field(default_factory=list)

    def member(self, key: str) -> Place | None:
        """Return the member with this key. Of several, the last one counts, as it does for the programs."""
        return next((place for place in reversed(self.inner) if place.key == key), None)


def read(text: str) -> Place:
    """Return the place of the object that a text consists of. Raises `ConfigError`."""
    first = _skip(text, 0)
    place, end = _value(text, first, 0, "", first)
    if place.kind != "{" or _skip(text, end) != len(text):
        raise ConfigError("it is not a JSON object")
    return place


def _skip(text: str, at: int, skipped: re.Pattern[str] = _SPACE) -> int:
    found = skipped.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int, key: str, first: int) -> tuple[Place, int]:
    kind = text[at : at + 1]
    if kind not in ("{", "[") or depth > MAX_DEPTH:
        found = _SCALAR.match(text, at) if depth <= MAX_DEPTH else None
        if found is None:
            raise _damaged(text, at)
        return Place(at, found.end(), key, first, "."), found.end()
    place, at = Place(at, 0, key, first, kind), _skip(text, at + 1)
    closing = "}" if kind == "{" else "]"
    while text[at : at + 1] != closing:
        name, start = "", at
        if kind == "{":
            found = _KEY.match(text, at)
            after = _skip(text, found.end()) if found else at
            if found is None or text[after : after + 1] != ":":
                raise _damaged(text, at)
            name, at = json.loads(found[0], strict=False), _skip(text, after + 1)
        inner, at = _value(text, at, depth + 1, name, start)
        place.inner.append(inner)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _damaged(text, at)
    return Place(place.start, at + 1, key, first, kind, place.inner), at + 1


def _damaged(text: str, at: int) -> ConfigError:
    return ConfigError(f"it is not JSON (line {text.count(chr(10), 0, at) + 1})")


# ---- changes --------------------------------------------------------------------------------------------------


def add(text: str, path: Sequence[str], value: Any, *, to_list: bool = False) -> str:
    """Add a value under a path, creating the objects on the way. ``to_list``: the path names a list that it joins.

    Raises `ConfigError` if there is something else on the way.
    """
    text = text if text.strip("\ufeff \t\r\n") else f"{text}{{}}\n"
    at, rest = read(text), list(path)
    while rest and (found := at.member(rest[0])):
        at = found
        rest.pop(0)
        if at.kind != ("[" if to_list and not rest else "{"):
            raise ConfigError(f"`{'.'.join(path[: len(path) - len(rest)])}` has another type than expected")
    value = [value] if to_list and rest else value
    for key in reversed(rest[1:]):
        value = {key: value}
    return _insert(text, at, rest[0] if rest else None, value)


def _insert(text: str, at: Place, key: str | None, value: Any) -> str:
    line = "\r\n" if "\r\n" in text else "\n"
    unit = "\t" if re.search(r"^\t", text, re.MULTILINE) else "  "
    [outer] = re.findall(r"\A[ \t]*", text[text.rfind("\n", 0, at.first) + 1 :])
    written = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"{line}{outer}{unit}")
    written = f"{json.dumps(key, ensure_ascii=False)}: {written}" if key is not None else written
    if not at.inner:
        return f"{text[: at.end - 1].rstrip()}{line}{outer}{unit}{written}{line}{outer}{text[at.end - 1 :]}"
    end = at.inner[-1].end
    comma = _skip(text, end)
    if text[comma : comma + 1] != ",":
        text, comma = f"{text[:end]},{text[end:]}", end
    end = _skip(text, comma + 1, _COMMENTS_OF_LINE)
    return f"{text[:end]}{line}{outer}{unit}{written}{text[end:]}"


def remove(text: str, path: Sequence[str], is_ours: Callable[[str], bool] | None = None) -> str:
    """Remove the member that a path names, or the elements of the list there that ``is_ours`` accepts.

    Objects and lists that become empty are removed too, unless they have comments.
    """
    if not text.strip("\ufeff \t\r\n"):
        return text
    places = [read(text)]
    for key in path:
        found = places[-1].member(key)
        if found is None:
            return text
        places.append(found)
    if is_ours is None:
        return _cut(text, places[:-1], places[-1])
    for place in reversed(places[-1].inner):
        if is_ours(text[place.start : place.end]):
            return remove(_cut(text, places, place), path, is_ours)
    return text


def _cut(text: str, around: Sequence[Place], place: Place) -> str:
    """Cut a value out, or the outermost value around it that contains nothing else."""
    *outer, holder = around
    before, after, number = text[: place.first], text[place.end :], holder.inner.index(place)
    if outer and len(holder.inner) == 1 and "/" not in before[holder.start :] + text[place.end : holder.end]:
        return _cut(text, outer, holder)
    comma = _skip(text, place.end)
    if text[comma : comma + 1] == ",":
        after = text[place.end : comma] + text[comma + 1 :]
    elif number:
        comma = _skip(text, holder.inner[number - 1].end)
        before = text[:comma] + text[comma + 1 : place.first]
    if number + 1 < len(holder.inner):
        return before + after.lstrip()
    return before.rstrip(" \t") + re.sub(r"\A[ \t]*\r?\n", "", after)


def value_at(text: str, path: Sequence[str]) -> str | None:
    """Return the text of the value that a path names; None if there is none."""
    place = read(text) if text.strip("\ufeff \t\r\n") else None
    for key in path:
        place = place.member(key) if place is not None else None
    return None if place is None else text[place.start : place.end]
