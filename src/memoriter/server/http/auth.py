"""Tokens: who may call the gateway, for which agents, and what they may do.

The file holds digests alone; a token is shown once, when it is made. It is looked at before every call, so what is
revoked is refused at once, by every gateway on the same home. A file that cannot be read lets nobody in.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoriter import logs
from memoriter.errors import LockTimeout, MemoriterError, NotFound, StoreBroken
from memoriter.files import durable
from memoriter.files.locks import file_lock
from memoriter.tools.tool import ACCESS, Access


def folder(path: Path) -> Path:
    """The folder, made if it is missing, and those above it that are: for the owner alone."""
    for missing in reversed([part for part in (path, *path.parents) if not part.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)
    return path


def check(path: Path) -> None:
    """Raise where somebody else may write the file; what they may only read is closed to them from now on."""
    stat = path.stat()
    if sys.platform == "win32" or not stat.st_mode & 0o077:
        return
    if stat.st_mode & 0o022:
        raise StoreBroken(f"others may write {path}: look at what stands in it, then `chmod 600` it.")
    path.chmod(0o600)
    log.warning("others could read %s; it is closed to them now", path)


def write(path: Path, data: object) -> None:
    """Put data as JSON in the file's place: a reader sees the old or the new one, and what was revoked stays so."""
    durable.write(path, json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "surrogateescape"))


LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_USUAL = {"http": 80, "https": 443}


class Places:
    """The hosts and origins of one gateway."""

    def __init__(self, host: str, port: int, allowed: Iterable[str] = ()) -> None:
        named = [] if is_everywhere(host) else [bracketed(host)]
        local = [name for host in (*LOOPBACK, *named) for name in _with_port(host, port)]
        proxied = [name for host in allowed for name in _also_usual(host, port)]
        self.hosts = frozenset((*local, *proxied))
        # Behind a proxy the page comes by https; nobody else has our port on this machine.
        self.origins = frozenset(f"{scheme}://{name}" for name in self.hosts for scheme in _USUAL)

    def knows_host(self, host: str | None) -> bool:
        """Whether this is a name of ours."""
        return host is not None and host.lower() in self.hosts

    def knows_origin(self, origin: str | None) -> bool:
        """Whether a request comes from a page of ours, or from no page."""
        return origin is None or origin.lower() in self.origins


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_everywhere(host: str) -> bool:
    """Whether the address stands for all that the machine has."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def bracketed(host: str) -> str:
    """The host as it stands in a URL."""
    return f"[{host.lower()}]" if ":" in host and not host.startswith("[") else host.lower()


def _with_port(host: str, port: int) -> list[str]:
    return [f"{host}:{port}", *([host] if port in _USUAL.values() else [])]


def _also_usual(host: str, port: int) -> list[str]:
    """A name that was allowed: as it stands, and with our port where it names none."""
    return [host] if host.rpartition("]")[2].count(":") else [host, f"{host}:{port}"]


log = logs.get("http.tokens")

PREFIX = "mmr_"  #: so that scanners for leaked secrets can know one
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
                raise NotFound(f"There is no token {token_id!r}; `memoriter token list` shows them.")
            self._write([token for token in known if token.id != token_id])
        return gone

    @contextmanager
    def _changing(self) -> Iterator[tuple[Token, ...]]:
        """The tokens, while nobody else changes them."""
        folder(self.file.parent)
        try:
            with file_lock(self.file.with_name("tokens.lock"), LOCK_S):
                yield self._read() if self.file.exists() else ()
        except LockTimeout as error:
            raise MemoriterError("Another process is changing the tokens; try again.") from error

    def _read(self) -> tuple[Token, ...]:
        try:
            check(self.file)
            data = json.loads(self.file.read_text("utf-8"))
            return tuple(_token(row) for row in data["tokens"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            mend = "delete it, and `memoriter token create` makes a new one"
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
        write(self.file, {"version": 1, "tokens": rows})


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


TICKET_S = 600.0  #: a link that was printed and not followed ends by itself
BROWSER_S = 12 * 3600.0  #: a browser asks for a new link after so long
MOST_BROWSERS = 64


class Tickets:
    """The links that are not used yet, of one home."""

    def __init__(self, home: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = home / "gateway" / "tickets"
        self._clock = clock

    def issue(self) -> str:
        """A new ticket."""
        self._sweep()
        ticket = secrets.token_urlsafe(32)
        folder(self._folder)
        write(self._folder / digest_of(ticket), {"until": self._clock() + TICKET_S})
        return ticket

    def use(self, ticket: str) -> bool:
        """Whether it was good; it is not any more."""
        file = self._folder / digest_of(ticket)
        try:
            until = float(json.loads(file.read_text("utf-8"))["until"])
            file.unlink()  # of two who try, one fails here
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return self._clock() < until

    def _sweep(self) -> None:
        """Take away what nobody followed."""
        try:
            files = list(os.scandir(self._folder))
        except OSError:
            return
        for file in files:
            try:
                if file.stat().st_mtime < self._clock() - 2 * TICKET_S:
                    Path(file.path).unlink()
            except OSError:
                continue


class Browsers:
    """The browsers that came in by a link; each counts as the owner."""

    def __init__(self, home: Path, port: int, *, clock: Callable[[], float] = time.time) -> None:
        self.cookie = f"memoriter-{port}"  #: browsers do not tell ports apart, and gateways must not mix
        self.tickets = Tickets(home, clock=clock)
        self._clock = clock
        self._until: dict[str, float] = {}  #: by the digest of the cookie

    def enter(self, ticket: str) -> str | None:
        """The cookie for a ticket; None when it is not good."""
        if not self.tickets.use(ticket):
            return None
        now = self._clock()
        self._until = {key: until for key, until in self._until.items() if until > now}
        while len(self._until) >= MOST_BROWSERS:
            del self._until[min(self._until, key=self._until.__getitem__)]
        value = secrets.token_urlsafe(32)
        self._until[digest_of(value)] = now + BROWSER_S
        return value

    def caller(self, value: str) -> Caller | None:
        """Who shows this cookie."""
        if not value:
            return None
        digest = digest_of(value)  # looked up by its digest: what a lookup's time tells is of no use
        until = self._until.get(digest, 0.0)
        return Caller(f"page-{digest[:8]}", "admin", by_cookie=True) if self._clock() < until else None

    def still(self, caller: Caller) -> bool:
        """Whether the browser of an earlier call is still let in."""
        now = self._clock()
        return any(caller.id == f"page-{key[:8]}" and until > now for key, until in self._until.items())
