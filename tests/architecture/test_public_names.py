from __future__ import annotations

import json
import subprocess
import sys

import memoriter


def test_the_public_names_are_these() -> None:
    assert memoriter.__all__ == [
        "Answer",
        "AsyncMemory",
        "Excerpt",
        "Hit",
        "MemoriterError",
        "Memory",
        "MemoryService",
        "Saved",
        "Settings",
        "Status",
        "SyncReport",
        "__version__",
    ]
    assert all(getattr(memoriter, name) is not None for name in memoriter.__all__)


def loaded_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after the code."""
    probe = f"import sys, json\n{code}\nprint(json.dumps([m.split('.')[0] for m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


HEAVY = {"numpy", "onnxruntime", "tokenizers", "pydantic", "apsw", "rich", "yaml", "sqlite_vec"}


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_after("import memoriter") & HEAVY == set()


def test_the_help_of_the_command_line_loads_nothing_of_the_engine() -> None:
    code = "import memoriter.cli.app"
    assert loaded_after(code) & (HEAVY - {"rich"}) == set()


def test_a_keyword_search_loads_neither_numpy_nor_the_model(tmp_path) -> None:
    code = f"""
from memoriter import Memory
from pathlib import Path
root = Path({str(tmp_path)!r}); (root / "memory").mkdir(); (root / "MEMORY.md").write_text("the heron flies")
with Memory.open(root, home=root / "home", overrides={{"embedding.provider": "none"}}) as memory:
    memory.sync()
    assert memory.search("heron").hits
"""
    assert loaded_after(code) & {"numpy", "onnxruntime", "tokenizers"} == set()
