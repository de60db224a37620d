"""Every type that a public signature names can be imported from the package."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Literal, get_origin

import pytest

import memoriter

#: Classes that programs construct. The others are opened or returned, and dataclasses are known by their fields.
CONSTRUCTED = ("AsyncMemory", "MemoryService", "Toolbox")


def is_type(value: object) -> bool:
    """Return whether a value is a class or a set of literals. Other aliases only abbreviate."""
    return isinstance(value, type) or get_origin(value) is Literal


@cache
def own_types(module: str) -> frozenset[str]:
    """Return the types of this package that a module defines, or imports, also those for type checkers only."""
    found = {
        name: value
        for name, value in vars(sys.modules[module]).items()
        if getattr(value, "__module__", "").startswith("memoriter") or get_origin(value) is Literal
    }
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("memoriter."):
            source = import_module(node.module or "")
            found |= {alias.name: getattr(source, alias.name, None) for alias in node.names}
    return frozenset(name for name, value in found.items() if is_type(value))


def functions_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public functions of a public name: itself, or the methods and properties of a class."""
    if not isinstance(value, type):
        yield "", value
        return
    for name, found in vars(value).items():
        member = found.__func__ if isinstance(found, classmethod | staticmethod) else found
        member = member.fget if isinstance(member, property) else member
        constructs = name == "__init__" and value.__name__ in CONSTRUCTED
        ours = getattr(member, "__module__", "").startswith("memoriter")
        if inspect.isfunction(member) and ours and (constructs or not name.startswith("_")):
            yield f".{name}", inspect.unwrap(member)


def annotations_of(value: Any) -> Iterator[tuple[str, str, str]]:
    """Yield where each annotation stands, its module and its text."""
    for name, function in functions_of(value):
        for argument, annotation in getattr(function, "__annotations__", {}).items():
            yield f"{name}({argument})", function.__module__, str(annotation)
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield f".{field.name}", value.__module__, str(field.type)


def named_types(module: str, annotation: str) -> set[str]:
    tree = ast.parse(annotation, mode="eval")
    texts = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return texts & own_types(module)


@pytest.mark.parametrize("name", [name for name in memoriter.__all__ if name != "__version__"])
def test_every_type_in_a_public_signature_is_a_public_name(name: str) -> None:
    missing = {
        f"{name}{place}: {kind}"
        for place, module, annotation in annotations_of(getattr(memoriter, name))
        for kind in named_types(module, annotation) - set(memoriter.__all__)
    }
    assert missing == set()


@pytest.mark.parametrize("name", ["AsyncMemory", "Memory", "Notes", "Entries", "MemoryService", "Toolbox"])
def test_a_session_is_called_session_everywhere(name: str) -> None:
    arguments = {
        argument
        for _, function in functions_of(getattr(memoriter, name))
        for argument in inspect.signature(function).parameters
    }
    assert "session_key" not in arguments
