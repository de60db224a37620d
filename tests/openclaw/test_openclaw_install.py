"""`memoriter install openclaw`: it fills the memory slot, and `uninstall` restores every byte."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.errors import ConfigError, NotFound
from memoriter.extensions.openclaw.install import OpenClawHost, install, uninstall

SETTINGS = (
    '{\n  "agents": {"entries": {"main": {"workspace": "/w/main"}, "work": {}}},\n "gateway":{"port": 1}\n}'
)
COMMAND = ["/bin/memoriter"]
RunForked = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def host(tmp_path: Path) -> OpenClawHost:
    (tmp_path / "openclaw.json").write_text(SETTINGS)
    return OpenClawHost.find(tmp_path)


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def settings_of(host: OpenClawHost) -> dict[str, object]:
    return dict(json.loads(host.settings.read_text()))


@pytest.mark.requirement("X13")
def test_the_plugin_is_copied_and_selected(host: OpenClawHost, tmp_path: Path) -> None:
    install(tmp_path / "m", host, COMMAND, tmp_path / "m", dry_run=False)
    assert settings_of(host)["plugins"] == {
        "slots": {"memory": "memoriter"},
        "entries": {
            "memoriter": {
                "enabled": True,
                "hooks": {"allowConversationAccess": True},
                "config": {
                    "command": COMMAND,
                    "dreaming": {"enabled": False},
                    "home": str(tmp_path / "m"),
                },
            }
        },
    }
    assert settings_of(host)["memory"] == {"search": {"rememberAcrossConversations": False}}
    assert sorted(path.name for path in host.plugin.iterdir()) == [
        "README.md",
        "dist",
        "openclaw.plugin.json",
        "package.json",
        "tools.json",
    ]
    assert host.workspaces() == {"main": Path("/w/main"), "work": host.state / "workspace"}


def test_uninstall_restores_every_byte(host: OpenClawHost, tmp_path: Path) -> None:
    before = contents(host.state)
    install(tmp_path / "m", host, COMMAND, None, dry_run=False)
    install(tmp_path / "m", host, ["/other/memoriter"], None, dry_run=False)  # an update
    uninstall(tmp_path / "m", host, dry_run=False)
    assert {name: data for name, data in contents(host.state).items() if not name.startswith("m")} == before


def test_uninstall_keeps_what_changed_since(host: OpenClawHost, tmp_path: Path) -> None:
    install(tmp_path / "m", host, COMMAND, None, dry_run=False)
    settings = settings_of(host)
    settings["meta"] = {"lastTouchedVersion": "2026.9.7"}
    host.settings.write_text(json.dumps(settings))
    uninstall(tmp_path / "m", host, dry_run=False)
    assert settings_of(host) == {**json.loads(SETTINGS), "meta": {"lastTouchedVersion": "2026.9.7"}}


def test_uninstall_keeps_a_memory_that_was_chosen_later(host: OpenClawHost, tmp_path: Path) -> None:
    install(tmp_path / "m", host, COMMAND, None, dry_run=False)
    settings = json.loads(host.settings.read_text())
    settings["plugins"]["slots"]["memory"] = "memory-lancedb"
    host.settings.write_text(json.dumps(settings))
    uninstall(tmp_path / "m", host, dry_run=False)
    assert settings_of(host)["plugins"] == {"slots": {"memory": "memory-lancedb"}}


def test_a_recall_that_the_owner_has_chosen_stays(host: OpenClawHost, tmp_path: Path) -> None:
    search = {"rememberAcrossConversations": True, "provider": "none"}
    host.settings.write_text(json.dumps({"memory": {"search": search}}))
    install(tmp_path / "m", host, COMMAND, None, dry_run=False)
    assert settings_of(host)["memory"] == {"search": search}


def test_a_byte_order_mark_and_line_ends_stay(host: OpenClawHost, tmp_path: Path) -> None:
    before = b'\xef\xbb\xbf{\r\n  "gateway": {"port": 1}\r\n}\r\n'
    host.settings.write_bytes(before)
    install(tmp_path / "m", host, COMMAND, None, dry_run=False)
    installed = host.settings.read_bytes()
    assert installed.startswith(b"\xef\xbb\xbf{\r\n")
    assert installed.count(b"\n") == installed.count(b"\r\n")
    host.settings.write_bytes(installed.replace(b'"port": 1', b'"port": 2'))
    uninstall(tmp_path / "m", host, dry_run=False)
    settings = host.settings.read_bytes().decode("utf-8-sig")
    assert (json.loads(settings), settings.count("\n")) == ({"gateway": {"port": 2}}, settings.count("\r\n"))


@given(
    memory=st.none()
    | st.dictionaries(
        st.just("search"),
        st.dictionaries(st.sampled_from(["rememberAcrossConversations", "enabled"]), st.booleans()),
    ),
    slot=st.none() | st.sampled_from(["memory-core", "memory-lancedb", "none"]),
    allow=st.none() | st.lists(st.sampled_from(["telegram", "memoriter"]), max_size=2, unique=True),
    entries=st.none() | st.dictionaries(st.sampled_from(["codex", "x"]), st.just({"enabled": True})),
)
def test_any_plugin_settings_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    memory: dict[str, object] | None,
    slot: str | None,
    allow: list[str] | None,
    entries: dict[str, object] | None,
) -> None:
    folder = tmp_path_factory.mktemp("state")
    plugins = {
        **({"slots": {"memory": slot}} if slot else {}),
        **({} if allow is None else {"allow": allow}),
        **({} if entries is None else {"entries": entries}),
    }
    text = json.dumps({"plugins": plugins, **({} if memory is None else {"memory": memory})}, indent=3)
    (folder / "openclaw.json").write_text(text)
    host = OpenClawHost.find(folder)
    install(folder / "m", host, COMMAND, None, dry_run=False)
    host.settings.write_text(
        json.dumps(json.loads(host.settings.read_text()))
    )  # OpenClaw writes its own format
    uninstall(folder / "m", host, dry_run=False)
    assert host.settings.read_text() == text


def test_a_dry_run_changes_nothing(host: OpenClawHost, tmp_path: Path) -> None:
    (change,) = install(tmp_path / "m", host, COMMAND, None, dry_run=True)
    assert '+      "memory": "memoriter"' in change.diff()
    assert contents(host.state) == {"openclaw.json": SETTINGS.encode()}


def test_settings_with_comments_are_not_touched(host: OpenClawHost, tmp_path: Path) -> None:
    host.settings.write_text("// mine\n{}")
    with pytest.raises(ConfigError, match=r"not plain JSON.*openclaw plugins install .*openclaw"):
        install(tmp_path / "m", host, COMMAND, None, dry_run=False)
    assert contents(host.state) == {"openclaw.json": b"// mine\n{}"}


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ({"allow": 5}, "`plugins.allow` is not a list"),
        ({"deny": True}, "`plugins.deny` is not a list"),
        ({"entries": 7}, "`plugins.entries` is not an object"),
        ({"slots": []}, "`plugins.slots` is not an object"),
    ],
)
def test_plugin_settings_of_another_shape_are_an_error_and_stay(
    host: OpenClawHost, tmp_path: Path, plugins: object, message: str
) -> None:
    text = json.dumps({"plugins": plugins})
    host.settings.write_text(text)
    for change in (
        lambda: install(tmp_path / "m", host, COMMAND, None, dry_run=False),
        lambda: uninstall(tmp_path / "m", host, dry_run=False),
    ):
        with pytest.raises(ConfigError, match=message):
            change()
    assert contents(host.state) == {"openclaw.json": text.encode()}


@pytest.mark.parametrize("agents", [[], 5, {"entries": []}, {"defaults": 3, "entries": {"main": 4}}])
def test_agents_of_another_shape_have_the_default_workspace(host: OpenClawHost, agents: object) -> None:
    host.settings.write_text(json.dumps({"agents": agents}))
    assert host.workspaces() == {"main": host.state / "workspace"}


def test_agents_in_a_list_have_their_workspaces(host: OpenClawHost) -> None:
    agents = {"list": [{"id": "main"}, {"id": "work", "workspace": "/w/work"}, 5, {}]}
    host.settings.write_text(json.dumps({"agents": agents}))
    assert host.workspaces() == {"main": host.state / "workspace", "work": Path("/w/work")}


def test_a_foreign_folder_in_the_place_of_the_plugin_is_not_replaced(
    host: OpenClawHost, tmp_path: Path
) -> None:
    host.plugin.mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"is not memoriter's plugin"):
        install(tmp_path / "m", host, COMMAND, None, dry_run=False)
    assert host.settings.read_text() == SETTINGS


def test_without_openclaw_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"Run `openclaw onboard` first"):
        OpenClawHost.find(tmp_path)


#: Writes down how it is called, and changes the settings as OpenClaw does.
OPENCLAW = """#!/bin/sh
echo "$@" >> {log}
echo "$OPENCLAW_STATE_DIR $OPENCLAW_CONFIG_PATH" >> {log}
echo '{{}}' > "$OPENCLAW_CONFIG_PATH.other"
if [ "$2" = uninstall ]; then
  echo '{{"changed": true}}' > "$OPENCLAW_CONFIG_PATH"
  rm -rf "$OPENCLAW_STATE_DIR/extensions/memoriter"
fi
echo "It is not allowed." >&2
exit {status}
"""


Run = Callable[[str], list[str]]


@pytest.fixture
def run(host: OpenClawHost, tmp_path: Path, run_forked: RunForked) -> Run:
    """Return a function that runs a command with the programs of a folder and returns the lines that it prints."""

    def run_(command: str) -> list[str]:
        path = f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin"
        environment = {**os.environ, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path), "PATH": path}
        done = run_forked([command, "openclaw", "--home", str(host.state)], environment, b"", tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().splitlines()

    return run_


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands for OpenClaw")
def test_openclaws_own_installer_records_the_plugin(host: OpenClawHost, run: Run, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    (tmp_path / "openclaw").write_text(OPENCLAW.format(log=log, status=0))
    (tmp_path / "openclaw").chmod(0o755)
    host.settings.chmod(0o600)
    assert "record" not in " ".join(run("install"))
    assert host.plugin.is_dir()
    assert "record" not in " ".join(run("uninstall"))
    source = Path(__file__).parents[2] / "plugins" / "openclaw"
    assert log.read_text().splitlines() == [
        f"plugins install {source} --force --accept-capabilities",
        f"{host.state} {host.settings}",
        "plugins uninstall memoriter --force",
        f"{host.state} {host.settings}",
    ]
    assert (host.settings.read_text(), host.settings.stat().st_mode & 0o777) == (SETTINGS, 0o600)
    assert not host.plugin.parent.exists()


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands for OpenClaw")
def test_an_installer_that_fails_is_named_with_its_reason(
    host: OpenClawHost, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "openclaw").write_text(OPENCLAW.format(log=tmp_path / "calls", status=3))
    (tmp_path / "openclaw").chmod(0o755)
    *_, last = run("install")
    assert last.startswith(
        "The memory works, but OpenClaw warns that it has no record of the plugin: It is not allowed. For the "
        "record, run `openclaw plugins install "
    )
    *_, last = run("uninstall")
    assert last == "OpenClaw may still have a record of the plugin: It is not allowed."
    assert host.settings.read_text() == SETTINGS


def test_the_command_prints_what_it_changed(host: OpenClawHost, run: Run, tmp_path: Path) -> None:
    *lines, remark = run("install")
    assert "the program openclaw was not found" in remark
    assert lines == [
        f"{host.settings}: memory slot and plugin settings",
        f"{host.plugin}: plugin",
        f"Agent main: workspace {Path('/w/main')}",
        f"Agent work: workspace {host.state / 'workspace'}",
        f"memoriter keeps its data in {tmp_path / '.memoriter'}.",
        "OpenClaw applies the change while it runs. Check it with: openclaw memory status",
    ]
    assert run("uninstall") == [
        f"{host.settings}: changed",
        f"{host.plugin}: removed",
        f"The memory stays in {tmp_path / '.memoriter'}.",
        "OpenClaw may still have a record of the plugin: the program openclaw was not found.",
    ]
    assert host.settings.read_text() == SETTINGS
