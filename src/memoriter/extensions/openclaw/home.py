"""The files of one OpenClaw agent: in OpenClaw's home, or in folders that its settings name.

OpenClaw's settings may be JSON5, which is not read here. In that case the default places are used, and a remark says
so.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOME = Path("~/.openclaw")
CORE_NOTES = ("MEMORY.md", "USER.md", "DREAMS.md")
#: Maximum size of the settings and of the list of sessions.
MAX_JSON_CHARS = 4 * 1024 * 1024

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", re.ASCII)
_SHARED = re.compile(r"(?:.*:)?(?:group|channel|room):")


def is_workspace(folder: Path) -> bool:
    """Return whether an agent keeps notes in this folder."""
    return any((folder / name).is_file() for name in CORE_NOTES) or any((folder / "memory").glob("**/*.md"))


def is_shared(session_key: str) -> bool:
    """Return whether a session belongs to a group or channel, in which several people write."""
    return _SHARED.match(session_key) is not None


def is_home(folder: Path) -> bool:
    """Return whether this folder is a home of OpenClaw."""
    return (folder / "openclaw.json").is_file() or any(
        (agent / name).is_dir() for agent in (folder / "agents").glob("*") for name in ("agent", "sessions")
    )


@dataclass(frozen=True, slots=True)
class Home:
    """OpenClaw's home and the selected agent."""

    folder: Path
    agent: str
    others: tuple[str, ...]
    #: The section `agents` of the settings.
    agents: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def read(cls, folder: Path, agent: str) -> Home:
        """Read the home and select the agent of this name, or else the main one."""
        settings, problem = _read_json(folder / "openclaw.json")
        agents = settings.get("agents")
        agents = agents if isinstance(agents, dict) else {}
        names = sorted(path.name for path in (folder / "agents").glob("*") if path.is_dir())
        selected = agent if agent in names or not names else "main" if "main" in names else names[0]
        others = tuple(name for name in names if name != selected and _NAME.fullmatch(name))
        return cls(folder, selected, others, agents, problem)

    # ---- places -----------------------------------------------------------------------------------------------

    def workspace(self) -> Path | None:
        """Return the folder of notes: from the settings, or a default one."""
        configured = [
            self._path(section.get("workspace")) for section in (self._agent_section(), self._defaults())
        ]
        defaults = (self.folder / f"workspace-{self.agent}", self.folder / "workspace")
        return next((path for path in (*configured, *defaults) if path and is_workspace(path)), None)

    def sessions(self) -> Path | None:
        """Return the folder of transcript files, which older versions write."""
        return _existing_folder(self.folder / "agents" / self.agent / "sessions")

    def shared(self) -> frozenset[str]:
        """Return the names of transcript files of groups and channels. The files themselves do not say so."""
        sessions, _ = _read_json(self.folder / "agents" / self.agent / "sessions" / "sessions.json")
        ids = (
            session.get("sessionId")
            for key, session in sessions.items()
            if is_shared(key) and isinstance(session, dict)
        )
        return frozenset(session_id for session_id in ids if isinstance(session_id, str))

    def database(self) -> Path | None:
        """Return the database of sessions, which newer versions use."""
        folders = (
            self._path(self._agent_section().get("agentDir")),
            self.folder / "agents" / self.agent / "agent",
        )
        files = (folder / "openclaw-agent.sqlite" for folder in folders if folder)
        return next((file for file in files if file.is_file() and not file.is_symlink()), None)

    def entries(self) -> Path | None:
        """Return the database of the plugin memory-lancedb."""
        return _existing_folder(self.folder / "memory" / "lancedb")

    def remarks(self) -> Iterator[str]:
        """Return sentences about what is not imported."""
        if self.problem:
            yield self.problem
        if self.others:
            yield f"Other agents are not imported: {', '.join(self.others)}."
        index = self.folder / "memory" / f"{self.agent}.sqlite"
        if index.is_file():
            yield f"{index} is an index of the notes and is not needed."

    # ---- settings ---------------------------------------------------------------------------------------------

    def _agent_section(self) -> Mapping[str, Any]:
        """Return the settings of this agent: by its name, or from a list as in older versions."""
        entries, listed = self.agents.get("entries"), self.agents.get("list")
        section = entries.get(self.agent) if isinstance(entries, dict) else None
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict) and item.get("id") == self.agent:
                section = section or item
        return section if isinstance(section, dict) else {}

    def _defaults(self) -> Mapping[str, Any]:
        defaults = self.agents.get("defaults")
        return defaults if isinstance(defaults, dict) else {}

    def _path(self, value: object) -> Path | None:
        """Return a folder that the settings name. A path in a moved or copied home is found at its new place."""
        if not isinstance(value, str) or not value.strip() or "\x00" in value:
            return None
        path = Path(os.path.normpath(os.path.expanduser(value)))  # noqa: PTH111 - Path raises for unknown users
        agent_dir = self._agent_section().get("agentDir")
        if isinstance(agent_dir, str) and Path(agent_dir).parts[-3:] == ("agents", self.agent, "agent"):
            former_home = Path(os.path.expanduser(agent_dir)).parents[2]  # noqa: PTH111
            if path.is_relative_to(former_home):
                return self.folder / path.relative_to(former_home)
        return path if path.is_absolute() else None


def _read_json(file: Path) -> tuple[Mapping[str, Any], str]:
    """Return the object in a file, and a remark if the file cannot be read."""
    if not file.is_file():
        return {}, ""
    try:
        with file.open(encoding="utf-8-sig") as stream:
            value = json.loads(stream.read(MAX_JSON_CHARS))
    except (OSError, ValueError, RecursionError):
        return {}, f"{file} is not plain JSON and was not read. The default places were used."
    return (value, "") if isinstance(value, dict) else ({}, "")


def _existing_folder(path: Path) -> Path | None:
    return path if path.is_dir() else None
