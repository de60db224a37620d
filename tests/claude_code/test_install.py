"""`install` adds our hooks and server and changes nothing else. `uninstall` restores the files."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_claude_code import Ran, Run
from hypothesis import given, settings
from hypothesis import strategies as st

from memoriter.errors import ConfigError
from memoriter.integrations.claude_code import settings_file
from memoriter.integrations.claude_code.install import SettingsFiles, install, uninstall

EXAMPLES = 1000 if os.environ.get("MEMORITER_SOAK") else 25
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a sync is free there
PLACES = {"workspace": "/home/me/my notes & 'more'"}

names = st.text(max_size=8) | st.sampled_from(["hooks", "mcpServers", "memoriter", "Stop", "model"])
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
hooks = st.dictionaries(
    st.sampled_from(["Stop", "SessionStart", "PreToolUse", "SessionEnd"]),
    st.lists(
        st.fixed_dictionaries(
            {
                "hooks": st.lists(
                    st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=9)})
                )
            },
            optional={"matcher": st.text(max_size=5)},
        )
        | values,
        max_size=3,
    ),
    max_size=3,
)
documents = st.dictionaries(names, values, max_size=5).map(
    lambda found: {key: value for key, value in found.items() if key not in ("hooks", "mcpServers")}
)
whole = st.tuples(
    documents,
    st.none() | hooks,
    st.none() | st.dictionaries(st.sampled_from(["other", "a b", "memoriter"]), values, max_size=2),
    st.booleans(),
).map(lambda parts: _document(*parts))
styles = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 2, 4, "\t", 0]),
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([None, (",", ":"), (" , ", " : ")]),
    }
)
ends = st.sampled_from(["", "\n", "\r\n", "  \n\n"])


def _document(first: dict[str, Any], hooks: Any, servers: Any, last: bool) -> dict[str, Any]:
    sections = {"hooks": hooks, "mcpServers": servers}
    present = {name: value for name, value in sections.items() if value is not None}
    return {**present, **first} if last else {**first, **present}


def written(document: object, style: dict[str, Any], end: str) -> bytes:
    text = json.dumps(document, **style) + end
    return (text.replace("\n", "\r\n") if end == "\r\n" else text).encode("utf-8", "replace")


class Place:
    """Claude Code's files and our home in a folder."""

    def __init__(self, folder: str) -> None:
        root = Path(folder)
        self.home, self.files = root / "home", SettingsFiles(root / "settings.json", root / "servers.json")

    def put(self, data: bytes | None) -> None:
        for path in self.paths:
            if data is not None:
                path.write_bytes(data)

    @property
    def paths(self) -> tuple[Path, Path]:
        assert self.files.servers is not None
        return self.files.settings, self.files.servers

    def read(self) -> list[bytes | None]:
        return [path.read_bytes() if path.exists() else None for path in self.paths]

    def install(self, server: str = "memoriter", **places: str) -> None:
        install(self.home, self.files, places or PLACES, server, dry_run=False)

    def uninstall(self) -> None:
        uninstall(self.home, self.files, "memoriter", dry_run=False)


@settings(max_examples=EXAMPLES, deadline=None)
@given(document=st.none() | whole, style=styles, end=ends)
def test_uninstall_restores_every_byte(document: Any, style: dict[str, Any], end: str) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        place = Place(folder)
        place.put(None if document is None else written(document, style, end))
        before = place.read()
        place.install()
        installed = place.read()
        place.install()
        assert place.read() == installed
        place.install(home="/other")
        place.install()
        assert place.read() == installed
        place.uninstall()
        assert place.read() == before
        assert list((place.home / "installed").iterdir()) == []


@settings(max_examples=EXAMPLES, deadline=None)
@given(document=whole, style=styles, end=ends)
def test_install_adds_hooks_and_server_and_changes_nothing_else(
    document: Any, style: dict[str, Any], end: str
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        place = Place(folder)
        place.put(written(document, style, end))
        known = json.loads(place.paths[0].read_bytes())
        place.install()
        ours, servers = (json.loads(path.read_bytes()) for path in place.paths)
        for event in settings_file.EVENTS:
            *others, group = ours["hooks"][event]
            assert others == known.get("hooks", {}).get(event, [])
            assert [settings_file.is_our_hook(hook) for hook in group["hooks"]] == [True]
        assert _same(_without(ours, "hooks"), _without(known, "hooks"))
        assert "memoriter" in servers["mcpServers"]
        assert _same(_without(servers, "mcpServers"), _without(known, "mcpServers"))
        had = known.get("mcpServers", {})
        assert _same({name: server for name, server in servers["mcpServers"].items() if name in had}, had)


@settings(max_examples=EXAMPLES, deadline=None)
@given(document=whole, style=styles, later=styles, end=ends)
def test_changes_made_after_the_installation_are_kept(
    document: Any, style: dict[str, Any], later: dict[str, Any], end: str
) -> None:
    """An editor rewrites the file in another style and adds something."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        place = Place(folder)
        place.put(written(document, style, end))
        known = json.loads(place.paths[0].read_bytes())
        place.install()
        for path in place.paths:
            changed = json.loads(path.read_bytes())
            changed["later"] = {"theme": "dark"}
            if path == place.paths[0]:
                changed["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say done"}]})
            path.write_bytes(written(changed, later, end))
        place.uninstall()
        settings_, servers = (json.loads(path.read_bytes()) for path in place.paths)
        stop = known.get("hooks", {}).get("Stop", [])
        theirs = {
            **known.get("hooks", {}),
            "Stop": [*stop, {"hooks": [{"type": "command", "command": "say done"}]}],
        }
        assert _same(settings_, {**known, "hooks": theirs, "later": {"theme": "dark"}})
        assert _same(servers, {**known, "later": {"theme": "dark"}})


def _without(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}


def _same(one: object, other: object) -> bool:
    """Return whether two values are equal as data: the order of members is ignored, and NaN equals NaN."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_edited_hooks_of_ours_are_removed_and_others_in_the_same_group_stay() -> None:
    ours = {"type": "command", "command": "/opt/x/memoriter hook claude-code Stop --deadline 9", "timeout": 1}
    theirs = {"type": "command", "command": "/opt/x/memoriter-lint hook claude-code Stop"}
    text = json.dumps(
        {"hooks": {"Stop": [{"matcher": "", "hooks": [theirs, ours]}], "SessionEnd": [{"hooks": [ours]}]}}
    )
    assert json.loads(settings_file.remove_hooks(text, "{}")) == {
        "hooks": {"Stop": [{"matcher": "", "hooks": [theirs]}]}
    }


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"a": 1} // mine',
        '{"hooks": []}',
        '{"hooks": {"Stop": {}}}',
        '{"hooks": null}',
        "\ufeff{}",
    ],
)
def test_invalid_settings_are_not_changed(tmp_path: Path, text: str) -> None:
    place = Place(str(tmp_path))
    place.paths[0].write_text(text)
    with pytest.raises(ConfigError, match="The file was not changed"):
        place.install()
    assert place.read() == [text.encode(), None]


def test_our_hooks_are_recognised_without_a_record(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    place.paths[0].write_text('{"hooks": {}, "model": "opus"}')
    place.install()
    installed = place.read()
    for record in (place.home / "installed").iterdir():
        record.unlink()
    place.install(home="/other")
    place.install()
    assert json.loads(place.paths[0].read_bytes()) == json.loads(installed[0] or b"")
    for record in (place.home / "installed").iterdir():
        record.unlink()
    place.uninstall()
    servers = json.loads(installed[1] or b"")  # without a record the server may be the user's
    assert [json.loads(data or b"{}") for data in place.read()] == [{"model": "opus"}, servers]


def test_a_link_and_the_mode_of_a_file_are_kept(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o644)
    place.paths[0].symlink_to(real)
    place.install()
    assert (place.paths[0].is_symlink(), real.stat().st_mode & 0o777) == (True, 0o644)
    assert "SessionStart" in real.read_text()
    place.uninstall()
    assert (place.paths[0].is_symlink(), real.read_text()) == (True, "{}")


def test_a_users_server_of_our_name_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    own = json.dumps({"mcpServers": {"memoriter": {"command": "memoriter", "args": ["mcp"]}}})
    place.paths[1].write_text(own)
    place.install()
    assert place.paths[1].read_text() == own
    for _ in range(3):  # the second time there is no record
        place.uninstall()
        assert place.paths[1].read_text() == own


def test_a_server_is_removed_under_the_name_of_its_installation(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    place.paths[1].write_text(json.dumps({"mcpServers": {"other": {"command": "x"}}}))
    place.install(server="mem")
    _edited(place.paths[1])
    place.install(server="memory")
    _edited(place.paths[1])
    assert list(json.loads(place.paths[1].read_text())["mcpServers"]) == ["other", "memory"]
    place.uninstall()
    assert json.loads(place.paths[1].read_text()) == {
        "mcpServers": {"other": {"command": "x"}},
        "theme": "dark",
    }


def _edited(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "theme": "dark"}))


@pytest.mark.parametrize(
    ("more", "ours"),
    [
        (" && notify-send done", False),
        ("; notify-send done", False),
        (" | tee log", False),
        ("\nnotify-send done", False),
        (" 2>&1", True),
        (" --deadline 9 2>/dev/null\n", True),
    ],
)
def test_a_hook_with_an_added_command_belongs_to_the_user(more: str, ours: bool) -> None:
    command = "memoriter --workspace '/a && b; c' hook claude-code Stop"
    settings_ = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command + more}]}]}}
    assert json.loads(settings_file.remove_hooks(json.dumps(settings_), "{}")) == ({} if ours else settings_)


# ---- command line ---------------------------------------------------------------------------------------------

Memoriter = Callable[..., Ran]


@pytest.fixture
def memoriter(tmp_path: Path, forked: Run) -> Memoriter:
    (tmp_path / "user").mkdir()
    (tmp_path / "project").mkdir()
    environment = {**os.environ, "HOME": str(tmp_path / "user"), "MEMORITER_EMBEDDING__PROVIDER": "none"}

    return lambda *arguments: forked(list(arguments), b"", environment, tmp_path / "project")


def test_the_installed_command_runs_in_a_shell(memoriter: Memoriter, tmp_path: Path) -> None:
    notes = tmp_path / "my notes & 'more' $HOME"
    shown = memoriter("--workspace", str(notes), "install", "claude-code", "--dry-run")
    assert (shown.code, b"+++ " in shown.output, list((tmp_path / "user").iterdir())) == (0, True, [])
    done = memoriter("--workspace", str(notes), "install", "claude-code", "--json")
    report = json.loads(done.output)
    files = [tmp_path / "user" / ".claude" / "settings.json", tmp_path / "user" / ".claude.json"]
    assert report == {
        "host": "claude-code",
        "dryRun": False,
        "workspace": str(notes),
        "files": [{"path": str(place), "changed": True, "diff": None} for place in files],
    }
    command = json.loads(files[0].read_text())["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    assert shlex.split(command)[1:] == [
        *("--workspace", str(notes), "hook", "claude-code", "SessionStart", "--server", "memoriter")
    ]
    answered = subprocess.run(
        ["/bin/sh", "-c", command + " --deadline 20"],
        input='{"source": "startup", "session_id": "s"}',
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path / "user"), "MEMORITER_EMBEDDING__PROVIDER": "none"},
        check=True,
    )
    context = json.loads(answered.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "`mcp__memoriter__memory_search`" in context
    assert memoriter("uninstall", "claude-code").code == 0
    assert [file.exists() for file in files] == [False, False]


def test_scope_project_changes_the_files_of_the_project(memoriter: Memoriter, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "memory").mkdir()  # not a workspace: it may hold code
    assert memoriter("install", "claude-code", "--scope", "project").code == 0
    server = json.loads((project / ".mcp.json").read_text())["mcpServers"]["memoriter"]
    assert server["args"] == [
        *("--workspace", str(tmp_path / "user" / ".memoriter" / "workspace"), "mcp", "--slot", "memory-full")
    ]
    assert (project / ".claude" / "settings.json").exists()
    assert not (tmp_path / "user" / ".claude").exists()


def test_an_invalid_file_is_reported_in_one_sentence(memoriter: Memoriter, tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text("{")
    done = memoriter("install", "claude-code", "--settings", str(file), "--no-mcp")
    assert (done.code, done.output, file.read_text()) == (1, b"", "{")
    assert done.error.decode().startswith(f"memoriter: {file}: it is not valid JSON")


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_an_unknown_host_is_wrong_usage(memoriter: Memoriter, command: str) -> None:
    done = memoriter(command, "emacs")
    assert (done.code, done.output) == (2, b"")
    assert "Unknown host 'emacs'. Supported: claude-code, openclaw." in done.error.decode()
