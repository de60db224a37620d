"""The table of rooms, kept true: who may import whom. Read it first."""

from __future__ import annotations

import ast
from pathlib import Path

import recollect

ROOT = Path(recollect.__file__).parent

SHARED = {"records", "errors", "logs", "durable"}
LEAVES = {"text", "sources", "chunking", "embedding", "llm", "store"}
JOINERS = {"indexing", "retrieval", "entries", "items", "recall", "writing", "managers"}

MAY_IMPORT: dict[str, set[str]] = {
    "records": set(),
    "errors": set(),
    "logs": set(),
    "durable": set(),
    "config": SHARED,
    "text": SHARED,
    "sources": SHARED | {"text"},
    "chunking": SHARED | {"text"},
    "embedding": SHARED | {"text"},
    "store": SHARED | {"text"},
    "llm": SHARED | {"text"},
    "indexing": SHARED | LEAVES,
    "retrieval": SHARED | LEAVES,
    "entries": SHARED | LEAVES | {"retrieval"},
    "items": SHARED | LEAVES | {"retrieval"},
    "recall": SHARED | LEAVES | {"retrieval", "entries"},
    "writing": SHARED | LEAVES,
    "importing": SHARED | LEAVES | {"entries", "writing"},
    "managers": SHARED | LEAVES | JOINERS,
    "assembly": SHARED | LEAVES | JOINERS | {"config"},
    "memory": SHARED | LEAVES | JOINERS | {"config", "assembly", "importing", "listening"},
    "async_memory": SHARED | {"memory", "managers", "embedding"},
    "freshness": SHARED,
    "listening": SHARED | {"sources"},
    "service": SHARED | {"memory", "assembly", "config", "freshness", "sources", "recall"},
    "plugins": SHARED | {"memory", "assembly", "service", "config", "sources", "text", "listening"},
    "testing": SHARED | LEAVES,
    "doors": SHARED | {"memory", "async_memory", "service", "plugins", "listening", "config", ""},
    "__main__": {"doors"},
    "": {"records", "errors", "memory", "async_memory", "service", "config"},
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
                [node.module] if node.module != "recollect" else [f"recollect.{a.name}" for a in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name and name.split(".")[0] == "recollect":
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
