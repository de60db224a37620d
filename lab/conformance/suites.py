"""The suites: where their tests come from, how they run, and which failures we keep for which reason."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from lab.harness.__main__ import gateway

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".tools" / "conformance"
CPU = "arm64" if platform.machine() in {"aarch64", "arm64"} else "x64"
#: Plugins of pytest that the suites use. They are not in our environment, because they change how our own tests run.
PLUGINS = ("pytest-asyncio", "pytest-mock", "respx")
#: An end of a test's name or a part of its message, and why the failure stays.
Reasons = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one suite."""

    suite: str
    version: str
    passed: int = 0
    #: How many failures each reason explains.
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: Sequence[str] = ()
    #: Why the suite did not run.
    skipped: str = ""

    def row(self) -> str:
        """Return the line of the table."""
        if self.skipped:
            return f"| {self.suite} | {self.version} | – | – | {self.skipped} |"
        reasons = [f"{count} × {reason}" for reason, count in self.explained.most_common()]
        why = "; ".join([*reasons, *(f"not explained: {one}" for one in self.unexplained)])
        failed = self.explained.total() + len(self.unexplained)
        return f"| {self.suite} | {self.version} | {self.passed} | {failed} | {why} |"


def _explain(failures: Sequence[tuple[str, str]], reasons: Reasons) -> tuple[Counter[str], list[str]]:
    """Return how many failures each reason explains, and the names of the others."""
    explained, others = Counter[str](), list[str]()
    for name, message in failures:
        reason = next((why for part, why in reasons if re.search(part, f"{name}\n{message}")), None)
        if reason is None:
            others.append(f"{name}: {message.strip().splitlines()[0][:160] if message.strip() else ''}")
        else:
            explained[reason] += 1
    return explained, others


@dataclass(frozen=True, slots=True)
class PytestSuite:
    """Tests for pytest, in the source distribution of a package or in a checkout below ``--sources``."""

    suite: str
    package: str
    #: Our module that puts our class in the place of theirs.
    stand_in: str
    tests: Sequence[str]
    reasons: Reasons = ()
    options: Sequence[str] = ()
    #: The repository, for suites that the source distribution does not contain.
    repository: str = ""
    #: The files of the repository that the tests need. Empty: all of them.
    files: Sequence[str] = ()
    #: Packages that the tests need and we do not.
    needs: Sequence[str] = ()
    #: Whether the package does not fit into our environment, so that the tests run in one of its own.
    apart: bool = False

    def run(self, sources: Path | None) -> Result:
        """Get the tests, run them in their own folder, and read the report."""
        if self.repository:
            checkout = _checkout(self.repository, sources, self.files)
            if checkout is None:
                missing = f"not run: needs a copy of {self.repository} (`--sources`)"
                return Result(self.suite, "–", skipped=missing)
            folder, day = checkout
            python = _environment(self.package) if self.apart else sys.executable
            number = f"{_version(python, self.package)}, tests of {day}"
        else:
            python, number = sys.executable, version(self.package)
            folder = _source_distribution(self.package, number)
        _install(TOOLS / "python", [*PLUGINS, *self.needs])
        report = TOOLS / f"{self.stand_in}.xml"
        command = [python, "-m", "pytest", "-q", "-p", f"lab.conformance.{self.stand_in}"]
        without = ["-p", "no:langsmith_plugin", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
        paths = os.pathsep.join([str(ROOT), str(TOOLS / "python")])
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run(
            [*command, *without, *self.options, "--timeout", "300", f"--junitxml={report}", *self.tests],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        return self._read(report, number)

    def _read(self, report: Path, number: str) -> Result:
        passed, failures = 0, list[tuple[str, str]]()
        for case in ElementTree.parse(report).iter("testcase"):
            problem = case.find("failure") if case.find("failure") is not None else case.find("error")
            if problem is not None:
                message = f"{problem.get('message', '')}\n{problem.text or ''}"
                failures.append((f"{case.get('classname')}.{case.get('name')}", message))
            elif case.find("skipped") is None:
                passed += 1
        explained, others = _explain(failures, self.reasons)
        return Result(self.suite, f"{self.package} {number}", passed, explained, others)


@dataclass(frozen=True, slots=True)
class McpSuite:
    """The conformance suite of MCP against our server, with the fixtures that it expects (`mcp_fixtures`)."""

    suite: str
    package: str
    reasons: Reasons = ()

    def run(self, _: Path | None) -> Result:
        """Start the server, run all scenarios, and read the outcome of each."""
        node = TOOLS / "mcp" / "node_modules" / "node" / "bin" / "node"
        program = TOOLS / "mcp" / "node_modules" / "@modelcontextprotocol" / "conformance"
        if not node.exists() or not program.exists():
            _install_node(TOOLS / "mcp", [self.package])
        number = json.loads((program / "package.json").read_text())["version"]
        server = subprocess.Popen(
            [sys.executable, "-m", "lab.conformance.mcp_fixtures"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            command = [
                str(node),
                str(program / "dist" / "index.js"),
                "server",
                "--url",
                url,
                "--suite",
                "all",
            ]
            ran = subprocess.run(command, cwd=TOOLS, capture_output=True, text=True, check=False)
        finally:
            server.terminate()
            server.wait(30)
        passed, failures = 0, list[tuple[str, str]]()
        for mark, name, ok, bad in re.findall(
            r"^(\S) ([\w-]+): (\d+) passed, (\d+) failed", ran.stdout, re.MULTILINE
        ):
            if mark == "✓":
                passed += ok != "0"  # a scenario without a check says nothing
            else:
                failures.append((name, f"{ok} checks passed, {bad} failed"))
        explained, others = _explain(failures, self.reasons)
        return Result(self.suite, f"{self.package} {number}", passed, explained, others)


@dataclass(frozen=True, slots=True)
class JestSuite:
    """mem0's integration tests of its own client, which need its service, against our gateway."""

    suite: str
    repository: str
    folder: str
    config: str
    needs: Sequence[str]
    reasons: Reasons = ()

    def run(self, sources: Path | None) -> Result:
        """Start a gateway, run the tests with its address, and read the report."""
        checkout = _checkout(self.repository, sources)
        if checkout is None:
            return Result(
                self.suite, "–", skipped=f"not run: needs a copy of {self.repository} (`--sources`)"
            )
        folder, day = checkout[0] / self.folder, checkout[1]
        modules = TOOLS / "jest" / "node_modules"
        if not (modules / "jest").exists():
            _install_node(TOOLS / "jest", self.needs)
        if not (folder / "node_modules").exists():
            (folder / "node_modules").symlink_to(modules)
        number = json.loads((folder / "package.json").read_text())["version"]
        report = TOOLS / "jest.json"
        report.unlink(missing_ok=True)
        with (
            tempfile.TemporaryDirectory(prefix="memoriter-conformance-") as home,
            gateway(Path(home)) as (address, token),
        ):
            environment = {
                **os.environ,
                "MEM0_API_KEY": token,
                "MEM0_BASE_URL": f"{address}/mem0",
                "MEM0_TELEMETRY": "false",
                "NODE_OPTIONS": f"--require {Path(__file__).with_name('mem0_address.cjs')}",
            }
            jest = [str(modules / "node" / "bin" / "node"), str(modules / "jest" / "bin" / "jest.js")]
            options = ["--config", self.config, "--forceExit", "--json", f"--outputFile={report}"]
            subprocess.run([*jest, *options], cwd=folder, env=environment, capture_output=True, check=False)
        passed, failures = 0, list[tuple[str, str]]()
        for file in json.loads(report.read_text())["testResults"]:
            for test in file["assertionResults"]:
                if test["status"] == "passed":
                    passed += 1
                else:
                    failures.append((test["fullName"], "\n".join(test["failureMessages"])))
        explained, others = _explain(failures, self.reasons)
        return Result(self.suite, f"mem0ai {number} ({day})", passed, explained, others)


@dataclass(frozen=True, slots=True)
class InspectorSuite:
    """OpenClaw's inspector of plugins: names and calls against a release, and a run of the plugin that records them."""

    suite: str
    package: str
    reasons: Reasons = ()

    def run(self, _: Path | None) -> Result:
        """Inspect our plugin as its package is, against the release that it names."""
        modules = TOOLS / "inspector" / "node_modules"
        if not (modules / self.package).exists():
            _install_node(TOOLS / "inspector", [self.package])
        number = json.loads((modules / self.package / "package.json").read_text())["version"]
        plugin = ROOT / "plugins" / "openclaw"
        release = json.loads((plugin / "package.json").read_text())["openclaw"]["build"]["openclawVersion"]
        out = TOOLS / "inspector" / "reports"
        program = [
            str(modules / "node" / "bin" / "node"),
            str(modules / self.package / "src" / "cli.js"),
            "ci",
        ]
        target = ["--plugin-root", str(plugin), "--openclaw-version", release, "--out", str(out)]
        subprocess.run(
            [*program, *target, "--runtime", "--mock-sdk", "--allow-execute"],
            check=False,
            stdout=subprocess.DEVNULL,
        )
        report = json.loads((out / "plugin-inspector-report.json").read_text())
        ran = json.loads((out / "plugin-inspector-runtime-capture.json").read_text())
        known = [
            name for log in report["logs"] if log["code"].endswith("-present") for name in log["evidence"]
        ]
        recorded = [one for entry in ran["results"] for one in entry["captured"]]
        findings = [*report["breakages"], *report["warnings"], *report["suggestions"]]
        explained, others = _explain([(one["code"], one["message"]) for one in findings], self.reasons)
        name = f"{self.package} {number}, OpenClaw {release}"
        return Result(self.suite, name, len(known) + len(recorded), explained, others)


@dataclass(frozen=True, slots=True)
class NoSuite:
    """A project whose tests cannot run against ours, and why."""

    suite: str
    why: str

    def run(self, _: Path | None) -> Result:
        """Return the reason."""
        return Result(self.suite, "–", skipped=f"not run: {self.why}")


def _install_node(folder: Path, packages: Sequence[str]) -> None:
    """Install packages of npm, and Node itself."""
    npm = ["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund"]
    node = f"node@npm:node-linux-{CPU}@24"
    subprocess.run([*npm, "--loglevel=error", *packages, node], check=True, stdout=subprocess.DEVNULL)


def _install(folder: Path, packages: Sequence[str]) -> None:
    """Install packages without their dependencies, which our environment has."""
    missing = [name for name in packages if not (folder / f".{name}").exists()]
    if missing:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--upgrade",
            "--target",
            str(folder),
        ]
        subprocess.run([*pip, *missing], check=True)
        for name in missing:
            (folder / f".{name}").touch()


def _environment(package: str) -> str:
    """Return the Python of the package's own environment, which `make frameworks` uses too."""
    folder = ROOT / ".tools" / "frameworks" / package
    python = str(folder / "bin" / "python")
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--editable", str(ROOT), "pytest", package], check=True)
    return python


def _version(python: str, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _source_distribution(package: str, number: str) -> Path:
    """Download and unpack the source distribution of the installed version. Return its folder."""
    name = f"{package.replace('-', '_')}-{number}"
    folder = TOOLS / "sources" / name
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]
        subprocess.run([*pip, "--dest", str(folder.parent), f"{package}=={number}"], check=True)
        with tarfile.open(folder.parent / f"{name}.tar.gz") as archive:
            archive.extractall(folder.parent, filter="data")
    return folder


def _checkout(repository: str, sources: Path | None, files: Sequence[str] = ()) -> tuple[Path, str] | None:
    """Return the files of a repository and the day of its last commit: a clone, or the bare `OWNER+NAME/repo`."""
    owner, _, name = repository.partition("/")
    places = [sources / name, sources / f"{owner}+{name}" / "repo"] if sources else []
    place = next((one for one in places if one.is_dir()), None)
    if place is None:
        return None
    folder = TOOLS / "sources" / name
    if not folder.exists():
        folder.mkdir(parents=True)
        archive = folder.with_suffix(".tar")
        command = ["git", "-C", str(place), "archive", f"--output={archive}", "HEAD", *files]
        subprocess.run(command, check=True)
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        archive.unlink()
    command = ["git", "-C", str(place), "log", "-1", "--format=%cs"]
    return folder, subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


OWN_DATABASE = "tests the SQLite database inside their class, which ours does not have"
MARKDOWN = "our notes are Markdown: the name in the message ends with .md"
LINKS = "ours follows no link, refuses it in other words, and does not list it"
INSIDE = "replaces a private method or a call of their implementation"

HOSTED = "settings and webhooks of a hosted project, which a memory on your machine does not have"

SUITES: dict[str, PytestSuite | McpSuite | JestSuite | InspectorSuite | NoSuite] = {
    "mcp": McpSuite(
        "MCP, all scenarios for servers, over HTTP (it has none for stdio)",
        "@modelcontextprotocol/conformance",
        reasons=[
            (r"sampling|elicitation", "the server never asks the client, so it needs no sessions"),
            (r"logging|subscribe", "optional, and we do not declare it"),
        ],
    ),
    "langgraph": PytestSuite(
        "LangGraph store", "langgraph-checkpoint", "langgraph_store", ["tests/test_store.py"]
    ),
    "anthropic": PytestSuite(
        "Anthropic memory tool",
        "anthropic",
        "anthropic_memory_tool",
        ["tests/lib/tools/memory_tools"],
        reasons=[
            (r"test_create|test_rename|already_exists", MARKDOWN),
            (r"_validate_path|_ensure_memory_root|replaced_with_symlink_before_open", INSIDE),
            (r"symlink", LINKS),
            (r"crlf", "writes a .txt file beside the tool; ours looks for notes in Markdown"),
        ],
        options=["--noconftest", "-n", "0"],
    ),
    "openai-agents": PytestSuite(
        "OpenAI Agents session",
        "openai-agents",
        "openai_session",
        ["tests/memory/test_session.py", "tests/memory/test_session_limit.py"],
        reasons=[
            (r"cannot be written as JSON", "an item that is not JSON is refused with our own error"),
            (r"has no attribute '_|sqlite3\.|_sqlite_session_(close|reaps|closed|keeps)", OWN_DATABASE),
        ],
    ),
    "pydantic-ai": NoSuite(
        "pydantic-ai", "its tests are about its own classes; none runs on another's toolset or capability"
    ),
    "google-adk": PytestSuite(
        "Google ADK memory service",
        "google-adk",
        "adk_memory",
        ["tests/unittests/memory/test_in_memory_memory_service.py"],
        reasons=[(r"has no attribute '_session_events'", "reads a private dictionary of their class")],
        repository="google/adk-python",
        files=[
            "pyproject.toml",
            "tests/__init__.py",
            "tests/unittests/conftest.py",
            "tests/unittests/memory",
        ],
        apart=True,
    ),
    "openclaw": InspectorSuite(
        "OpenClaw's plugin inspector on our plugin",
        "@openclaw/plugin-inspector",
        reasons=[
            (r"conversation-access-hook", "wants tests of its own for every hook that reads conversations"),
            (r"missing-compat-record", "asks OpenClaw to record that hook in its list of compatibility"),
        ],
    ),
    "openclaw-contract": NoSuite(
        "OpenClaw's `describePluginRegistrationContract`",
        "no package has it; its documentation says it is for plugins inside OpenClaw's repository",
    ),
    "mem0": JestSuite(
        "mem0's client (its integration tests) on our mem0 API",
        "mem0ai/mem0",
        "mem0-ts",
        "jest.integration.config.js",
        needs=[
            *("jest@29", "ts-jest@29", "typescript@5.5.4", "@types/node@22", "@types/jest@29", "dotenv@16"),
            *("axios@1", "openai@4", "uuid@11", "zod@3"),
        ],
        reasons=[(r"project management|webhook management", HOSTED)],
    ),
}
