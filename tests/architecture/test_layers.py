"""The table of rooms, kept true: who may import whom. Read it first."""

from __future__ import annotations

import ast
from pathlib import Path

import memoriter

ROOT = Path(memoriter.__file__).parent

SHARED = {"records", "errors", "logs", "files", "background"}
LEAVES = {"text", "embedding", "llm", "store"}
JOINERS = {"notes", "sessions", "index", "search", "entries", "recall", "engines"}

MAY_IMPORT: dict[str, set[str]] = {
    "records": set(),
    "errors": set(),
    "logs": set(),
    "background": {"errors"},
    "files": SHARED,
    "config": SHARED,
    "text": SHARED,
    "embedding": SHARED | {"text"},
    "store": SHARED | {"text"},
    "llm": SHARED | {"text"},
    "sessions": SHARED | {"text"},
    "notes": SHARED | {"text", "llm", "store", "sessions"},
    "index": SHARED | LEAVES | {"notes", "sessions"},
    "search": SHARED | LEAVES | {"sessions"},
    "entries": SHARED | LEAVES | {"index", "search"},
    "recall": SHARED | LEAVES | {"search", "entries", "sessions"},
    "engines": SHARED | LEAVES | JOINERS,
    "build": SHARED | LEAVES | JOINERS | {"config", "integrations"},
    "memory": SHARED | LEAVES | JOINERS | {"config", "build", "integrations"},
    "async_memory": SHARED | {"memory", "entries", "notes", "embedding", "config"},
    "agent": SHARED | {"memory", "build", "config", "index", "notes", "sessions", "recall", "text"},
    "tools": SHARED | {"memory", "agent", "config"},
    "integrations": SHARED | LEAVES | JOINERS | {"memory", "agent", "tools", "config"},
    "server": SHARED | {"memory", "async_memory", "agent", "tools", "config", ""},
    "cli": SHARED | {"memory", "agent", "tools", "server", "integrations", "config", ""},
    "testing": SHARED | LEAVES,
    "__main__": {"cli"},
    "": {
        "records",
        "errors",
        "memory",
        "async_memory",
        "agent",
        "config",
        "embedding",
        "entries",
        "notes",
        "recall",
        "tools",
    },
}


def room_of(file: Path) -> str:
    first = file.relative_to(ROOT).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported_rooms(file: Path) -> set[str]:
    """Every room that the file imports, at its head, in functions, or for types."""
    rooms = set[str]()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            names = (
                [node.module] if node.module != "memoriter" else [f"memoriter.{a.name}" for a in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name and name.split(".")[0] == "memoriter":
                second = [*name.split("."), ""][1]
                rooms.add(second if (ROOT / second).is_dir() or (ROOT / f"{second}.py").is_file() else "")
    return rooms


def test_every_import_follows_the_table() -> None:
    broken = [
        f"{file.relative_to(ROOT)} imports {room or 'the package root'}"
        for file in sorted(ROOT.rglob("*.py"))
        for room in sorted(imported_rooms(file) - {room_of(file)})
        if room not in MAY_IMPORT[room_of(file)]
    ]
    assert broken == []


def test_every_room_is_in_the_table() -> None:
    rooms = {room_of(file) for file in ROOT.rglob("*.py")}
    assert rooms <= set(MAY_IMPORT)
