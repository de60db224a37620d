"""What other processes change: another gateway, the command line, a hook. Listeners are told of that too.

The database of entries of every open memory is looked at every second; files are watched already. What this process
did itself was told when it was done: the database knows whose change it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from recollect import logs
from recollect.async_memory import in_thread
from recollect.errors import RecollectError

if TYPE_CHECKING:
    from recollect.doors.http.agents import Agents, Opened
    from recollect.doors.http.events import Hub

log = logs.get("http.elsewhere")

EVERY_S = 1.0

Sign = tuple[int, ...]  #: by what one sees that the database has changed
Version = tuple[int, int]  #: which memory is open, and its database's count of others' changes


async def look_elsewhere(hub: Hub, agents: Agents) -> None:
    """Look until cancelled; also while nobody listens, for those who will come back."""
    known: dict[str, tuple[Sign, Version | None]] = {}
    while True:
        await asyncio.sleep(EVERY_S)
        for name, live in agents.items():
            opened = live.opened
            if opened is None:
                continue
            sign = tuple(_signs(opened.settings.agent_folder / "memory.db"))
            if name in known and known[name][0] == sign:
                continue
            try:
                version = await in_thread(_version, opened)
            except (RecollectError, OSError) as error:
                log.warning("the agent %s: what others changed cannot be seen: %s", name, error)
                continue
            if name in known and known[name][1] != version:
                hub.publish(name, "entries", operation=None)
            known[name] = sign, version


def _version(opened: Opened) -> Version | None:
    """None while nothing was learned yet."""
    if not (opened.settings.agent_folder / "memory.db").exists():
        return None
    return id(opened), opened.service.memory.keeper.entries.database.changes_of_others()


def _signs(database: Path) -> Iterator[int]:
    for file in (database, database.with_name(f"{database.name}-wal")):
        try:
            stat = file.stat()
            yield from (stat.st_mtime_ns, stat.st_size)
        except OSError:
            yield 0
