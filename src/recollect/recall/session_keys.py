"""What a session key tells: whose session it is, on which channel, in what kind of chat.

Keys look like ``agent:main:telegram:group:42`` or ``agent:main:main``; hosts with keys of their own (a UUID, say) have
direct chats only. Whether such a chat may see anything is not decided here.
"""

from __future__ import annotations

from typing import NamedTuple

_SHARED = {"group": "group", "supergroup": "group", "room": "group", "channel": "channel"}
#: Work that nobody chats with: what it reads may end up anywhere, so it counts as no direct chat.
_UNATTENDED = {"subagent", "cron", "hook", "webhook", "heartbeat"}
#: Words of a key that name no channel.
_NO_CHANNEL = {"main", "direct", "dm", "thread", *_SHARED, *_UNATTENDED}


class SessionKey(NamedTuple):
    """A session key in parts, all in small letters."""

    whole: str
    rest: str  #: without "agent:<id>:"
    channel: str | None
    chat_type: str  #: "direct", "group", "channel" or "unattended"

    @classmethod
    def parse(cls, text: str) -> SessionKey:
        """The parts of a key; every text is one."""
        whole = text.strip().lower()
        parts = whole.split(":")
        if parts[0] == "agent" and len(parts) > 2:
            parts = parts[2:]
        channel = parts[0] if len(parts) > 1 and parts[0] not in _NO_CHANNEL else None
        return cls(whole, ":".join(parts), channel, _chat_type(parts))


def _chat_type(parts: list[str]) -> str:
    # A key that names a group anywhere is a group's: a mistake must hide notes, not show them.
    for part in parts:
        if part in _SHARED:
            return _SHARED[part]
    return "unattended" if _UNATTENDED.intersection(parts) else "direct"
