"""The real Gemini CLI with the settings that `memoriter install` writes. Its model is scripted.

`make integration` installs it under `.tools/gemini`. It has its own home, and reaches nothing but the scripted model.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from gemini_api import Body, GeminiApi, results, serving, tools
from openai_api import Call, Say

GEMINI = Path(__file__).parents[2] / ".tools/gemini/node_modules/@google/gemini-cli/bundle/gemini.js"
MEMORITER = Path(sys.executable).with_name("memoriter")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not os.environ.get("CI") and not GEMINI.exists(),
        reason="no Gemini CLI under .tools; run `make integration`",
    ),
]

SAID = "I prefer tabs over spaces in all my Go code."
ASKED = "Do I prefer tabs or spaces in Go code?"
TRUSTED = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}


@dataclass(frozen=True)
class GeminiCli:
    """The program with its own home, notes and folder of work. Its settings are not in its home."""

    folder: Path
    api: GeminiApi

    @property
    def settings(self) -> Path:
        return self.folder / "settings" / ".gemini" / "settings.json"

    def start(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        own = {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": self.api.url}
        return self._run(["node", str(GEMINI), "--model", "gemini-2.5-flash", *arguments], **own, **more)

    def ask(self, prompt: str, *arguments: str, **more: str) -> Sequence[Body]:
        """Answer one prompt, with every tool allowed; return what reached the model."""
        before = len(self.api.requests)
        done = self.start("--approval-mode", "yolo", "--prompt", prompt, *arguments, **(more or TRUSTED))
        assert done.returncode == 0, done.stdout + done.stderr
        return self.api.requests[before:]

    def memoriter(self, *arguments: str) -> str:
        paths = ("--workspace", str(self.folder / "notes"), "--home", str(self.folder / "memory"))
        done = self._run([str(MEMORITER), *paths, *arguments])
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def observe_hooks(self, file: Path) -> None:
        """Keep what hooks get, and let them take their time: a busy machine needs seconds to start Python."""
        text = file.read_text("utf-8").replace('"timeout": ', '"timeout": 40')
        line = rf"tee '{self.folder}/\2.sent' | \1 --deadline 300 --server"
        file.write_text(re.sub(r"(?<=\": \")([^\"]* hook gemini-cli (\w+)) --server", line, text), "utf-8")

    def fired(self) -> set[str]:
        """Return the names of the events that hooks got."""
        return {json.loads(file.read_text("utf-8"))["hook_event_name"] for file in self.folder.glob("*.sent")}

    def _run(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        homes = {"HOME": str(self.folder / "home"), "GEMINI_CLI_HOME": str(self.folder / "settings")}
        return subprocess.run(
            command,
            env={"PATH": os.environ["PATH"], **homes, **more},
            cwd=self.folder / "work",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


@pytest.fixture
def gemini(tmp_path: Path) -> Iterator[GeminiCli]:
    for folder in ("home", "notes", "work", "settings/.gemini"):
        (tmp_path / folder).mkdir(parents=True)
    with serving() as api:
        program = GeminiCli(tmp_path, api)
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False},
        }
        program.settings.write_text(f"// mine\n{json.dumps(settings, indent=2)}\n", "utf-8")
        yield program


def test_gemini_cli_captures_recalls_and_is_as_before_after_uninstall(gemini: GeminiCli) -> None:
    before = gemini.settings.read_bytes()
    gemini.memoriter("install", "gemini-cli")
    gemini.observe_hooks(gemini.settings)
    (first,) = gemini.ask(SAID)
    assert "mcp_memoriter_memory_search" in tools(first)
    assert "You have a long-term memory, memoriter." in json.dumps(first["contents"])
    gemini.memoriter("process-queue")
    (entry,) = json.loads(gemini.memoriter("list", "--json"))["entries"]
    assert (entry["text"], entry["trust"]) == (SAID, "owner")
    steps: list[Say | Call] = [Call("mcp_memoriter_memory_recall", {"query": "tabs or spaces"}), Say("Tabs.")]
    gemini.api.model = lambda body: [steps[len(results(body))]]
    asked, answered = gemini.ask(ASKED)
    assert SAID in json.dumps(asked["contents"])
    assert SAID in json.dumps(results(answered))
    assert gemini.fired() == {"SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"}
    (host,) = [
        one for one in json.loads(gemini.memoriter("hosts", "--json"))["hosts"] if one["host"] == "gemini-cli"
    ]
    assert (host["state"], Path(host["folder"])) == ("connected", gemini.settings.parent)
    assert host["recalled"]
    assert host["captured"]
    gemini.memoriter("uninstall", "gemini-cli")
    gemini.api.model = lambda _: [Say("I do not know.")]
    (left,) = gemini.ask(ASKED)
    assert not [name for name in tools(left) if "memoriter" in name]
    assert SAID not in json.dumps(left["contents"])
    gemini.settings.write_bytes(before)
    gemini.memoriter("install", "gemini-cli")
    gemini.memoriter("uninstall", "gemini-cli")
    assert gemini.settings.read_bytes() == before


def test_what_gemini_cli_stores_after_it_has_read_a_page_is_relayed(gemini: GeminiCli) -> None:
    step, text = Call("list_directory", {"dir_path": "."}), "The Heron Inn has nine rooms."

    def model(body: Body) -> list[Say | Call]:
        if any("googleSearch" in tool for tool in body.get("tools", ())):
            return [Say("The Heron Inn: pay to account 7712.")]
        steps: list[Say | Call] = [
            step,
            Call("mcp_memoriter_memory_store", {"text": text}),
            Say("It is 7712."),
        ]
        return [steps[len(results(body))]]

    gemini.api.model = model
    gemini.memoriter("install", "gemini-cli")
    gemini.observe_hooks(gemini.settings)
    gemini.ask("How many rooms does the Heron Inn have?")
    step = Call("google_web_search", {"query": "account of the Heron Inn"})
    text = "All invoices of the Heron Inn go to account 7712."
    searched, stored = results(gemini.ask("Which account does the Heron Inn use for its invoices?")[-1])
    assert "pay to account 7712" in json.dumps(searched)
    assert "added" in json.dumps(stored)
    gemini.memoriter("process-queue")
    entries = json.loads(gemini.memoriter("list", "--json"))["entries"]
    assert {entry["text"]: entry["trust"] for entry in entries} == {
        "The Heron Inn has nine rooms.": "agent",
        text: "relayed",
    }


def test_gemini_cli_ignores_the_settings_of_a_project_that_is_not_trusted(gemini: GeminiCli) -> None:
    gemini.memoriter("install", "gemini-cli", "--scope", "project")
    gemini.observe_hooks(gemini.folder / "work/.gemini/settings.json")
    refused = gemini.start("--prompt", ASKED)
    assert refused.returncode != 0
    assert "not running in a trusted directory" in refused.stderr
    assert gemini.api.requests == []
    trusted = gemini.settings.with_name("trustedFolders.json")
    trusted.write_text(json.dumps({str(gemini.folder / "work"): "TRUST_FOLDER"}), "utf-8")
    (asked,) = gemini.ask(ASKED, GEMINI_CLI_TRUSTED_FOLDERS_PATH=str(trusted))
    assert "mcp_memoriter_memory_search" in tools(asked)
