"""Extensions: how they are found, what they add to the settings, and what happens if one is broken."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

RunForked = Callable[..., subprocess.CompletedProcess[bytes]]

DECLARATION = """
from dataclasses import replace
from pydantic import Field
from memoriter.config.fields import Section
from memoriter.config.search import CollectionSettings
from memoriter.extension import Extension, Offer

class OwnSettings(Section):
    "Settings of the example."
    depth: int = Field(default=3, description="How deep.")
    paths: tuple[CollectionSettings, ...] = Field(default=(), description="More folders.")

class SearchFields(Section):
    example_boost: float = Field(default=0.5, description="An addition to a section of the core.")

def open_engine(settings, *, workspace, sessions, scope, builtin):
    engine = builtin()
    search = engine.search
    engine.search = lambda query: replace(search(query), provider=f"example in {workspace.root.name}")
    return engine

extension = Extension(
    name="example",
    engines={"example": Offer("example_extension:open_engine")},
    vector_engines={"example": Offer("example_extension:OwnSettings", extra="example", rank=2)},
    settings={"memory.example": "example_extension:OwnSettings", "search": "example_extension:SearchFields"},
    variables={"EXAMPLE_DEPTH": "memory.example.depth"},
    other_names={"example.depth": "memory.example.depth"},
)
"""

QUESTIONS = """
import json
from memoriter.config import load
from memoriter.extension import offers, problems, ranked
from example_extension import OwnSettings, SearchFields

settings = load(environ={"EXAMPLE_DEPTH": "7"}, arguments={"search.example_boost": 0.25, "search.max_results": 2})
print(json.dumps({
    "depth": settings.section(OwnSettings).depth,
    "origin": settings.origin("memory.example.depth"),
    "boost": settings.section(SearchFields).example_boost,
    "max_results": settings.search.max_results,
    "offer": offers("vector_engines")["example"].load().__name__,
    "ranked": [name for name, _ in ranked("vector_engines") if name == "example"],
    "problems": dict(problems()),
}))
"""


#: What Python needs on Windows: its system folder, and a home.
SYSTEM = {
    name: os.environ[name] for name in ("SYSTEMROOT", "USERPROFILE") if name in os.environ and os.name == "nt"
}


def installed(folder: Path, points: str, code: str = DECLARATION) -> str:
    """Write a package with these entry points as an installer would. Return the folder as a path for Python."""
    folder.mkdir()
    (folder / "example_extension.py").write_text(code, encoding="utf-8")
    metadata = folder / "example_extension-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: example-extension\nVersion: 1.0\n", encoding="utf-8"
    )
    (metadata / "entry_points.txt").write_text(f"[memoriter.extensions]\n{points}\n", encoding="utf-8")
    return str(folder)


def ask(path: str, questions: str = QUESTIONS, **environ: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", questions],
        env={**SYSTEM, "PYTHONPATH": path, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


ANSWER = {
    "depth": 7,
    "origin": "EXAMPLE_DEPTH",
    "boost": 0.25,
    "max_results": 2,
    "offer": "OwnSettings",
    "ranked": ["example"],
    "problems": {},
}


@pytest.mark.requirement("X22")
def test_an_installed_package_adds_settings_and_parts(tmp_path: Path) -> None:
    path = installed(tmp_path / "site", "example = example_extension:extension")
    assert ask(path) == ANSWER


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("missing_module:extension", "cannot be loaded: No module named 'missing_module'"),
        ("example_extension:OwnSettings", "example_extension:OwnSettings is not an Extension"),
    ],
)
def test_a_broken_extension_is_named_and_the_others_work(tmp_path: Path, value: str, reason: str) -> None:
    path = installed(tmp_path / "site", f"example = example_extension:extension\nbroken = {value}")
    assert ask(path) == {**ANSWER, "problems": {"broken": reason}}


# ---- the extension of docs/extensions.md ----------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "extensions.md"


def installed_from_the_page(folder: Path) -> str:
    """Write the package that the page shows as an installer would. Return the folder as a path for Python."""
    declaration, parts = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    [project] = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    [(name, value)] = tomllib.loads(project)["project"]["entry-points"]["memoriter.extensions"].items()
    path = installed(folder, f"{name} = {value}")
    (folder / "memoriter_example").mkdir()
    (folder / "memoriter_example" / "__init__.py").write_text(declaration, encoding="utf-8")
    (folder / "memoriter_example" / "parts.py").write_text(parts, encoding="utf-8")
    return path


def environment(path: str, home: Path) -> dict[str, str]:
    """Return the variables of a person with the packages in this path."""
    places = {"MEMORITER_HOME": str(home / "home"), "HOME": str(home), "USERPROFILE": str(home)}
    return {**SYSTEM, "PYTHONPATH": path, "MEMORITER_RESIDENT__ENABLED": "false", **places}


def run(path: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a workspace of its own, with the packages in this path and without a model."""
    return subprocess.run(
        [sys.executable, "-m", "memoriter", *arguments],
        env={**environment(path, home), "MEMORITER_EMBEDDING__PROVIDER": "none"},
        cwd=home / "notes",
        capture_output=True,
        text=True,
        check=False,
    )


RunPage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def page(
    tmp_path_factory: pytest.TempPathFactory, run_forked_with: Callable[[Mapping[str, str]], RunForked]
) -> tuple[str, RunForked]:
    """The path of the package that the page shows, and processes that have loaded it."""
    folder = tmp_path_factory.mktemp("page")
    path = installed_from_the_page(folder / "site")
    return path, run_forked_with(environment(path, folder))


@pytest.fixture
def run_page(page: tuple[str, RunForked], home: Path) -> RunPage:
    """Return a function that runs the command line with the package that the page shows."""
    path, run_forked = page

    def run_(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = run_forked(list(arguments), environment(path, home), b"", home / "notes")
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run_


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("The cat sleeps on the red sofa.\n", encoding="utf-8")
    return tmp_path


def test_the_vector_engine_of_the_page_answers_a_search(run_page: RunPage) -> None:
    assert run_page("config", "set", "index.vector_engine", "example").returncode == 0
    found = run_page("search", "where does the kitten nap", "--json")
    assert [hit["path"] for hit in json.loads(found.stdout)["results"]] == ["MEMORY.md"], found.stderr
    status = json.loads(run_page("status", "--json").stdout)
    assert (status["vectorEngine"], status["degraded"]) == ("example", None)


def test_the_importer_of_the_page_recognises_its_files(home: Path, run_page: RunPage) -> None:
    (home / "export.txt").write_text(
        "# Example\nAlice drinks green tea\n\nThe rent is due on the fifth\n", "utf-8"
    )
    imported = run_page("import", str(home / "export.txt"))
    assert (imported.returncode, imported.stderr) == (0, "")
    entries = json.loads(run_page("list", "--json").stdout)["entries"]
    assert {entry["text"] for entry in entries} == {"Alice drinks green tea", "The rent is due on the fifth"}


def test_the_reranker_of_the_page_orders_the_hits(home: Path, run_page: RunPage) -> None:
    long = "The cat sleeps on the red sofa in the warm living room beside the old piano all afternoon long."
    (home / "notes" / "MEMORY.md").write_text(
        f"# Long\n\n{long}\n\n# Short\n\nThe cat sleeps on the sofa.\n", "utf-8"
    )
    assert run_page("config", "set", "search.reranker", "example").returncode == 0
    found = json.loads(run_page("search", "cat sleeps on the sofa", "--json", "--explain").stdout)
    assert "The cat sleeps on the sofa." in found["results"][0]["snippet"]
    refused = run_page("config", "set", "search.reranker", "exampel")
    assert "Did you mean 'example'?" in refused.stderr


def test_the_host_of_the_page_is_connected_and_removed(home: Path, run_page: RunPage) -> None:
    assert run_page("install", "example", "--home", str(home)).stdout == f"{home / 'memory.json'}: written\n"
    assert json.loads((home / "memory.json").read_text("utf-8"))[-1] == "mcp"
    assert run_page("uninstall", "example", "--home", str(home)).stdout == "Removed.\n"
    assert not (home / "memory.json").exists()


def test_an_unknown_vector_engine_is_refused_with_the_one_that_was_probably_meant(run_page: RunPage) -> None:
    refused = run_page("config", "set", "index.vector_engine", "exmple")
    assert refused.returncode != 0
    assert "there is no such vector engine. Did you mean 'example'?" in " ".join(refused.stderr.split())


SEARCH = """
import json, memoriter

with memoriter.open(overrides={"memory.backend": "example"}) as memory:
    answer = memory.search("heron")
    print(json.dumps({"provider": answer.provider, "paths": [hit.path for hit in answer.hits]}))
"""


def test_the_engine_of_an_installed_package_answers(tmp_path: Path) -> None:
    path = installed(tmp_path / "site", "example = example_extension:extension")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "MEMORY.md").write_text("The heron nests in the marsh.\n", encoding="utf-8")
    places = {
        "WORKSPACE": str(tmp_path / "notes"),
        "HOME": str(tmp_path / "home"),
        "EMBEDDING__PROVIDER": "none",
    }
    environ = {f"MEMORITER_{name}": value for name, value in places.items()}
    assert ask(path, SEARCH, **environ) == {"provider": "example in notes", "paths": ["MEMORY.md"]}
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.md").write_text("A heron by the river.\n", encoding="utf-8")
    environ["MEMORITER_MEMORY__EXAMPLE__PATHS"] = str(tmp_path / "more")
    assert ask(path, SEARCH, **environ)["paths"] == ["MEMORY.md", f"{tmp_path.as_posix()}/more/a.md"]


# ---- a store --------------------------------------------------------------------------------------------------

TINY_STORE = """
from pathlib import Path
from memoriter.extension import Extension, Offer

extension = Extension(name="tiny", stores={"tiny": Offer("example_extension:open_store")})

def open_store(context):
    from memoriter.store.opening import FileStore

    server = Path(context.url.removeprefix("tiny://"))
    return FileStore({"entries": server / "entries.db", "items": server / "items.db"}, context.settings)
"""


def test_a_store_of_another_package_is_chosen_by_the_scheme_of_the_url(home: Path) -> None:
    path = installed(home / "site", "tiny = example_extension:extension", TINY_STORE)
    (home / "server").mkdir()
    url = f"tiny://{home / 'server'}"
    added = run(path, home, "--store", url, "add", "Alice drinks green tea")
    assert added.returncode == 0, added.stderr
    listed = run(path, home, "--store", url, "--home", str(home / "another"), "list", "--json")
    assert "Alice drinks green tea" in listed.stdout, listed.stderr
    assert (home / "server" / "entries.db").exists()


# ---- commands -------------------------------------------------------------------------------------------------

COMMANDS = """
import typer
from memoriter.extension import Extension, Offer

extension = Extension(name="tiny", commands={
    "greet": Offer("example_extension:greeting", group="Notes", summary="Greet the workspace."),
    "broken": Offer("missing_module:command", group="Notes", summary="Fail."),
})
greeting = typer.Typer()

@greeting.command()
def greet(context: typer.Context, name: str) -> None:
    typer.echo(f"{name}, the notes are in {context.obj.settings().workspace.name}.")
"""


def test_a_command_of_another_package_is_listed_loaded_on_use_and_suggested(home: Path) -> None:
    path = installed(home / "site", "tiny = example_extension:extension", COMMANDS)
    notes = run(path, home, "--help").stdout.partition("Notes:")[2].partition("Entries:")[0]
    assert "greet          Greet the workspace.\n" in notes
    assert run(path, home, "greet", "Alice").stdout == "Alice, the notes are in notes.\n"
    assert "Did you mean 'greet'" in run(path, home, "gret").stderr
    broken = run(path, home, "broken")
    assert broken.returncode == 2
    assert "broken cannot be loaded: No module named 'missing_module'." in broken.stderr
