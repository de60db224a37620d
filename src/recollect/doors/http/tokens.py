"""Tokens: who may call the gateway, for which agents, and what they may do.

The file holds digests alone; a token is shown once, when it is made. It is looked at before every call, so what is
revoked is refused at once, by every gateway on the same home. A file that cannot be read lets nobody in.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect import logs
from recollect.doors.http import private
from recollect.doors.tooling import ACCESS, Access
from recollect.errors import NotFound, RecollectError, StoreBroken

log = logs.get("http.tokens")

PREFIX = "rct_"  #: so that scanners for leaked secrets can know one
LOCK_S = 10.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: what they may do, and for which agents."""

    id: str
    access: Access
    agents: frozenset[str] | None = None  #: None: every agent
    by_cookie: bool = False

    def may_see(self, agent: str) -> bool:
        """Whether this agent exists for them."""
        return self.agents is None or agent in self.agents


@dataclass(frozen=True, slots=True)
class Token:
    """One line of the file."""

    id: str
    digest: str
    access: Access
    agents: tuple[str, ...]  #: none: every agent
    name: str
    created_at: float

    @property
    def caller(self) -> Caller:
        """Whoever shows it."""
        return Caller(self.id, self.access, frozenset(self.agents) or None)


class Tokens:
    """The tokens of one home."""

    def __init__(self, home: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.file = home / "gateway" / "tokens.json"
        self._clock = clock
        self._seen: tuple[int, int, int, int] | None = None
        self._known: tuple[Token, ...] = ()

    def caller(self, token: str) -> Caller | None:
        """Who shows this token; every digest is compared, so that time says nothing."""
        digest = digest_of(token)
        matches = [known for known in self.known() if hmac.compare_digest(known.digest, digest)]
        return matches[0].caller if matches else None

    def still(self, caller: Caller) -> bool:
        """Whether the token of an earlier call is still good for just that."""
        return any(known.caller == caller for known in self.known())

    def known(self) -> tuple[Token, ...]:
        """Every token, from the file as it is now."""
        try:
            stat = self.file.stat()
        except FileNotFoundError:
            return ()
        except OSError as error:
            log.error("the tokens cannot be read, so nobody is let in: %s", error)
            return ()
        seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_mode)
        if seen != self._seen:
            try:
                self._known = self._read()
            except StoreBroken as error:
                log.error("nobody is let in: %s", error)
                self._known = ()
            self._seen = seen
        return self._known

    def listed(self) -> tuple[Token, ...]:
        """Every token, for the owner; raises where `known` lets nobody in."""
        return self._read() if self.file.exists() else ()

    def create(self, access: Access, *, agents: Sequence[str] = (), name: str = "") -> tuple[Token, str]:
        """A new token, and its secret, which is told here and never again."""
        secret = PREFIX + secrets.token_urlsafe(32)
        with self._changing() as known:
            made = Token(
                secrets.token_hex(4),
                digest_of(secret),
                access,
                tuple(dict.fromkeys(agents)),
                name,
                self._clock(),
            )
            self._write([*known, made])
        return made, secret

    def first(self) -> str | None:
        """The secret of an owner's token where there is no token at all; None where there is one."""
        with self._changing() as known:
            if known:
                return None
            secret = PREFIX + secrets.token_urlsafe(32)
            made = Token(secrets.token_hex(4), digest_of(secret), "admin", (), "first", self._clock())
            self._write([made])
        return secret

    def revoke(self, token_id: str) -> Token:
        """Let a token in no more."""
        with self._changing() as known:
            gone = next((token for token in known if token.id == token_id), None)
            if gone is None:
                raise NotFound(f"There is no token {token_id!r}; `recollect token list` shows them.")
            self._write([token for token in known if token.id != token_id])
        return gone

    @contextmanager
    def _changing(self) -> Iterator[tuple[Token, ...]]:
        """The tokens, while nobody else changes them."""
        from filelock import FileLock, Timeout

        private.folder(self.file.parent)
        try:
            with FileLock(self.file.with_name("tokens.lock"), timeout=LOCK_S, mode=0o600):
                yield self._read() if self.file.exists() else ()
        except Timeout as error:
            raise RecollectError("Another process is changing the tokens; try again.") from error

    def _read(self) -> tuple[Token, ...]:
        try:
            private.check(self.file)
            data = json.loads(self.file.read_text("utf-8"))
            return tuple(_token(row) for row in data["tokens"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            mend = "delete it, and `recollect token create` makes a new one"
            raise StoreBroken(
                f"the tokens in {self.file} cannot be read ({type(error).__name__}); {mend}."
            ) from error

    def _write(self, tokens: Sequence[Token]) -> None:
        rows = [
            {
                "id": token.id,
                "sha256": token.digest,
                "access": token.access,
                "agents": list(token.agents),
                "name": token.name,
                "createdAt": token.created_at,
            }
            for token in tokens
        ]
        private.write(self.file, {"version": 1, "tokens": rows})


def digest_of(token: str) -> str:
    """What is kept of a token; it is random and long, so one round is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _token(row: dict[str, Any]) -> Token:
    if row["access"] not in ACCESS or not re.fullmatch(r"[0-9a-f]{64}", row["sha256"]):
        raise ValueError("not a token")
    agents = tuple(str(agent) for agent in row["agents"])
    return Token(
        str(row["id"]), row["sha256"], row["access"], agents, str(row["name"]), float(row["createdAt"])
    )
