"""Settings of the gateway, and settings that change while it runs."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
from gateways import Start, ask, poll
from typer.testing import CliRunner

from memoriter.cli.app import app
from memoriter.config import load
from memoriter.errors import ConfigError, MemoriterError, UntrustedConfig
from memoriter.server.http import gateway as gateway_module
from memoriter.server.http.auth import AllowedHosts, is_loopback
from memoriter.server.http.gateway import Agents, SettingsLoader


def test_switching_memory_off_applies_from_the_next_call(start: Start, tmp_path: Path) -> None:
    gateway = start(watch__enabled=False)
    caller = gateway.caller("admin")
    assert ask(caller, "memory.stats")["disabled"] is False
    config = tmp_path / "home" / "config.yaml"
    config.write_text("plugins:\n  slots:\n    memory: none\n")
    off = caller.post("/v1/agents/main/memory.stats")
    assert off.status_code == 503
    assert off.json()["error"].startswith("Memory is disabled: ")
    assert gateway.client().get("/healthz").text == '{"status":"degraded"}'
    config.write_text("serach: 3\n")
    wrong = caller.post("/v1/agents/main/memory.stats")
    assert (wrong.status_code, "Unknown setting 'serach'" in wrong.json()["error"]) == (503, True)
    config.unlink()
    assert ask(caller, "memory.stats")["disabled"] is False
    assert gateway.client().get("/healthz").text == '{"status":"ok"}'


def test_a_changed_setting_applies_from_the_next_call(start: Start, tmp_path: Path) -> None:
    gateway = start(watch__enabled=False)
    caller = gateway.caller("read")
    many = ask(caller, "memory.search", query="the server and the app")["results"]
    (tmp_path / "home" / "config.yaml").write_text("search:\n  max_results: 1\n")
    assert len(many) > 1
    assert len(ask(caller, "memory.search", query="the server and the app")["results"]) == 1


def test_a_memory_with_old_settings_is_closed_after_the_grace_period(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_module, "GRACE_S", 0.05)
    gateway = start(watch__enabled=False)
    caller = gateway.caller("read")
    olds = []
    for most in (1, 2, 3):
        (tmp_path / "home" / "config.yaml").write_text(f"search:\n  max_results: {most}\n")
        ask(caller, "memory.stats")
        agent = gateway.gateway.agents["main"].current
        assert agent is not None
        olds.append(weakref.ref(agent))
        del agent

    def gone() -> bool:
        gc.collect()
        return [old() is None for old in olds] == [True, True, False]

    poll(gone)


def test_a_closed_gateway_opens_no_memory(workspace: Path, tmp_path: Path) -> None:
    """Nothing would close a memory that is opened after all were closed."""
    settings = load(
        arguments={"workspace": workspace, "home": tmp_path / "home", "embedding.provider": "none"}
    )
    loader = SettingsLoader(settings, None, {"embedding.provider": "none"})
    all_agents = Agents(loader, lambda *_: None, lambda _: print)
    assert all_agents["main"]().memory
    all_agents.close()
    agent = all_agents["main"]()
    with pytest.raises(MemoriterError, match="is closing"):
        agent.memory  # noqa: B018
    assert all_agents["main"].current is None
    assert all_agents.sizes() == {"memoriter_chunks": {}, "memoriter_entries": {}}


def test_a_workspace_file_cannot_set_the_gateway(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / ".memoriter.yaml").write_text("gateway:\n  host: 0.0.0.0\n")
    with pytest.raises(UntrustedConfig, match=r"gateway\.host in .*may not set this"):
        load(arguments={"workspace": workspace, "home": tmp_path}, environ={})


def test_agents_can_be_set_in_a_file_or_a_variable(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("gateway:\n  agents:\n    work: ../work\n    home-1: /srv/notes\n")
    read = load(arguments={"home": home, "workspace": tmp_path}, environ={})
    assert read.gateway.agents == {"work": tmp_path / "work", "home-1": tmp_path / "/srv/notes"}
    environ = {"MEMORITER_GATEWAY__AGENTS": "{work: /w}", "MEMORITER_GATEWAY__ALLOWED_HOSTS": "A.example"}
    read = load(arguments={"home": tmp_path, "workspace": tmp_path}, environ=environ)
    assert read.gateway.agents == {"work": Path("/w").resolve()}
    assert read.gateway.allowed_hosts == ("a.example",)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gateway.agents", {"../x": "/w"}),
        ("gateway.agents", {"work": 7}),
        ("gateway.agents", ["work"]),
        ("gateway.allowed_hosts", ["*"]),
        ("gateway.allowed_hosts", ["http://a.example"]),
        ("gateway.port", 70_000),
        ("gateway.limits.rate", 0),
    ],
    ids=str,
)
def test_a_wrong_value_is_an_error_that_names_the_setting(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key):
        load(arguments={"home": tmp_path, "workspace": tmp_path, key: value}, environ={})


def test_allowed_hosts_and_origins() -> None:
    local = AllowedHosts("127.0.0.1", 8377)
    assert local.hosts == {"127.0.0.1:8377", "localhost:8377", "[::1]:8377"}
    proxied = AllowedHosts("0.0.0.0", 8377, ("memory.example.org", "box.lan:9000"))
    assert proxied.hosts == local.hosts | {
        "memory.example.org",
        "memory.example.org:8377",
        "box.lan:9000",
    }
    assert proxied.allows_origin("https://memory.example.org")
    assert not proxied.allows_origin("https://example.org")
    assert not proxied.allows_host("0.0.0.0:8377")
    assert AllowedHosts("192.168.1.5", 80).hosts >= {"192.168.1.5", "192.168.1.5:80"}
    assert AllowedHosts("::1", 8377).hosts == local.hosts


def test_loopback_addresses_are_recognized() -> None:
    assert [
        host for host in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost") if not is_loopback(host)
    ] == []
    assert [
        host for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", "127.1") if is_loopback(host)
    ] == []


def test_listening_on_a_network_address_prints_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memoriter.extensions.serving.server import GatewayServer

    monkeypatch.setattr(GatewayServer, "run", lambda self, on_ready: self._socket.close())
    given = ["--home", str(tmp_path / "home"), "--workspace", str(tmp_path), "serve", "--port", "0"]
    quiet = CliRunner().invoke(app, given)
    loud = CliRunner().invoke(app, [*given, "--host", "0.0.0.0"])
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    assert "0.0.0.0 is reachable from the network" in loud.stderr
