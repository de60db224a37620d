"""Where OpenClaw keeps what one of its agents has written: in its home, or where its settings say.

Its settings may be written by hand in a dialect of JSON that is not read here: then the usual places are looked at, and
a remark says so. What lies in the places is the duty of others.
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
CORE = ("MEMORY.md", "USER.md", "DREAMS.md")
MOST = 4 * 1024 * 1024  #: bytes of the settings, or of the list of sessions

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", re.ASCII)
_SHARED = re.compile(r"(?:.*:)?(?:group|channel|room):")


def is_workspace(folder: Path) -> bool:
    """Whether an agent keeps notes in this folder."""
    return any((folder / name).is_file() for name in CORE) or any((folder / "memory").glob("**/*.md"))


def is_shared(session_key: str) -> bool:
    """Whether a session is that of a group or channel, where others speak too."""
    return _SHARED.match(session_key) is not None


def is_home(folder: Path) -> bool:
    """Whether OpenClaw keeps its own things in this folder."""
    return (folder / "openclaw.json").is_file() or any(
        (one / name).is_dir() for one in (folder / "agents").glob("*") for name in ("agent", "sessions")
    )


@dataclass(frozen=True, slots=True)
class Home:
    """OpenClaw's home, and the agent in it that is asked for."""

    folder: Path
    agent: str
    others: tuple[str, ...]
    agents: Mapping[str, Any] = field(default_factory=dict)  #: what the settings say of agents
    problem: str = ""

    @classmethod
    def read(cls, folder: Path, agent: str) -> Home:
        """The home with the agent of this name in it, or else the main one."""
        settings, problem = _settings(folder / "openclaw.json")
        agents = settings.get("agents")
        agents = agents if isinstance(agents, dict) else {}
        known = sorted(one.name for one in (folder / "agents").glob("*") if one.is_dir())
        chosen = agent if agent in known or not known else "main" if "main" in known else known[0]
        others = tuple(name for name in known if name != chosen and _NAME.fullmatch(name))
        return cls(folder, chosen, others, agents, problem)

    # ---- places -----------------------------------------------------------------------------------------------

    def workspace(self) -> Path | None:
        """The folder of notes: as the settings say, or by its usual name."""
        said = [self._path(told.get("workspace")) for told in (self._own(), self._defaults())]
        usual = (self.folder / f"workspace-{self.agent}", self.folder / "workspace")
        return next((one for one in (*said, *usual) if one and is_workspace(one)), None)

    def sessions(self) -> Path | None:
        """Transcripts in files, as older versions write them."""
        return _folder(self.folder / "agents" / self.agent / "sessions")

    def shared(self) -> frozenset[str]:
        """Names of transcripts in files that are of groups and channels; the files do not say so themselves."""
        known, _ = _settings(self.folder / "agents" / self.agent / "sessions" / "sessions.json")
        ids = (one.get("sessionId") for key, one in known.items() if is_shared(key) and isinstance(one, dict))
        return frozenset(one for one in ids if isinstance(one, str))

    def database(self) -> Path | None:
        """Sessions in a database, as newer versions keep them."""
        folders = (self._path(self._own().get("agentDir")), self.folder / "agents" / self.agent / "agent")
        files = (one / "openclaw-agent.sqlite" for one in folders if one)
        return next((one for one in files if one.is_file() and not one.is_symlink()), None)

    def entries(self) -> Path | None:
        """What the plugin memory-lancedb keeps."""
        return _folder(self.folder / "memory" / "lancedb")

    def remarks(self) -> Iterator[str]:
        """What is left where it is, in words."""
        if self.problem:
            yield self.problem
        if self.others:
            yield f"Agents with memories of their own are not taken in: {', '.join(self.others)}."
        old = self.folder / "memory" / f"{self.agent}.sqlite"
        if old.is_file():
            yield f"{old} is an index of the notes, and is not needed."

    # ---- settings ---------------------------------------------------------------------------------------------

    def _own(self) -> Mapping[str, Any]:
        """What the settings say of this agent: by its name, or in a list as in older versions."""
        entries, listed = self.agents.get("entries"), self.agents.get("list")
        found = entries.get(self.agent) if isinstance(entries, dict) else None
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("id") == self.agent:
                found = found or one
        return found if isinstance(found, dict) else {}

    def _defaults(self) -> Mapping[str, Any]:
        defaults = self.agents.get("defaults")
        return defaults if isinstance(defaults, dict) else {}

    def _path(self, value: object) -> Path | None:
        """A folder that the settings name; one in the home lies there still when the home was moved or copied."""
        if not isinstance(value, str) or not value.strip() or "\x00" in value:
            return None
        path = Path(os.path.normpath(os.path.expanduser(value)))  # noqa: PTH111 - a user who is unknown is no error
        own = self._own().get("agentDir")
        below = ("agents", self.agent, "agent")
        if isinstance(own, str) and Path(own).parts[-3:] == below:
            former = Path(os.path.expanduser(own)).parents[2]  # noqa: PTH111
            if path.is_relative_to(former):
                return self.folder / path.relative_to(former)
        return path if path.is_absolute() else None


def _settings(file: Path) -> tuple[Mapping[str, Any], str]:
    """What OpenClaw's settings say, or why they cannot be read."""
    if not file.is_file():
        return {}, ""
    try:
        with file.open(encoding="utf-8-sig") as opened:
            settings = json.loads(opened.read(MOST))
    except (OSError, ValueError, RecursionError):
        return {}, f"{file} is not plain JSON, and is not read: everything is looked for in its usual place."
    return (settings, "") if isinstance(settings, dict) else ({}, "")


def _folder(path: Path) -> Path | None:
    return path if path.is_dir() else None
