"""The public names of the package, and what importing it costs."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from typing import Literal, get_origin

import pytest

import memoriter
from memoriter import errors

ERRORS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, memoriter.MemoriterError)
}


def names_for_type_checkers() -> set[str]:
    """Return the names that the package imports for type checkers only."""
    tree = ast.parse(inspect.getsource(memoriter))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {
        alias.name
        for node in imports
        for alias in node.names
        if (node.module or "").startswith("memoriter.") and alias.asname == alias.name
    }


def test_type_checkers_and_programs_see_the_same_names() -> None:
    assert {*names_for_type_checkers(), "__version__", "open"} == set(memoriter.__all__)
    assert dir(memoriter) == sorted(memoriter.__all__)


def test_every_error_is_a_public_name() -> None:
    assert set(memoriter.__all__) >= ERRORS


@pytest.mark.parametrize("name", memoriter.__all__)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(memoriter, name)
    assert isinstance(value, str) or get_origin(value) is Literal or inspect.getdoc(value)


def test_open_takes_the_arguments_of_memory_open() -> None:
    assert inspect.signature(memoriter.open) == inspect.signature(memoriter.Memory.open)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Host'"):
        _ = memoriter.Host  # type: ignore[attr-defined]


def modules_after(code: str) -> set[str]:
    """Return the modules that a new interpreter has loaded after the code."""
    probe = f"import sys, json\n{code}\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def loaded_after(code: str) -> set[str]:
    """Return the top-level modules that a new interpreter has loaded after the code."""
    return {module.split(".")[0] for module in modules_after(code)}


HEAVY = {"numpy", "onnxruntime", "tokenizers", "pydantic", "apsw", "rich", "yaml", "sqlite_vec"}


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_after("import memoriter") & HEAVY == set()


def test_clients_of_the_resident_process_load_almost_nothing() -> None:
    before = modules_after("import memoriter")
    added = modules_after("import memoriter.cli, memoriter.resident.calls") - before
    own = {"__init__", "calls", "client", "command_line"}
    names = {f"memoriter.resident.{name}" for name in own - {"__init__"}} | {
        "memoriter.cli",
        "memoriter.files",
        "memoriter.files.platform",
        "memoriter.resident",
    }
    assert {module for module in added if module.startswith("memoriter")} == names
    assert added & {"typing", "dataclasses", "pathlib", "socket", "signal", "typer"} == set()


def test_the_help_of_the_command_line_loads_no_engine() -> None:
    code = "import memoriter.cli.app"
    assert loaded_after(code) & (HEAVY - {"rich"}) == set()


def test_a_keyword_search_loads_neither_numpy_nor_the_model(tmp_path) -> None:
    code = f"""
import memoriter
from pathlib import Path
root = Path({str(tmp_path)!r}); (root / "memory").mkdir(); (root / "MEMORY.md").write_text("the heron flies")
with memoriter.open(root, home=root / "home", overrides={{"embedding.provider": "none"}}) as memory:
    memory.sync()
    assert memory.search("heron")
"""
    assert loaded_after(code) & {"numpy", "onnxruntime", "tokenizers"} == set()
