"""Put memoriter into OpenClaw's memory slot, and take it out again.

The plugin is copied into OpenClaw's home, so that OpenClaw starts even if this Python package is gone. The settings
name it as the owner of the slot. OpenClaw's own installer then records where the plugin came from, since OpenClaw warns
about plugins without a record in every command. Uninstalling removes exactly that.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memoriter.errors import ConfigError, NotFound
from memoriter.extensions.clients import installed_files
from memoriter.extensions.clients.host import report_of
from memoriter.extensions.clients.installed_files import EMPTY, FileChange, InstalledFiles, plugin_folder
from memoriter.extensions.openclaw.home import HOME
from memoriter.extensions.openclaw.importing import import_openclaw
from memoriter.files.durable import write
from memoriter.files.platform import command_line
from memoriter.hosts import Connection, HostWithoutHooks, InstallReport, InstallRequest, State, program

PLUGIN = "memoriter"
PACKAGE = "memoriter-openclaw"
#: By default OpenClaw adds other conversations to a prompt with a call of the model. Our recall does so without one,
#: and OpenClaw's doctor advises a memory with its own recall to turn this off.
OTHER_RECALL = "rememberAcrossConversations"
#: The parts of the plugin that OpenClaw needs.
PLUGIN_FILES = ("package.json", "openclaw.plugin.json", "tools.json", "README.md", "dist")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OpenClawHost:
    """The folder and the settings file of an OpenClaw."""

    state: Path
    settings: Path

    @classmethod
    def find(cls, folder: Path | None) -> OpenClawHost:
        """Find OpenClaw's home: this folder, or where OpenClaw itself looks for it."""
        state = (folder or Path(os.environ.get("OPENCLAW_STATE_DIR") or HOME)).expanduser().absolute()
        named = os.environ.get("OPENCLAW_CONFIG_PATH") if folder is None else None
        settings = Path(named).expanduser().absolute() if named else state / "openclaw.json"
        if not settings.is_file():
            raise NotFound(
                f"{settings} does not exist. Run `openclaw onboard` first, or name OpenClaw's folder with --home."
            )
        return cls(state, settings)

    @property
    def plugin(self) -> Path:
        """Return the folder of our plugin, which OpenClaw finds automatically."""
        return self.state / "extensions" / PLUGIN

    def workspaces(self) -> dict[str, Path]:
        """Return the workspace of each agent in the settings."""
        agents = _object(_load(self.settings.read_text("utf-8")).get("agents"))
        shared = _object(agents.get("defaults")).get("workspace")
        listed = agents.get("list")
        found = [_object(agent) for agent in listed] if isinstance(listed, list) else []
        entries = {
            **_object(agents.get("entries")),
            **{str(agent["id"]): agent for agent in found if agent.get("id")},
        }
        default = self.state / "workspace"
        return {
            name: Path(str(_object(entry).get("workspace") or shared or default)).expanduser()
            for name, entry in (entries or {"main": {}}).items()
        }


def install(
    home: Path, host: OpenClawHost, command: Sequence[str], memory_home: Path | None, *, dry_run: bool
) -> tuple[FileChange, ...]:
    """Copy the plugin and select it. ``memory_home`` is the home of memoriter, if it is not the default one."""
    _check_own(host.plugin)
    config: Json = {"command": list(command), "dreaming": {"enabled": False}}
    if memory_home is not None:
        config["home"] = str(memory_home)
    extensions_existed = host.plugin.parent.is_dir()
    installed = InstalledFiles(home)
    named = installed.part_name(host.settings) or ("kept" if extensions_existed else "created")
    change = installed.add(
        host.settings, lambda text: _select(text, config), _deselect, dry_run=dry_run, part_name=named
    )
    if not dry_run:
        _copy_plugin(plugin_folder(Path(__file__).parent, "openclaw"), host.plugin)
    return (change,)


def uninstall(home: Path, host: OpenClawHost, *, dry_run: bool) -> tuple[FileChange, ...]:
    """Remove the plugin and restore the slot."""
    _check_own(host.plugin)
    installed = InstalledFiles(home)
    created_folder = installed.part_name(host.settings) == "created"
    change = installed.remove(host.settings, _deselect, dry_run=dry_run)
    if not dry_run:
        shutil.rmtree(host.plugin, ignore_errors=not host.plugin.is_dir())  # OpenClaw may have removed it
        if created_folder and host.plugin.parent.is_dir() and not any(host.plugin.parent.iterdir()):
            host.plugin.parent.rmdir()
    return (change,)


class OpenClawSlot(HostWithoutHooks):
    """Connects OpenClaw. Its plugin calls operations, so it needs no hooks."""

    def install(self, request: InstallRequest) -> InstallReport:
        """Copy the plugin, select it, and import what OpenClaw has learned if that is wanted."""
        settings, host = request.settings, OpenClawHost.find(request.home)
        memory_home = settings.home if settings.origin("home") != "default" else None
        changes = install(settings.home, host, program(), memory_home, dry_run=request.dry_run)
        remark = None if request.dry_run else record(host)
        workspaces = host.workspaces()
        reports = []
        if request.with_import and request.open_memory:
            for agent, workspace in workspaces.items():
                # The notes of the agent are used in place.
                with request.open_memory(agent, workspace) as memory:
                    reports.append(import_openclaw(memory, host.state, dry_run=request.dry_run))
        lines = [
            f"{host.settings}: memory slot and plugin settings"
            if changes[0].is_change
            else f"{host.settings}: unchanged",
            f"{host.plugin}: plugin",
            *(f"Agent {agent}: workspace {workspace}" for agent, workspace in workspaces.items()),
            f"memoriter keeps its data in {settings.home}.",
            "OpenClaw applies the change while it runs. Check it with: openclaw memory status",
            *([remark] if remark else []),
        ]
        report = report_of(changes, request.dry_run)
        return replace(report, lines=report.lines if request.dry_run else lines, imports=reports)

    def uninstall(self, request: InstallRequest) -> InstallReport:
        """Take the plugin out of the slot and delete it."""
        settings, host = request.settings, OpenClawHost.find(request.home)
        is_installed = host.plugin.is_dir()
        remark = remove_record(host) if is_installed and not request.dry_run else None
        changes = uninstall(settings.home, host, dry_run=request.dry_run)
        report = report_of(changes, request.dry_run)
        if request.dry_run:
            return report
        result = f"{host.plugin}: {'removed' if is_installed else 'not installed'}"
        lines = [
            *report.lines,
            result,
            f"The memory stays in {settings.home}.",
            *([remark] if remark else []),
        ]
        return replace(report, lines=lines)

    def find(self, request: InstallRequest) -> Connection | None:
        """Return whether the plugin is in the slot; None without OpenClaw."""
        try:
            host = OpenClawHost.find(request.home)
        except NotFound:
            return None
        state: State = "connected" if host.plugin.is_dir() else "not connected"
        return Connection("OpenClaw", state, host.state)


OPENCLAW = OpenClawSlot()


# ---- the record of OpenClaw's installer -----------------------------------------------------------------------


def record(host: OpenClawHost) -> str | None:
    """Let OpenClaw's installer record the plugin. Return what to do if it did not."""
    source = plugin_folder(Path(__file__).parent, "openclaw")
    command = ["plugins", "install", str(source), "--force", "--accept-capabilities"]
    failed = _openclaw(host, command)
    return failed and (
        f"The memory works, but OpenClaw warns that it has no record of the plugin: {failed}. For the record, run "
        f"`openclaw {command_line(command)}`."
    )


def remove_record(host: OpenClawHost) -> str | None:
    """Let OpenClaw's uninstaller remove its record, and keep the settings for `uninstall`. Return what went wrong."""
    before = host.settings.read_bytes()
    failed = _openclaw(host, ["plugins", "uninstall", PLUGIN, "--force"])
    if host.settings.read_bytes() != before:
        write(host.settings, before, mode=host.settings.stat().st_mode & 0o777)
    return failed and f"OpenClaw may still have a record of the plugin: {failed}."


def _openclaw(host: OpenClawHost, arguments: Sequence[str]) -> str | None:
    """Run OpenClaw. Return why it failed."""
    found = shutil.which("openclaw")
    if found is None:
        return "the program openclaw was not found"
    places = {"OPENCLAW_STATE_DIR": str(host.state), "OPENCLAW_CONFIG_PATH": str(host.settings)}
    failed = installed_files.run_program([found, *arguments], {**os.environ, **places, "NO_COLOR": "1"})
    return failed and failed.rstrip(".")


# ---- the plugin -----------------------------------------------------------------------------------------------


def _check_own(folder: Path) -> None:
    """Raise if something other than our plugin is in the way."""
    if not folder.exists() and not folder.is_symlink():
        return
    try:
        name = json.loads((folder / "package.json").read_bytes()).get("name")
    except (OSError, ValueError, AttributeError):
        name = None
    if folder.is_symlink() or name != PACKAGE:
        raise ConfigError(f"{folder} is not memoriter's plugin. Move it away and try again.")


def _copy_plugin(source: Path, target: Path) -> None:
    """Replace the plugin as a whole, so that OpenClaw never sees a part of it."""
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".memoriter-") as folder:
        new, old = Path(folder, "new"), Path(folder, "old")
        new.mkdir(mode=0o755)
        for name in PLUGIN_FILES:
            path = source / name
            if path.is_dir():
                shutil.copytree(path, new / name)
            elif path.is_file():
                shutil.copy(path, new / name)
        if target.exists():
            target.rename(old)
        new.rename(target)


# ---- OpenClaw's settings --------------------------------------------------------------------------------------


def _load(text: str) -> Json:
    try:
        settings = json.loads(text.removeprefix("\ufeff").strip() or EMPTY)
    except (ValueError, RecursionError):
        raise ConfigError(
            "it is not plain JSON, but JSON5 or damaged. Install the plugin with OpenClaw's own command instead: "
            f"openclaw plugins install {plugin_folder(Path(__file__).parent, 'openclaw')}"
        ) from None
    if not isinstance(settings, dict):
        raise ConfigError("it is not a JSON object")
    plugins = _object(settings.get("plugins"))
    for name, kind, shown in _SHAPES:
        if plugins.get(name) is not None and not isinstance(plugins[name], kind):
            raise ConfigError(f"`plugins.{name}` is not {shown}")
    return settings


_SHAPES = (
    ("slots", dict, "an object"),
    ("entries", dict, "an object"),
    ("allow", list, "a list"),
    ("deny", list, "a list"),
)


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _dump(settings: Mapping[str, Any], like: str) -> str:
    """Return the text of settings, with the byte order mark and the line ends of another text."""
    text = json.dumps(settings, indent=2, ensure_ascii=False) + (
        "\n" if like.endswith("\n") or not like else ""
    )
    text = text.replace("\n", "\r\n") if "\r\n" in like else text
    return f"\ufeff{text}" if like.startswith("\ufeff") else text


def _section(parent: Json, name: str) -> Json:
    section = parent.setdefault(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"`{name}` is not an object")
    return section


def _select(text: str, config: Json) -> str:
    settings = _load(text)
    plugins = _section(settings, "plugins")
    if PLUGIN in (plugins.get("deny") or ()):
        raise ConfigError("`plugins.deny` contains memoriter; remove it from the list")
    _section(plugins, "slots")["memory"] = PLUGIN
    entry = _section(_section(plugins, "entries"), PLUGIN)
    entry["enabled"] = True
    _section(entry, "hooks")["allowConversationAccess"] = True
    _section(entry, "config").update(config)
    if plugins.get("allow") and PLUGIN not in plugins["allow"]:
        plugins["allow"] = [*plugins["allow"], PLUGIN]
    _section(_section(settings, "memory"), "search").setdefault(OTHER_RECALL, False)
    return _dump(settings, text)


def _deselect(text: str, before: str | None) -> str:
    """Undo `_select`, also in settings that have changed since. Settings without our part stay as they are."""
    settings, original_settings = _load(text), None if before is None else _load(before)
    plugins, original = settings.get("plugins"), _object((original_settings or {}).get("plugins"))
    if not isinstance(plugins, dict) or (before is None and PLUGIN not in (plugins.get("entries") or ())):
        return text
    for name, key in (("slots", "memory"), ("entries", PLUGIN)):
        section = plugins.get(name)
        if not isinstance(section, dict) or key not in section:
            continue
        if name == "slots" and section[key] != PLUGIN:
            continue  # the owner has chosen another memory since
        _restore(section, key, (original.get(name) or {}).get(key))
        if not section and name not in original:
            del plugins[name]
    allowed = plugins.get("allow")
    if isinstance(allowed, list) and PLUGIN not in (original.get("allow") or ()):
        plugins["allow"] = [name for name in allowed if name != PLUGIN]
    if original_settings is not None:
        _drop(settings, original_settings, "memory", "search", OTHER_RECALL)
        if not plugins and "plugins" not in original_settings:
            del settings["plugins"]
    if settings == original_settings:
        return before or text
    return text if settings == _load(text) else _dump(settings, text)


def _drop(settings: Json, original: Json, name: str, *inner: str) -> None:
    """Remove what was set to false at a path and was not in the original, with the objects that become empty."""
    if inner and isinstance(settings.get(name), dict):
        _drop(settings[name], _object(original.get(name)), *inner)
    if name not in original and settings.get(name) in (False, {}):
        del settings[name]


def _restore(section: Json, key: str, value: object) -> None:
    if value is None:
        section.pop(key, None)
    else:
        section[key] = value
