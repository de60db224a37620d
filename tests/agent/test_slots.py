"""Other packages fill the slot: by an entry point of an installed distribution, as pip would leave it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from talk import TEA, said

from memoriter.agent import Agent, Effect, known_plugins
from memoriter.config import load

OpenHost = Callable[..., Agent]
Install = Callable[..., Path]

BIRDS = '''
"""A plugin of somebody else's: it answers with one tool's own words, and counts what it is told."""

from memoriter.tools.toolbox import Toolbox
from memoriter.agent import Effect


class Birds:
    name = "memory-birds"
    tools = ("memory_search", "memory_store")

    def register(self, bus, service):
        self.toolbox = Toolbox(service.memory, names=self.tools)
        bus.on("before_agent_start", self.recall, name=self.name, deadline_s=5)
        bus.on("agent_end", self.listen, name=self.name)

    def recall(self, moment):
        found = self.toolbox.call("memory_search", {"query": moment.prompt, "maxResults": 1})
        return Effect("\\n".join(hit["snippet"] for hit in found["results"]), tools=tuple(self.toolbox.tools))

    def listen(self, moment):
        said = [message["content"] for message in moment.messages if message["role"] == "user"]
        for text in said:
            self.toolbox.call("memory_store", {"text": text, "category": "fact"})
        return Effect(warnings=(f"{len(said)} heard",))


birds = Birds()


def broken():
    raise RuntimeError("the nest is empty")


class NoPlugin:
    name = "half"


class WrongTools(Birds):
    tools = ["memory_search"]


class FailsToRegister(Birds):
    def register(self, bus, service):
        bus.on("agent_begin", self.listen, name=self.name)
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a distribution that offers these names; returns the folder that it lies in."""

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
    open_host: OpenHost, install: Install, target: str
) -> None:
    install(memory_birds=target)
    host = open_host("memory-birds")
    assert (host.error, host.tools) == (None, ("memory_search", "memory_store"))
    assert said(host, "agent_end", *TEA) == Effect(warnings=("1 heard",))
    told = said(host, "before_agent_start", prompt="tea or coffee")
    assert told.prepend_context.startswith("I prefer tea over coffee.")
    assert told.tools == host.tools
    assert said(host, "session_end", *TEA) == Effect()


def test_what_it_stored_is_found_when_it_is_gone(open_host: OpenHost, install: Install) -> None:
    install(memory_birds="memory_birds:Birds")
    with open_host("memory-birds") as host:
        said(host, "agent_end", *TEA)
    assert (
        "tea over coffee"
        in said(open_host("memory-full"), "before_agent_start", prompt="tea?").prepend_context
    )


def test_names_that_other_packages_offer_are_known(install: Install, workspace: Path, tmp_path: Path) -> None:
    assert known_plugins() == ("memory-core", "memory-lancedb", "memory-full", "none")
    install(memory_birds="memory_birds:Birds", memory_core="memory_birds:Birds")
    assert known_plugins() == ("memory-core", "memory-lancedb", "memory-full", "none", "memory-birds")
    given = {"workspace": workspace, "home": tmp_path / "state", "plugins.slots.memory": "memory-bird"}
    host = Agent.open(overrides=given)
    assert host.error == (
        "plugins.slots.memory = 'memory-bird' from --memory: "
        "must be one of memory-core, memory-lancedb, memory-full, none, memory-birds"
    )


def test_nobody_can_take_one_of_our_names(open_host: OpenHost, install: Install) -> None:
    install(memory_core="memory_birds:Birds")
    assert open_host("memory-core").tools == ("memory_search", "memory_get", "memory_save", "memory_stats")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("memory_birds:broken", "cannot be loaded: RuntimeError: the nest is empty"),
        (
            "memory_birds:Missing",
            "cannot be loaded: AttributeError: module 'memory_birds' has no attribute 'Missing'",
        ),
        ("no_such_birds:Birds", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_birds'"),
        ("memory_birds:NoPlugin", "is no plugin: it needs a name, tools and register."),
        ("memory_birds:WrongTools", "is no plugin: its tools must be a tuple of names."),
    ],
)
def test_a_plugin_that_cannot_be_used_is_one_sentence_and_the_host_goes_on(
    open_host: OpenHost, install: Install, target: str, sentence: str
) -> None:
    install(memory_odd=target)
    host = open_host("memory-odd")
    assert host.error == f"The memory plugin 'memory-odd' ({target}) {sentence}"
    assert said(host, "agent_end", *TEA) == Effect(warnings=(host.error,))


def test_a_plugin_that_cannot_register_is_one_sentence(open_host: OpenHost, install: Install) -> None:
    install(memory_odd="memory_birds:FailsToRegister")
    host = open_host("memory-odd")
    assert host.error
    assert host.error.startswith("ValueError: There is no event 'agent_begin'")
    assert host.tools == ()


def test_what_is_installed_is_not_looked_at_for_a_name_of_ours(
    monkeypatch: pytest.MonkeyPatch, workspace: Path
) -> None:
    """Reading the metadata of everything that is installed takes longer than many a command."""

    def refuse(**_: object) -> None:
        raise AssertionError("the installed packages were looked at")

    monkeypatch.setattr(metadata, "entry_points", refuse)
    for slot in ("memory-core", "memory-lancedb", "memory-full", "none"):
        settings = load(arguments={"workspace": workspace, "plugins.slots.memory": slot})
        assert settings.plugins.slots.memory == slot


def test_the_owner_names_it_in_the_settings_file_and_the_command_line_works(
    install: Install, workspace: Path, tmp_path: Path
) -> None:
    site = install(memory_birds="memory_birds:Birds")
    config = tmp_path / "config.yaml"
    config.write_text(
        "plugins: {slots: {memory: memory-birds}}\nembedding: {provider: none}\n", encoding="utf-8"
    )
    (workspace / "memory/a.md").write_text("The heron stands in the marsh.", encoding="utf-8")
    places = ["--workspace", str(workspace), "--home", str(tmp_path / "state"), "--config", str(config)]
    command = [sys.executable, "-m", "memoriter", *places, "search", "heron"]

    def run(path: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": path}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=60
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
