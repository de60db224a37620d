"""The plugin for OpenClaw: its manifest agrees with its code and with the table of tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memoriter import __version__
from memoriter.extensions import openclaw
from memoriter.extensions.clients.installed_files import plugin_folder
from memoriter.tools.toolbox import TOOLS

FOLDER = plugin_folder(Path(openclaw.__file__).parent, "openclaw")
MANIFEST = json.loads((FOLDER / "openclaw.plugin.json").read_text("utf-8"))
PACKAGE = json.loads((FOLDER / "package.json").read_text("utf-8"))
EXTRA = ["memory_recall", "memory_store", "memory_forget", "memory_save"]


@pytest.mark.requirement("X13")
def test_the_manifest_claims_the_memory_slot_and_names_every_tool() -> None:
    assert (MANIFEST["id"], MANIFEST["kind"]) == ("memoriter", "memory")
    assert MANIFEST["contracts"]["tools"] == ["memory_search", "memory_get", *EXTRA]
    assert MANIFEST["configSchema"]["properties"]["tools"]["items"]["enum"] == EXTRA


def test_every_setting_has_a_label() -> None:
    assert {name.partition(".")[0] for name in MANIFEST["uiHints"]} == set(
        MANIFEST["configSchema"]["properties"]
    )


def test_the_package_has_no_dependencies_and_the_version_of_memoriter() -> None:
    assert PACKAGE.get("dependencies", {}) == {}
    assert (PACKAGE["version"], MANIFEST["version"]) == (__version__, __version__)


def test_the_extra_tools_are_those_of_the_table() -> None:
    described = json.loads((FOLDER / "tools.json").read_text("utf-8"))
    assert described == [
        {"name": name, "description": TOOLS[name].description, "parameters": TOOLS[name].schema()}
        for name in EXTRA
    ]


def test_every_source_file_is_built() -> None:
    built = {path.stem for path in (FOLDER / "dist").glob("*.js")}
    assert built == {path.stem for path in Path(FOLDER, "src").glob("*.ts") if not path.stem.endswith(".d")}
