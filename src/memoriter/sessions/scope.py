"""Rules for which sessions may use the memory.

By default, the memory is available in direct chats only, because notes are private. A chat is direct only if its key
says so, or has a form that programs give their own sessions. Rules are tried in order, and the first match decides. A
session that is not allowed gets an empty answer instead of an error, so that members of a group do not learn that there
are notes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from memoriter import logs

_SHARED = {
    **dict.fromkeys(
        ("group", "groups", "supergroup", "room", "rooms", "space", "team", "guild", "server"), "group"
    ),
    **dict.fromkeys(("channel", "channels", "stream", "topic", "public", "broadcast", "forum"), "channel"),
}
_DIRECT = {"main", "direct", "dm", "dms", "im", "private"}
#: Marks of groups in the ids of WhatsApp, Matrix, IRC and Telegram.
_SHARED_ID = re.compile(r".*@g\.us|.*@broadcast|[!#&+@].*|-\d+|.*@(?:conference|muc)\..*", re.DOTALL)
_WORDS = re.compile(r"[^\W_]+")
#: Keys without a channel that programs give their own sessions: a UUID or another long hexadecimal id, or plain words
#: with short numbers ("work-2026"). The ids of chat services have other forms: C024BE91L, oc_5ce6d, spaces/AAA.
_OWN_SESSION = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|(?:_NAME(?:[-_. ]_NAME|-[0-9a-f]{4,12}){0,9})?".replace(
        "_NAME", r"(?:[^\W\d_]{1,40}\d{0,4}|\d{1,8})"
    )
)
#: Characters of the shortest id that is not a word.
_MIN_ID = 32
_SHARED_NAME = re.compile(
    "group|channel|room|meeting|conference|newsletter|guild|team|space|stream|forum|topic|public|broadcast|lobby"
    "|general|everyone|all.?hands|stand.?up|town.?hall|announce|community|committee|crew|squad|群|频道|頻道|大家"
    r"|[组組]$|班[级級]|^[a-z]{1,2}(?:\d{3,}$|_)"  # the id of a chat, such as C0123 or oc_5ce6d
    r"|mailing|^(?:(?:pr|mr|issue|ticket)s?|telegram|discord|slack|whatsapp|feishu|lark|wechat|zulip)[-_. ]?\d+$"
)
#: Automated work without a person in the chat. Its output may go anywhere, so it is not a direct chat.
_UNATTENDED = {"subagent", "cron", "hook", "webhook", "heartbeat"}
#: Words in a key that are not channels.
_NO_CHANNEL = {"main", "direct", "dm", "thread", *_SHARED, *_UNATTENDED}


class SessionKey(NamedTuple):
    """A parsed session key, in lower case."""

    whole: str
    #: The key without "agent:<id>:".
    rest: str
    channel: str | None
    #: "direct", "group", "channel", "unattended" or "unknown".
    chat_type: str

    @classmethod
    def parse(cls, text: str) -> SessionKey:
        """Parse a session key. Any text is valid."""
        whole = text.strip().lower()
        parts = whole.split(":")
        hosted = parts[0] == "agent" and len(parts) > 2
        if hosted:
            parts = parts[2:]
        channel = parts[0] if len(parts) > 1 and parts[0] not in _NO_CHANNEL else None
        return cls(whole, ":".join(parts), channel, _chat_type(parts, hosted=hosted))


def _chat_type(parts: list[str], *, hosted: bool) -> str:
    # A key that mentions a group anywhere is a group. If in doubt, notes are hidden.
    for part in parts:
        for word in _WORDS.findall(part):
            if word in _SHARED:
                return _SHARED[word]
    if _UNATTENDED.intersection(parts):
        return "unattended"
    # The part after "dm" or "direct" is a person's id, such as "+15551234567" or "@anna:example.org".
    named = [place for place, part in enumerate(parts) if part in _DIRECT]
    if any(_SHARED_ID.fullmatch(part) for part in parts[: named[0] if named else None]):
        return "group"
    if named:
        return "direct"
    if len(parts) > 1 or not _OWN_SESSION.fullmatch(parts[0]) or _SHARED_NAME.search(parts[0]):
        return "unknown"
    # A host that names its agent may pass on the id of a chat, such as "C1". The names that people choose are words.
    is_word = not any(map(str.isdigit, parts[0])) or len(parts[0]) >= _MIN_ID
    return "direct" if is_word or not hosted else "unknown"


log = logs.get("sessions")

ScopeAction = Literal["allow", "deny"]

#: Refused sessions that are remembered, so that each is logged once.
MAX_LOGGED_SESSIONS = 1000


@dataclass(frozen=True, slots=True)
class ScopeRule:
    """Allow or deny sessions of one kind. Conditions that are None match every session."""

    action: ScopeAction
    #: Such as "telegram" or "slack".
    channel: str | None = None
    #: "direct", "group" or "channel".
    chat_type: str | None = None
    #: Prefix of the key after "agent:<id>:", or of the whole key if the prefix starts with "agent:".
    key_prefix: str | None = None

    def matches(self, key: SessionKey) -> bool:
        """Return whether all conditions of the rule hold."""
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
    """A list of rules, and the action if none matches."""

    rules: Sequence[ScopeRule] = (ScopeRule("allow", chat_type="direct"),)
    default: ScopeAction = "deny"

    def allows(self, session_key: str | None) -> bool:
        """Return whether a session may use the memory. No key means the owner's terminal or program."""
        if session_key is None:
            return True
        key = SessionKey.parse(session_key)
        return next((rule.action for rule in self.rules if rule.matches(key)), self.default) == "allow"


class ScopeCheck:
    """Checks sessions against a scope, and logs each refused session once."""

    def __init__(self, scope: Scope | None = None) -> None:
        self.scope = scope or Scope()
        self._refused: dict[str, None] = {}
        self._lock = threading.Lock()

    def allows(self, session_key: str | None) -> bool:
        """Return whether a session may use the memory."""
        if self.scope.allows(session_key):
            return True
        with self._lock:
            known = session_key in self._refused
            self._refused[session_key or ""] = None
            if len(self._refused) > MAX_LOGGED_SESSIONS:
                self._refused.pop(next(iter(self._refused)))
        if not known:
            log.info("session %r may not use this memory (memory.scope); it gets empty answers", session_key)
        return False
