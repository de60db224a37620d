"""Plugins of other packages: the entry point of an installed distribution fills the slot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from talk import TEA, emit

from memoriter.agent import Agent, Effect, known_plugins
from memoriter.config import load

OpenAgent = Callable[..., Agent]
Install = Callable[..., Path]

BIRDS = '''
"""A plugin of another package: it recalls with a tool and counts what it stores."""

from memoriter import Effect, Toolbox


class Birds:
    name = "memory-birds"
    tools = ("memory_search", "memory_store")

    def register(self, bus, service):
        self.toolbox = Toolbox(service.memory, names=self.tools)
        bus.on("before_agent_start", self.recall, name=self.name, deadline_s=5)
        bus.on("agent_end", self.store, name=self.name)

    def recall(self, moment):
        found = self.toolbox.call("memory_search", {"query": moment.prompt, "maxResults": 1})
        return Effect("\\n".join(hit["snippet"] for hit in found["results"]), tools=tuple(self.toolbox.tools))

    def store(self, moment):
        texts = [message["content"] for message in moment.messages if message["role"] == "user"]
        for text in texts:
            self.toolbox.call("memory_store", {"text": text, "category": "fact"})
        return Effect(warnings=(f"{len(texts)} stored",))


birds = Birds()


def broken():
    raise RuntimeError("the nest is empty")


class NoPlugin:
    name = "half"


class WrongTools(Birds):
    tools = ["memory_search"]


class FailsToRegister(Birds):
    def register(self, bus, service):
        bus.on("agent_begin", self.store, name=self.name)
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a distribution with these entry points and returns its folder."""

    def install_(**offered: str) -> Path:
        site = tmp_path / "site"
        info = site / "memory_birds-1.0.dist-info"
        info.mkdir(parents=True)
        (site / "memory_birds.py").write_text(BIRDS, encoding="utf-8")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: memory-birds\nVersion: 1.0\n", "utf-8")
        points = "".join(f"{name.replace('_', '-')} = {target}\n" for name, target in offered.items())
        (info / "entry_points.txt").write_text(f"[memoriter.memory]\n{points}", encoding="utf-8")
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.delitem(sys.modules, "memory_birds", raising=False)
        return site

    return install_


@pytest.mark.parametrize("target", ["memory_birds:Birds", "memory_birds:birds"])
def test_another_package_fills_the_slot_and_uses_the_tools(
    open_agent: OpenAgent, install: Install, target: str
) -> None:
    install(memory_birds=target)
    agent = open_agent("memory-birds")
    assert (agent.error, agent.tools) == (None, ("memory_search", "memory_store"))
    assert emit(agent, "agent_end", *TEA) == Effect(warnings=("1 stored",))
    recalled = emit(agent, "before_agent_start", prompt="tea or coffee")
    assert recalled.prepend_context.startswith("I prefer tea over coffee.")
    assert recalled.tools == agent.tools
    assert emit(agent, "session_end", *TEA) == Effect()


def test_what_a_plugin_stored_is_found_after_it_is_uninstalled(
    open_agent: OpenAgent, install: Install
) -> None:
    install(memory_birds="memory_birds:Birds")
    with open_agent("memory-birds") as agent:
        emit(agent, "agent_end", *TEA)
    assert (
        "tea over coffee"
        in emit(open_agent("memory-full"), "before_agent_start", prompt="tea?").prepend_context
    )


def test_names_that_other_packages_offer_are_known(install: Install, workspace: Path, tmp_path: Path) -> None:
    assert known_plugins() == ("memory-core", "memory-lancedb", "memory-full", "none")
    install(memory_birds="memory_birds:Birds", memory_core="memory_birds:Birds")
    assert known_plugins() == ("memory-core", "memory-lancedb", "memory-full", "none", "memory-birds")
    given = {"workspace": workspace, "home": tmp_path / "state", "plugins.slots.memory": "memory-bird"}
    agent = Agent.open(overrides=given)
    assert agent.error == (
        "The setting plugins.slots.memory = 'memory-bird' from overrides is not valid: "
        "it must be one of memory-core, memory-lancedb, memory-full, none, memory-birds."
    )


def test_builtin_names_cannot_be_replaced(open_agent: OpenAgent, install: Install) -> None:
    install(memory_core="memory_birds:Birds")
    assert open_agent("memory-core").tools == ("memory_search", "memory_get", "memory_save", "memory_stats")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("memory_birds:broken", "cannot be loaded: RuntimeError: the nest is empty"),
        (
            "memory_birds:Missing",
            "cannot be loaded: AttributeError: module 'memory_birds' has no attribute 'Missing'",
        ),
        ("no_such_birds:Birds", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_birds'"),
        ("memory_birds:NoPlugin", "is not a plugin: it needs a name, tools and register."),
        ("memory_birds:WrongTools", "is not a plugin: its tools must be a tuple of names."),
    ],
)
def test_an_unusable_plugin_gives_an_error_and_the_host_continues(
    open_agent: OpenAgent, install: Install, target: str, sentence: str
) -> None:
    install(memory_odd=target)
    agent = open_agent("memory-odd")
    assert agent.error == f"The memory plugin 'memory-odd' ({target}) {sentence}"
    assert emit(agent, "agent_end", *TEA) == Effect(warnings=(agent.error,))


def test_a_plugin_that_cannot_register_gives_an_error(open_agent: OpenAgent, install: Install) -> None:
    install(memory_odd="memory_birds:FailsToRegister")
    agent = open_agent("memory-odd")
    assert agent.error
    assert agent.error.startswith("ValueError: Unknown event 'agent_begin'")
    assert agent.tools == ()


def test_installed_packages_are_not_searched_for_builtin_names(
    monkeypatch: pytest.MonkeyPatch, workspace: Path
) -> None:
    """Reading the metadata of all installed packages takes longer than many commands."""

    def refuse(**_: object) -> None:
        raise AssertionError("the installed packages were looked at")

    monkeypatch.setattr(metadata, "entry_points", refuse)
    for slot in ("memory-core", "memory-lancedb", "memory-full", "none"):
        settings = load(arguments={"workspace": workspace, "plugins.slots.memory": slot})
        assert settings.plugins.slots.memory == slot


def test_a_plugin_named_in_the_settings_file_works_with_the_command_line(
    install: Install, workspace: Path, tmp_path: Path
) -> None:
    site = install(memory_birds="memory_birds:Birds")
    config = tmp_path / "config.yaml"
    config.write_text(
        "plugins: {slots: {memory: memory-birds}}\nembedding: {provider: none}\n", encoding="utf-8"
    )
    (workspace / "memory/a.md").write_text("The heron stands in the marsh.", encoding="utf-8")
    (tmp_path / "state").mkdir()
    places = ["--workspace", str(workspace), "--home", str(tmp_path / "state"), "--config", str(config)]
    command = [sys.executable, "-m", "memoriter", *places, "search", "heron"]

    def run(path: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYTHONPATH": path,
            "MEMORITER_RESIDENT__ENABLED": "false",
        }
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=600
        )

    found = run(str(site))
    assert (found.returncode, found.stderr) == (0, "")
    assert "memory/a.md" in found.stdout
    unknown = run("")
    assert unknown.returncode != 0
    assert "must be one of memory-core, memory-lancedb, memory-full, none" in unknown.stderr.replace(
        "\n", " "
    )
    assert "Traceback" not in unknown.stderr
