"""The packages: which may import which, and how interfaces use a memory. Start reading here."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from pathlib import Path

import pytest

import memoriter

ROOT = Path(memoriter.__file__).parent

SHARED = {"extension", "records", "errors", "sentences", "invisible", "logs", "files", "background"}
LEAVES = {"text", "embedding", "store"}

MAY_IMPORT: dict[str, set[str]] = {
    "records": set(),
    "errors": set(),
    "sentences": {"errors"},
    "invisible": set(),
    "logs": {"invisible"},
    "extension": {"errors", "logs"},
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
    "entries": SHARED | LEAVES | {"llm", "index", "search"},
    "recall": SHARED | {"text", "entries", "search", "sessions"},
    "engines": SHARED | LEAVES | {"notes", "sessions", "index", "search"},
    "build": SHARED
    | {"embedding", "llm", "store", "notes", "sessions", "index", "search", "entries", "engines", "config"},
    "memory_search": SHARED | {"memory_parts", "build", "entries", "recall", "search", "text"},
    "memory_parts": SHARED
    | {
        "memory_search",
        "build",
        "config",
        "embedding",
        "engines",
        "entries",
        "llm",
        "notes",
        "recall",
        "search",
        "sessions",
        "text",
    },
    "memory": SHARED
    | {
        "memory_parts",
        "build",
        "config",
        "embedding",
        "engines",
        "entries",
        "notes",
        "recall",
        "sessions",
        "text",
    },
    "async_memory": SHARED | {"memory", "entries", "notes", "sessions", "embedding", "config"},
    "agent": SHARED | {"memory", "build", "config", "index", "notes", "sessions", "recall", "text"},
    "hosts": SHARED | {"memory", "agent", "config", "resident"},
    "tools": SHARED | {"memory", "agent", "config"},
    "extensions": SHARED
    | LEAVES
    | {
        "",
        "build",
        "cli",
        "llm",
        "notes",
        "sessions",
        "index",
        "search",
        "recall",
        "entries",
        "engines",
        "memory",
        "async_memory",
        "agent",
        "tools",
        "config",
        "resident",
        "hosts",
        "server",
        "testing",
    },
    "server": SHARED | {"memory", "async_memory", "agent", "tools", "config", ""},
    "cli": SHARED
    | {
        "memory",
        "agent",
        "tools",
        "server",
        "hosts",
        "config",
        "resident",
        "recall",
        "testing",
        "",
    },
    "resident": SHARED | {"memory", "agent", "tools", "server", "cli", "hosts", "config", ""},
    "testing": SHARED | {"text", "embedding", "llm"},
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
        "sessions",
        "tools",
    },
}


@functools.cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


def package_of(file: Path) -> str:
    first = file.relative_to(ROOT).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported_packages(file: Path) -> set[str]:
    """Return every package that the file imports, at its top, in functions, or for types."""
    packages = set[str]()
    for node in nodes(file):
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
                packages.add(second if (ROOT / second).is_dir() or (ROOT / f"{second}.py").is_file() else "")
    return packages


def test_every_import_follows_the_table() -> None:
    broken = [
        f"{file.relative_to(ROOT)} imports {package or 'the root'}"
        for file in sorted(ROOT.rglob("*.py"))
        for package in sorted(imported_packages(file) - {package_of(file)})
        if package not in MAY_IMPORT[package_of(file)]
    ]
    assert broken == []


def test_the_table_names_every_package_and_no_other() -> None:
    assert {package_of(file) for file in ROOT.rglob("*.py")} == set(MAY_IMPORT)


# ---- names of extensions --------------------------------------------------------------------------------------

#: Names that no file outside `extensions/` contains, in any case: in code, in texts or in comments.
NAMES = (
    "pinecone",
    "chroma",
    "sqlite_vec",
    "sqlite-vec",
    "lancedb",
    "postgres",
    "pgvector",
    "psycopg",
    "qmd",
    "langgraph",
    "basic-memory",
    "claude-mem",
)
#: Programs and vendors that no module of the core names. The page names hosts to its reader.
PROGRAMS = (
    "openclaw",
    "claude code",
    "claude-code",
    "codex",
    "gemini",
    "copilot",
    "mem0",
    "voyage",
    "ollama",
)
VARIABLES = ("OPENAI_", "ANTHROPIC_", "GOOGLE_", "CLAUDE_")
#: Names of the product that contain one of them, and annotations in notes.
ALLOWED = ("memory-lancedb", "openclaw[:-]")


def test_the_core_names_no_extension() -> None:
    found = []
    for file in sorted(ROOT.rglob("*")):
        if file.suffix not in (".py", ".js", ".css", ".html", ".json"):
            continue
        if file.relative_to(ROOT).parts[0] == "extensions":
            continue
        written = file.read_text(encoding="utf-8")
        text = written.lower()
        for allowed in ALLOWED:
            text = text.replace(allowed, "")
        names = [name for name in NAMES if name in text]
        if file.suffix == ".py":
            names += [name for name in PROGRAMS if name in text] + [
                name for name in VARIABLES if name in written
            ]
        found += [f"{file.relative_to(ROOT)}: {name}" for name in names]
    assert found == []


def asks_for_the_url(file: Path) -> bool:
    """Return whether a module reads `store.url` of the settings."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "url" and ast.unparse(node.value).endswith("store")
        for node in nodes(file)
    )


def test_one_module_chooses_the_store_by_its_url() -> None:
    """Others use the `Store` that it builds, or ask the settings whether machines share the memory."""
    asking = [str(file.relative_to(ROOT)) for file in sorted(ROOT.rglob("*.py")) if asks_for_the_url(file)]
    assert asking == ["build.py"]


# ---- attribute chains -----------------------------------------------------------------------------------------

#: Packages that use a `Memory` as any program does, through its public methods.
USERS = ("cli", "server", "tools", "extensions")

#: Public objects of a `Memory`, whose own public methods may be called.
PARTS = ("entries", "notes", "settings")


def is_memory(node: ast.expr) -> bool:
    """Return whether an expression names a memory: `memory`, `self._memory`, `call.memory`, `view.memory()`."""
    if isinstance(node, ast.Call):
        node = node.func
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ("memory", "_memory")


def reaches_inside(node: ast.Attribute) -> bool:
    """Return whether an attribute belongs to an inner object of a memory, such as `memory.entries.store.path`."""
    inner = node.value
    if not isinstance(inner, ast.Attribute):
        return False
    if is_memory(inner.value):
        return inner.attr not in PARTS
    outer = inner.value
    return isinstance(outer, ast.Attribute) and is_memory(outer.value) and outer.attr in ("entries", "notes")


def is_private_of_another(node: ast.Attribute, own: set[str]) -> bool:
    """Return whether an attribute is private to a class of another module; `os._exit` is a public function."""
    private = node.attr.startswith("_") and not node.attr.startswith("__") and node.attr != "_exit"
    return private and node.attr not in own


def defined_names(tree: ast.Module) -> set[str]:
    """Return the attributes and functions that a module defines itself."""
    assigned = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("self", "cls")
    }
    defined = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return assigned | defined


def chains_in(source: str) -> list[str]:
    """Return the attribute chains of a module that reach into a memory or into another module's classes."""
    tree = ast.parse(source)
    own = defined_names(tree)
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and (reaches_inside(node) or is_private_of_another(node, own))
    ]


def test_interfaces_use_the_public_methods_of_a_memory_and_nothing_deeper() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {chain}"
        for package in USERS
        for file in sorted((ROOT / package).rglob("*.py"))
        for chain in chains_in(file.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "chains"),
    [
        ("memory.search('x').hits", []),
        ("memory.entries.list()", []),
        ("call.memory.notes.get('x').trust", []),
        ("memory.settings.search.max_results", []),
        ("self._memory.sync()", []),
        ("memory._engine.sync()", ["memory._engine.sync", "memory._engine"]),
        ("view.memory().engine.sync()", ["view.memory().engine.sync"]),
        ("memory.entries.store.path", ["memory.entries.store.path"]),
        ("entries = memory.entries\nentries._store", ["entries._store"]),
    ],
)
def test_the_check_of_chains_finds_what_reaches_inside(source: str, chains: list[str]) -> None:
    assert chains_in(source) == chains


def test_test_modules_have_unique_names() -> None:
    """pytest imports them by name, so two with the same name cannot be collected together."""
    repository = Path(__file__).parents[2]
    folders = (repository / "tests", repository / "lab/tests")
    names = Counter(path.name for folder in folders for path in folder.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
