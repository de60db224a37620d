"""A `Session` of the OpenAI Agents SDK that stores a conversation as a transcript, which memoriter indexes.

Pass it to a run as ``Runner.run(agent, "…", session=MemoriterSession("user-7", memory))``. The next run of the same
session, in this process or another, continues the conversation. A search finds all conversations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from memoriter import logs
from memoriter.errors import FrameworkMissing, MemoriterError

try:
    from agents import SessionSettings, TResponseInputItem
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
except ImportError as error:
    raise FrameworkMissing("The OpenAI Agents SDK", "openai-agents") from error

if TYPE_CHECKING:
    from memoriter.memory import Memory

__all__ = ["MemoriterSession"]

log = logs.get("frameworks")

P = ParamSpec("P")
T = TypeVar("T")


class MemoriterSession:
    """One conversation of an agent. It has the methods of the SDK's `Session` protocol.

    ``capture=True`` also extracts entries from the user's messages. A turn that a hook captures too counts once.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        capture: bool = False,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = coerce_session_settings(
            session_settings or SessionSettings()
        )
        self._memory = memory
        self._journal = memory.transcript_writer(session_id)
        self._capture = capture

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items of the conversation, oldest first. With a limit, return the last ones."""
        last = resolve_session_limit(limit, self.session_settings)
        return cast("list[TResponseInputItem]", await asyncio.to_thread(self._journal.items, last))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items. They are on disk when this returns."""
        await _run_to_end(self._add, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the last item."""
        return cast("TResponseInputItem | None", await _run_to_end(self._pop))

    async def clear_session(self) -> None:
        """Remove all items."""
        await _run_to_end(self._clear)

    def _add(self, items: list[TResponseInputItem]) -> None:
        plain = [dict(item) for item in items]
        self._journal.add(plain)
        self._memory.mark_changed()
        if self._capture:
            try:
                self._memory.capture_messages(plain, session=self.session_id, wait=True)
            except MemoriterError as error:  # the conversation itself is stored
                log.warning("could not capture session %s: %s", self.session_id, error)

    def _pop(self) -> object:
        item = self._journal.pop()
        self._memory.mark_changed()
        return item

    def _clear(self) -> None:
        self._journal.clear()
        self._memory.mark_changed()


async def _run_to_end(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a change in a thread. If the caller is cancelled, wait until the change is finished."""
    task = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
