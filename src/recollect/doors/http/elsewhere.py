"""What other processes change: another gateway, the command line, a hook. Listeners are told of that too.

While somebody listens to an agent, its database of entries is looked at every second; files are watched already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.doors.http.agents import Agents
    from recollect.doors.http.events import Hub

EVERY_S = 1.0

Sign = tuple[tuple[int, int], ...]


async def look_elsewhere(hub: Hub, agents: Agents) -> None:
    """Look until cancelled."""
    known: dict[str, Sign] = {}
    while True:
        await asyncio.sleep(EVERY_S)
        heard = hub.heard()
        for name in heard:
            opened = agents[name].opened
            if opened is None:
                continue
            now = tuple(_signs(opened.settings.agent_folder / "memory.db"))
            # What this process did itself was told already.
            if name in known and known[name] != now and hub.quiet_s(name) > 2 * EVERY_S:
                hub.publish(name, "entries", operation=None)
            known[name] = now
        known = {name: sign for name, sign in known.items() if name in heard}


def _signs(database: Path) -> Iterator[tuple[int, int]]:
    for file in (database, database.with_name(f"{database.name}-wal")):
        try:
            stat = file.stat()
            yield stat.st_mtime_ns, stat.st_size
        except OSError:
            yield 0, 0
