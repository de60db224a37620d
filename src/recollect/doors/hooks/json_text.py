"""Changing a JSON text in one place and leaving every other byte as somebody wrote it.

`json` reads values but forgets how they were written. Here a container's elements are found with their places, so that
one can be put at its end, and taken out again, without touching what stands around it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"^[{\[][ \t]*\r?\n([ \t]+)", re.MULTILINE)
_decoder = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Element:
    """A member of an object or an item of an array, with its place in the text."""

    start: int
    end: int
    value: Any
    at: int  #: where the value begins; for an item, the start
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """An object or an array, with its place in the text."""

    start: int  #: of the opening bracket
    end: int  #: after the closing one
    depth: int
    elements: tuple[Element, ...]

    def get(self, key: str) -> Element | None:
        """The member of this name; of several the last, as JSON is read."""
        return next((one for one in reversed(self.elements) if one.key == key), None)


def root(text: str) -> Container:
    """The object that the text is; raises `ValueError` when it is none."""
    json.loads(text)  # whole and nothing else
    start = _skip(text, 0)
    if text[start] != "{":
        raise ValueError("it is no object")
    return container(text, start, 0)


def container(text: str, start: int, depth: int) -> Container:
    """The object or array that begins here."""
    is_object = text[start] == "{"
    elements, at = list[Element](), _skip(text, start + 1)
    while text[at] not in "}]":
        begun, key = at, None
        if is_object:
            key, at = json.decoder.scanstring(text, at + 1)  # type: ignore[attr-defined]
            at = _skip(text, _skip(text, at) + 1)  # past the colon
        value, end = _decoder.raw_decode(text, at)
        elements.append(Element(begun, end, value, at, key))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return Container(start, at + 1, depth, tuple(elements))


def inside(text: str, holder: Container, element: Element) -> Container:
    """The container that is an element's value."""
    return container(text, element.at, holder.depth + 1)


def added(text: str, holder: Container, value: object, key: str | None = None) -> str:
    """The text with one more element at the end of a container, written as the text around it is."""
    style = _Style.of(text)
    if holder.elements and "\n" not in text[holder.start : holder.end]:
        style = _Style(None, style.newline)  # it stands on one line
    element = style.written(value, key, holder.depth + 1)
    if holder.elements:
        at = holder.elements[-1].end
        return text[:at] + "," + style.gap(holder.depth + 1) + element + text[at:]
    whole = style.first(holder.depth + 1) + element + style.first(holder.depth)
    return text[: holder.start + 1] + whole + text[holder.end - 1 :]


def removed(text: str, holder: Container, element: Element) -> str:
    """The text without an element of a container, and without the comma that joined it."""
    place = holder.elements.index(element)
    if len(holder.elements) == 1:
        return text[: holder.start + 1] + text[holder.end - 1 :]
    if place == 0:
        return text[: element.start] + text[holder.elements[1].start :]
    return text[: holder.elements[place - 1].end] + text[element.end :]


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


@dataclass(frozen=True, slots=True)
class _Style:
    """How a text is laid out: on one line, or over lines with an indent."""

    indent: str | None
    newline: str

    @classmethod
    def of(cls, text: str) -> _Style:
        newline = "\r\n" if "\r\n" in text else "\n"
        if text.strip() in ("", "{}"):
            return cls("  ", newline)
        found = _INDENT.search(text)
        if found:
            return cls(found[1], newline)
        return cls("  " if "\n" in text.strip() else None, newline)

    def first(self, depth: int) -> str:
        """What stands between a bracket and its element."""
        return "" if self.indent is None else self.newline + self.indent * depth

    def gap(self, depth: int) -> str:
        """What stands between a comma and the next element."""
        return " " if self.indent is None else self.first(depth)

    def written(self, value: object, key: str | None, depth: int) -> str:
        lines = json.dumps(value, indent=self.indent, ensure_ascii=False).split("\n")
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        return name + f"{self.newline}{(self.indent or '') * depth}".join(lines)
