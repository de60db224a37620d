"""The memories of mem0's entities. Each user, agent, app or run has a memory of its own: one agent of the home.

So nothing of one entity can reach another, and statements of two users never merge. The name of the agent contains that
of the entity. What mem0 stores beside a text, and entries do not have, is an item under the id of the entry.
"""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoriter.config import load
from memoriter.errors import BadArgument, NotFound
from memoriter.extensions.langgraph.items import items_of
from memoriter.extensions.langgraph.items.store import Put
from memoriter.memory import Memory

if TYPE_CHECKING:
    from memoriter.server.http.gateway import SettingsLoader

#: The kinds of entities. A memory with several ids belongs to the first kind that is given.
KINDS = ("user_id", "agent_id", "app_id", "run_id")
#: Memories that stay open.
MAX_OPEN = 32
PLAIN = re.compile(r"[a-z0-9_-]{1,40}")
DETAILS, SESSIONS, NAME = ("mem0", "details"), ("mem0", "sessions"), ("mem0", "name")

Entity = tuple[str, str]


def agent_name(entity: Entity) -> str:
    """Return the name of the agent that is the memory of an entity."""
    kind, name = entity
    short = kind.removesuffix("_id")
    if PLAIN.fullmatch(name):
        return f"mem0-{short}-{name}"
    encoded = base64.b32encode(name.encode()).decode().rstrip("=").lower()
    if len(encoded) > 40:  # the memory keeps a long name itself
        return f"mem0-{short}_{hashlib.sha256(name.encode()).hexdigest()[:40]}"
    return f"mem0-{short}.{encoded}"


def entity_of(agent: str) -> Entity | None:
    """Return the entity whose memory an agent is, or None. A long name is empty."""
    found = re.fullmatch(r"mem0-(user|agent|app|run)([-._])(.+)", agent)
    if found is None:
        return None
    short, mark, name = found.groups()
    if mark == ".":
        name = base64.b32decode(name.upper() + "=" * (-len(name) % 8)).decode()
    return f"{short}_id", "" if mark == "_" else name


def entity_in(memory: Memory) -> Entity:
    """Return the entity whose memory this is."""
    kind, name = entity_of(memory.settings.agent) or ("user_id", "")
    kept = None if name else items_of(memory).get(NAME, "name")
    return kind, str(kept.value["name"]) if kept else name


def keep_name(memory: Memory, entity: Entity) -> None:
    """Store the name of an entity that is too long for the name of an agent."""
    if entity_in(memory) != entity:
        items_of(memory).put([Put(NAME, "name", {"name": entity[1]})])


class Spaces:
    """Opens the memories of entities, and keeps the last ones open."""

    def __init__(self, loader: SettingsLoader) -> None:
        self._loader = loader
        self._lock = threading.Lock()
        self._open = OrderedDict[str, Memory]()
        self._users = dict[str, int]()

    @contextmanager
    def use(self, agent: str) -> Iterator[Memory]:
        """Yield the memory of an entity. It stays open at least until the end of the block."""
        with self._lock:
            memory = self._open.pop(agent, None) or self._opened(agent)
            self._open[agent] = memory
            self._users[agent] = self._users.get(agent, 0) + 1
            idle = [name for name in self._open if not self._users.get(name)]
            closed = [self._open.pop(name) for name in idle[: max(0, len(self._open) - MAX_OPEN)]]
        for other in closed:
            other.close()
        try:
            yield memory
        finally:
            with self._lock:
                self._users[agent] -= 1

    def _opened(self, agent: str) -> Memory:
        settings, arguments = self._loader.settings, dict(self._loader.arguments)
        own: dict[str, object] = {"agent": agent, "home": settings.home, "sessions.enabled": True}
        if not settings.store.is_shared:
            own["workspace"] = self._folder / agent / "notes"
            Path(str(own["workspace"])).mkdir(parents=True, exist_ok=True)
        return Memory.open(settings=load(config=self._loader.config, arguments={**arguments, **own}))

    @property
    def _folder(self) -> Path:
        return self._loader.settings.agent_folder.parent

    def exists(self, agent: str) -> bool:
        """Return whether anything was ever added for an entity."""
        return agent in self._open or (self._folder / agent).is_dir() or self._loader.settings.store.is_shared

    def agents(self) -> list[str]:
        """Return the agents that are memories of entities on this machine."""
        names = (folder.name for folder in self._folder.glob("mem0-*"))
        return sorted(name for name in names if entity_of(name))

    def close(self) -> None:
        """Close every memory."""
        with self._lock:
            memories = list(self._open.values())
            self._open.clear()
        for memory in memories:
            memory.close()


def details(memory: Memory, entry_id: str) -> Mapping[str, Any]:
    """Return what was stored beside an entry: metadata and the ids of entities."""
    item = items_of(memory).get(DETAILS, entry_id)
    return item.value if item else {}


def keep_details(memory: Memory, entry_id: str, value: Mapping[str, Any] | None) -> None:
    """Store what belongs to an entry, or delete it."""
    items_of(memory).put([Put(DETAILS, entry_id, value)])


def keep_session(memory: Memory, session: str) -> None:
    """Remember the name of a session, so that its transcript can be deleted."""
    known = items_of(memory).get(SESSIONS, "names")
    names = {**(known.value if known else {}), session: True}
    items_of(memory).put([Put(SESSIONS, "names", names)])


def sessions(memory: Memory) -> list[str]:
    """Return the names of the sessions that were recorded."""
    known = items_of(memory).get(SESSIONS, "names")
    return list(known.value) if known else []


def split_id(memory_id: str) -> tuple[str, str]:
    """Return the agent and the place in its memory that an id of the API names."""
    agent, colon, place = memory_id.partition(":")
    if colon and entity_of(agent) is not None:
        return agent, place
    try:
        uuid.UUID(memory_id)
    except ValueError:
        raise BadArgument(f"{memory_id[:100]!r} is not the id of a memory.", "memory_id") from None
    raise NotFound(f"Memory {memory_id[:100]!r} not found.")
