"""The real Codex with the configuration that we print and document: it gets the tools and calls them.

`make integration` installs it under `.tools/codex`. Its model is scripted, and it has its own home.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from openai_api import Body, Call, OpenAiApi, Say, serving

from memoriter import __version__

CODEX = (
    Path(__file__).parents[2]
    / ".tools/codex/node_modules/codex/vendor"
    / f"{platform.machine()}-unknown-linux-musl"
    / "bin/codex"
)
MEMORITER = Path(sys.executable).with_name("memoriter")
IN_CI = bool(os.environ.get("CI"))

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not IN_CI and not CODEX.exists(), reason="no Codex under .tools; run `make integration`"
    ),
]

TOOLS = ["memory_get", "memory_save", "memory_search", "memory_stats"]


@dataclass(frozen=True)
class Codex:
    """The program with its own home."""

    home: Path
    notes: Path
    api: OpenAiApi

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "CODEX_HOME": str(self.home / ".codex")}

    @property
    def memoriter(self) -> list[str]:
        return [str(MEMORITER), "--workspace", str(self.notes), "--home", str(self.home / "memoriter")]

    def configure(self, server: str) -> None:
        settings = self.home / ".codex" / "config.toml"
        settings.parent.mkdir(exist_ok=True)
        base = f"""
            model = "scripted"
            model_provider = "scripted"
            [model_providers.scripted]
            name = "scripted"
            base_url = "{self.api.url}"
            wire_api = "responses"
            """
        settings.write_text(f"{textwrap.dedent(base)}\n{server}\n", "utf-8")

    def run(self, *arguments: str, **more: str) -> str:
        done = subprocess.run(
            [str(CODEX), *arguments],
            env={**self.environment, **more},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, text: str, **more: str) -> list[dict[str, Any]]:
        """Run one prompt without a person; return the printed events."""
        output = self.run("exec", "--skip-git-repo-check", "--json", text, **more)
        return [json.loads(line) for line in output.splitlines()]

    @contextmanager
    def gateway(self) -> Iterator[tuple[str, str]]:
        """Run a gateway; return its address and a token."""
        environment = {**os.environ, "HOME": str(self.home)}
        created = [*self.memoriter, "token", "create", "--access", "write", "--name", "codex", "--json"]
        token = subprocess.run(created, env=environment, capture_output=True, text=True, check=True).stdout
        with subprocess.Popen(
            [*self.memoriter, "serve", "--port", "0"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as served:
            assert served.stdout is not None
            try:
                lines = iter(served.stdout.readline, "")
                address = next(
                    found[0] for line in lines if (found := re.search(r"http://127\.0\.0\.1:\d+", line))
                )
                yield address, json.loads(token)["token"]
            finally:
                served.terminate()
                served.wait(300)


@pytest.fixture
def codex(tmp_path: Path) -> Iterator[Codex]:
    home, notes = tmp_path / "home", tmp_path / "notes"
    home.mkdir()
    notes.mkdir()
    (notes / "MEMORY.md").write_text("# Memory\n\n- The backup goes to the bucket heron.\n")
    with serving() as api:
        api.model = searching_and_saving
        yield Codex(home, notes, api)


def searching_and_saving(body: Body) -> Sequence[Say | Call]:
    """A model that searches the memory, saves a note, and answers."""
    answered = sum(item.get("type") == "function_call_output" for item in body["input"])
    steps: list[Say | Call] = [
        Call("memory_search", {"query": "bucket of the backup"}, "mcp__memoriter"),
        Call("memory_save", {"content": "Anna prefers tea."}, "mcp__memoriter"),
        Say("It is heron."),
    ]
    return [steps[answered]]


def offered(body: Body) -> list[str]:
    """Return the names of our tools in a request."""
    return [
        tool["name"]
        for space in body["tools"]
        if space.get("name") == "mcp__memoriter"
        for tool in space["tools"]
    ]


def tool_results(body: Body) -> list[Any]:
    """Return the tool results as the model reads them."""
    outputs = [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
    return [json.loads(output.partition("Output:\n")[2]) for output in outputs]


def assert_the_memory_was_used(codex: Codex, events: list[dict[str, Any]]) -> None:
    first, _, last = codex.api.requests
    assert offered(first) == TOOLS  # in the first request
    assert "look into your memory" in json.dumps(first["tools"])  # the server's instructions
    found, saved = tool_results(last)
    assert [(hit["citation"], "bucket heron" in hit["snippet"]) for hit in found["results"]] == [
        ("MEMORY.md#L1-L3", True)
    ]
    assert "Anna prefers tea." in (codex.notes / saved["path"]).read_text("utf-8")
    messages = [
        event["item"]["text"] for event in events if event.get("item", {}).get("type") == "agent_message"
    ]
    assert messages == ["It is heron."]


def test_codex_uses_the_memory_with_the_printed_configuration(codex: Codex) -> None:
    printing = [*codex.memoriter, "mcp", "--print-config", "codex"]
    codex.configure(subprocess.run(printing, capture_output=True, text=True, check=True).stdout)
    (server,) = json.loads(codex.run("mcp", "list", "--json"))
    started = [server["transport"]["command"], *server["transport"]["args"]]
    assert (server["name"], server["enabled"], started) == ("memoriter", True, [*codex.memoriter, "mcp"])
    assert_the_memory_was_used(codex, codex.ask("Which bucket has the backup?"))


def test_codex_uses_the_memory_through_a_running_gateway(codex: Codex) -> None:
    with codex.gateway() as (address, token):
        codex.configure(
            f'[mcp_servers.memoriter]\nurl = "{address}/mcp"\nbearer_token_env_var = "MEMORITER_TOKEN"\n'
            "required = true\nstartup_timeout_sec = 300"
        )
        assert_the_memory_was_used(codex, codex.ask("Which bucket has the backup?", MEMORITER_TOKEN=token))


def context_of(body: Body) -> str:
    """Return what hooks added to the prompt."""
    developer = [item for item in body["input"] if item.get("role") == "developer"]
    return "\n".join(part["text"] for item in developer for part in item["content"])


def test_codex_recalls_and_captures_with_the_hooks_that_we_install(codex: Codex) -> None:
    codex.configure("")
    settings = codex.home / ".codex"
    before = {path.name: path.read_bytes() for path in settings.iterdir()}
    environment = {**os.environ, **codex.environment}

    def memoriter(*arguments: str) -> str:
        command = [*codex.memoriter, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(text: str) -> Body:
        codex.run("exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-hook-trust", text)
        return codex.api.requests[-1]

    memoriter("install", "codex")
    codex.api.model = lambda body: [Say("Noted.")]
    ask("I prefer tabs over spaces in all my Go code.")
    memoriter("process-queue")
    listed = json.loads(memoriter("list", "--json"))
    assert [entry["text"] for entry in listed["entries"]] == ["I prefer tabs over spaces in all my Go code."]
    context = context_of(ask("Do I prefer tabs or spaces in Go code?"))
    assert "I prefer tabs over spaces in all my Go code." in context
    assert "`mcp__memoriter__memory_search`" in context
    (host,) = [one for one in json.loads(memoriter("hosts", "--json"))["hosts"] if one["host"] == "codex"]
    assert host["state"] == "connected"
    assert host["recalled"] and host["captured"]  # noqa: PT018
    memoriter("uninstall", "codex")
    assert {path.name: path.read_bytes() for path in settings.iterdir() if path.name in before} == before
    assert not (settings / "hooks.json").exists()


def searching_when_ready(body: Body) -> Sequence[Say | Call]:
    """A model that waits for the memory's tools, searches once, and answers. A plugin's server is not `required`."""
    if not offered(body):
        return [Call("list_mcp_resources", {"server": "memoriter"})]
    if not any(item.get("name") == "memory_search" for item in body["input"]):
        return [Call("memory_search", {"query": "bucket of the backup"}, "mcp__memoriter")]
    return [Say("It is heron.")]


def test_codex_installs_the_plugin_of_a_clone_and_uses_it(codex: Codex) -> None:
    (codex.home / ".memoriter").mkdir()
    (codex.home / ".memoriter" / "config.yaml").write_text(f"workspace: {codex.notes}\n", "utf-8")
    codex.configure("")
    codex.api.model = searching_when_ready
    codex.run("plugin", "marketplace", "add", str(Path(__file__).parents[2]))
    installed = json.loads(codex.run("plugin", "add", "memoriter@memoriter", "--json"))
    assert (installed["name"], installed["version"]) == ("memoriter", __version__)
    codex.ask("Which bucket has the backup?", PATH=f"{MEMORITER.parent}:{os.environ['PATH']}")
    last = codex.api.requests[-1]
    assert "memory_store" in offered(last)
    assert "bucket heron" in json.dumps(last["input"])
    assert "memoriter:memory" in json.dumps(last["input"])  # the skill


def test_what_codex_stores_after_it_has_read_a_page_is_relayed(codex: Codex) -> None:
    codex.configure("")
    read, text = "ls", "The Heron Inn has nine rooms."

    def memoriter(*arguments: str) -> str:
        environment = {**os.environ, **codex.environment}
        command = [*codex.memoriter, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    def model(body: Body) -> Sequence[Say | Call]:
        if "memory_store" not in offered(body):  # the server has not started yet
            return [Call("update_plan", {"plan": []})]
        called = [item.get("name") for item in body["input"]]
        if "exec_command" not in called:
            return [Call("exec_command", {"cmd": read})]
        if "memory_store" not in called:
            return [Call("memory_store", {"text": text}, "mcp__memoriter")]
        return [Say("It is 7712.")]

    memoriter("install", "codex")
    codex.api.model = model
    unattended = ("--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox")
    codex.run("exec", "--skip-git-repo-check", *unattended, "How many rooms does the Heron Inn have?")
    read, text = f"curl -s {codex.api.url}/models", "All invoices of the Heron Inn go to account 7712."
    codex.run("exec", "--skip-git-repo-check", *unattended, "Which account does the Heron Inn use?")
    memoriter("process-queue")
    entries = json.loads(memoriter("list", "--json"))["entries"]
    assert {entry["text"]: entry["trust"] for entry in entries} == {
        "The Heron Inn has nine rooms.": "agent",
        text: "relayed",
    }


def test_codex_runs_hooks_only_after_its_owner_has_trusted_them(codex: Codex) -> None:
    codex.configure("")
    codex.api.model = lambda body: [Say("Noted.")]
    environment = {**os.environ, **codex.environment}
    subprocess.run([*codex.memoriter, "install", "codex"], env=environment, capture_output=True, check=True)
    hooks = codex.home / ".codex" / "hooks.json"
    line = rf"tee '{codex.home}/\2.sent' | \1 --deadline 300 --server"
    text = re.sub(r"(?<=\": \")([^\"]* hook codex (\w+)) --server", line, hooks.read_text("utf-8"))
    hooks.write_text(text.replace('"timeout": ', '"timeout": 40'), "utf-8")

    def fired() -> set[str]:
        sent = (json.loads(file.read_text("utf-8")) for file in codex.home.glob("*.sent"))
        return {one["hook_event_name"] for one in sent}

    codex.run("exec", "--skip-git-repo-check", "I prefer tabs over spaces in all my Go code.")
    assert fired() == set()
    assert "You have a long-term memory" not in json.dumps(codex.api.requests)
    trusted = ("--dangerously-bypass-hook-trust", "I prefer tabs over spaces in all my Go code.")
    codex.run("exec", "--skip-git-repo-check", *trusted)
    assert fired() == {"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}
    assert "You have a long-term memory" in json.dumps(codex.api.requests)
