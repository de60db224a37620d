"""Shared fixtures: an isolated home, a clean environment, and no model unless a test asks for one."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import certifi
import hypothesis
import pytest
import typer.testing
from postgres_cluster import PostgresCluster, shared_cluster

from memoriter import Memory
from memoriter.embedding import Embedder
from memoriter.testing import HashEmbedder

if TYPE_CHECKING:
    from memoriter.extensions.postgres.database import PostgresDatabase

OpenDatabase = Callable[..., "PostgresDatabase"]

PREFIXES = (
    "MEMORITER_",
    "MEMORY_DIR",
    "STORAGE_DIR",
    "OLLAMA_",
    "OPENAI_",
    "GEMINI_",
    "GOOGLE_",
    "VOYAGE_",
    "PINECONE_",
)
KEPT_VARIABLES = ("MEMORITER_SOAK", "MEMORITER_TEST_MODEL")

# Every run tests the same examples, however busy the machine is. `make soak` looks for new ones.
_SOAK_PROFILE = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("soak", _SOAK_PROFILE)
hypothesis.settings.load_profile("soak" if os.environ.get("MEMORITER_SOAK") else "ci")

# Building the commands of the program takes longer than most of them.
typer.testing._get_command = functools.cache(typer.testing._get_command)


# A shell ignores interrupts in what it runs in the background, and programs inherit that. Some tests send interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Collecting tests creates a million objects that stay. Looking for garbage among them takes seconds in every worker.
gc.disable()

_ONLY_INTEGRATION = re.compile(r"^pytestmark = (?:\[[^\]]*?)?pytest\.mark\.integration", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip modules that have only integration tests in a run without them: some load torch or a browser driver."""
    if "not integration" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return True if _ONLY_INTEGRATION.search(collection_path.read_text("utf-8")) else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests of what Windows does not have."""
    marker = item.get_closest_marker("posix")
    if marker and sys.platform == "win32":
        pytest.skip(f"not on Windows: {marker.args[0]}")


if sys.platform == "win32":
    _TESTS = str(Path(__file__).with_name("tests"))
    _read_text, _write_text = Path.read_text, Path.write_text

    # Tests mean the same bytes on every system. The package itself has to name the encoding and the end of a line.
    def read_text(self: Path, encoding: str | None = None, errors: str | None = None) -> str:
        is_test = sys._getframe(1).f_code.co_filename.startswith(_TESTS)
        return _read_text(self, encoding or ("utf-8" if is_test else None), errors)

    def write_text(
        self: Path,
        data: str,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> int:
        if sys._getframe(1).f_code.co_filename.startswith((_TESTS, __file__)):
            encoding, newline = encoding or "utf-8", newline or "\n"
        return _write_text(self, data, encoding, errors, newline)

    Path.read_text, Path.write_text = read_text, write_text  # type: ignore[method-assign]

    _symlink_to = Path.symlink_to

    # Windows lets administrators and developers make links; Wine says that it has made one, and has not.
    def symlink_to(self: Path, target: Path | str, target_is_directory: bool = False) -> None:
        with contextlib.suppress(OSError):
            _symlink_to(self, target, target_is_directory or (self.parent / target).is_dir())
        if sys._getframe(1).f_code.co_filename.startswith(_TESTS) and not self.is_symlink():
            pytest.skip("not on Windows: this user makes no symbolic links")

    Path.symlink_to = symlink_to  # type: ignore[method-assign]


def pytest_collection_finish() -> None:
    """Exclude the loaded modules from garbage collection. A full collection takes a second otherwise."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)  # the default of Python 3.11 takes a twentieth of the time
    gc.enable()


@pytest.fixture(scope="session")
def new_home(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Return a function that creates an empty home. `mktemp` would list the homes of all tests before, every time."""
    folder, numbers = tmp_path_factory.mktemp("homes"), itertools.count()

    def create() -> Path:
        home = folder / str(next(numbers))
        home.mkdir()
        return home

    return create


@pytest.fixture(scope="session", autouse=True)
def _no_resident_process() -> Iterator[None]:
    """Start no process that outlives the tests, also from fixtures that a whole module shares."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("MEMORITER_RESIDENT__ENABLED", "false")
        yield


@pytest.fixture(scope="session")
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one certificate authority. A client of HTTP reads all of them in 50 ms, also for `http://`."""
    first, end, _ = Path(certifi.where()).read_text("ascii").partition("-----END CERTIFICATE-----")
    file = tmp_path_factory.mktemp("authorities") / "one.pem"
    file.write_text(f"{first}{end}\n", "ascii")
    return file


@pytest.fixture(autouse=True)
def clean_environment(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    new_home: Callable[[], Path],
    one_authority: Path,
) -> None:
    """Isolate tests from the settings and memories of the person who runs them."""
    if request.node.get_closest_marker("integration") is None:  # those run other programs, which may download
        monkeypatch.setenv("SSL_CERT_FILE", str(one_authority))
    for name in list(os.environ):
        if name.startswith(PREFIXES) and name not in KEPT_VARIABLES:
            monkeypatch.delenv(name)
    home = str(new_home())
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("USERPROFILE", home)  # the same on Windows
    # Tests of the resident process switch it on and stop it.
    monkeypatch.setenv("MEMORITER_RESIDENT__ENABLED", "false")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace."""
    root = tmp_path / "workspace"
    (root / "memory").mkdir(parents=True)
    return root


@pytest.fixture
def note(workspace: Path) -> Callable[[str, str], Path]:
    """Return a function that writes a note into the workspace."""

    def write(path: str, text: str) -> Path:
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return write


OpenMemory = Callable[..., Memory]


@pytest.fixture
def open_memory(workspace: Path, tmp_path: Path) -> Iterator[OpenMemory]:
    """Return a function that opens the memory of the workspace, by default without a model; close all at the end."""
    memories: list[Memory] = []

    def open_(embedder: Embedder | None = None, **overrides: object) -> Memory:
        settings = {key.replace("__", "."): value for key, value in overrides.items()}
        if embedder is None and "embedding.provider" not in settings:
            embedder = HashEmbedder()
        settings.setdefault("search.rerank", False)
        memory = Memory.open(workspace, home=tmp_path / "state", embedder=embedder, overrides=settings)
        memories.append(memory)
        return memory

    yield open_
    for memory in memories:
        memory.close()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[PostgresCluster]:
    """One real Postgres server for the session, shared by all workers. A test uses a tenant of its own on it."""
    if sys.platform == "win32":
        pytest.skip("not on Windows: a Postgres server that tests start")
    alone = worker_id == "master"
    folder = tmp_path_factory.getbasetemp() if alone else tmp_path_factory.getbasetemp().parent
    with shared_cluster(folder / "postgres.json") as cluster:
        yield cluster


@pytest.fixture
def postgres_database(postgres: PostgresCluster) -> Iterator[OpenDatabase]:
    """Return a function that opens the rows of an agent, by default of a new tenant. Close all at the end."""
    from memoriter.extensions.postgres.database import PostgresDatabase
    from memoriter.extensions.postgres.server import open_server

    tenant = uuid.uuid4().hex
    databases: list[PostgresDatabase] = []

    def open_(
        agent: str = "main", *, tenant: str = tenant, url: str = postgres.url, area: str = "entries"
    ) -> PostgresDatabase:
        databases.append(PostgresDatabase(open_server(url), agent=agent, tenant=tenant, area=area))
        return databases[-1]

    yield open_
    for database in databases:
        database.close()


RunForked = Callable[..., subprocess.CompletedProcess[bytes]]


class ForkServer:
    """A process that has loaded everything and runs each command in a fork of it.

    It has a session of its own, so that a test that ends a group of processes does not end it. If it has ended, the
    next command starts another one. ``environment`` is the one in which it loads, such as with a path of packages.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment
        self._server: subprocess.Popen[bytes] | None = None

    def _start(self) -> subprocess.Popen[bytes]:
        if self._server is None or self._server.poll() is not None:
            self.close()
            command = [sys.executable, str(Path(__file__).with_name("tests") / "fork_server.py")]
            self._server = subprocess.Popen(
                command,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        return self._server

    def run(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        data: bytes = b"",
        cwd: Path | None = None,
        terminal: str = "",
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the command line with these arguments."""
        call = {
            "terminal": terminal,
            "arguments": arguments,
            "data": data.hex(),
            "environment": dict(environment),
            "cwd": str(cwd or Path.cwd()),
        }
        server = self._start()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(call).encode() + b"\n")
        server.stdin.flush()
        result = json.loads(server.stdout.readline())
        output, error = bytes.fromhex(result["output"]), bytes.fromhex(result["error"])
        return subprocess.CompletedProcess(arguments, result["code"], output, error)

    def close(self) -> None:
        """End the process."""
        if self._server is not None:
            with contextlib.suppress(BrokenPipeError), self._server as server:
                assert server.stdin is not None
                server.stdin.close()
            self._server = None


def _run_process(
    arguments: list[str], environment: Mapping[str, str], data: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a process, where the system cannot fork."""
    command = [sys.executable, "-m", "memoriter", *arguments]
    return subprocess.run(
        command, input=data, capture_output=True, env=dict(environment), cwd=cwd, check=False
    )


@contextlib.contextmanager
def forking(environment: Mapping[str, str] | None = None) -> Iterator[RunForked]:
    """Return a function that runs the command line in a fork of a process that has loaded everything."""
    if not hasattr(os, "fork"):
        yield _run_process
        return
    server = ForkServer(environment)
    yield server.run
    server.close()


@pytest.fixture(scope="session")
def run_forked() -> Iterator[RunForked]:
    """Run the command line in a fork of a process that has loaded everything, because imports take most of the time."""
    with forking() as run:
        yield run


@pytest.fixture(scope="module")
def run_forked_with() -> Iterator[Callable[[Mapping[str, str]], RunForked]]:
    """Return a function that gives such a ``run_forked`` for processes that load in this environment."""
    with contextlib.ExitStack() as stack:
        yield lambda environment: stack.enter_context(forking(environment))
