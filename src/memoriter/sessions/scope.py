"""Which sessions may see this memory at all.

Notes are private: unless the owner says otherwise they are found in direct chats and nowhere else. Rules are tried in
order and the first that matches decides. A session that is not allowed gets an empty answer, not an error, so that
nobody in a group learns that there was something to find.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from memoriter import logs

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


log = logs.get("managers")

Action = Literal["allow", "deny"]

#: So many refused sessions are remembered, to be logged once each.
MAX_LOGGED_SESSIONS = 1000


@dataclass(frozen=True, slots=True)
class ScopeRule:
    """What is done with sessions of this kind; what is not given matches every session."""

    action: Action
    channel: str | None = None  #: "telegram", "slack"
    chat_type: str | None = None  #: "direct", "group", "channel"
    key_prefix: str | None = (
        None  #: of the key below "agent:<id>:", or of the whole key if it begins with "agent:"
    )

    def matches(self, key: SessionKey) -> bool:
        """Whether everything that the rule names is so."""
        if self.channel is not None and self.channel.lower() != key.channel:
            return False
        if self.chat_type is not None and self.chat_type.lower() != key.chat_type:
            return False
        if self.key_prefix is None:
            return True
        prefix = self.key_prefix.lower()
        return (key.whole if prefix.startswith("agent:") else key.rest).startswith(prefix)


@dataclass(frozen=True, slots=True)
class Scope:
    """The rules, and what holds when none matches."""

    rules: Sequence[ScopeRule] = (ScopeRule("allow", chat_type="direct"),)
    default: Action = "deny"

    def allows(self, session_key: str | None) -> bool:
        """Whether this session may search. No key means the owner's own terminal or program."""
        if session_key is None:
            return True
        key = SessionKey.parse(session_key)
        return next((rule.action for rule in self.rules if rule.matches(key)), self.default) == "allow"


class ScopeCheck:
    """A scope that says once for each session that it was refused."""

    def __init__(self, scope: Scope | None = None) -> None:
        self.scope = scope or Scope()
        self._refused: dict[str, None] = {}
        self._lock = threading.Lock()

    def admits(self, session_key: str | None) -> bool:
        """Whether this session may search; the first refusal is logged."""
        if self.scope.allows(session_key):
            return True
        with self._lock:
            known = session_key in self._refused
            self._refused[session_key or ""] = None
            if len(self._refused) > MAX_LOGGED_SESSIONS:
                self._refused.pop(next(iter(self._refused)))
        if not known:
            log.info(
                "session %r may not search this memory (memory.scope); it is answered with nothing",
                session_key,
            )
        return False
