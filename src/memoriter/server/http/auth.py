"""Authentication: tokens of programs, cookies of browsers, and the hosts under which the gateway answers.

A token file contains only digests. A token itself is shown once, when it is created. The gateway reads the file before
every call, so every gateway on the same home rejects a revoked token immediately. A file that cannot be read allows no
token at all.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from memoriter import logs
from memoriter.errors import LockTimeout, MemoriterError, NotFound, StoreBroken, StoreError
from memoriter.files import durable, shared
from memoriter.files.locks import file_lock
from memoriter.files.platform import is_private, make_private
from memoriter.tools.tool import Access, grants

log = logs.get("http.auth")


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller with its access and its agents."""

    id: str
    access: Access
    #: None: every agent.
    agents: frozenset[str] | None = None
    by_cookie: bool = False
    #: The name of its token.
    name: str = ""

    def may_see(self, agent: str) -> bool:
        """Return whether the caller may use this agent."""
        return self.agents is None or agent in self.agents


# ---- private files ------------------------------------------------------------------------------------------------


def make_private_folder(path: Path) -> Path:
    """Create a folder that only the owner can read, and its missing parents. Return it."""
    durable.make_folder(path)
    if not is_private(path):
        make_private(path)
    return path


def check_private(path: Path) -> None:
    """Raise if other users may write a file. If they may only read it, take that permission away."""
    if is_private(path):
        return
    if sys.platform != "win32" and path.stat().st_mode & 0o022:
        raise StoreBroken(f"Other users may write {path}. Check its contents, then run `chmod 600` on it.")
    make_private(path)
    log.warning("other users could read %s; its permissions were restricted", path)


def write_json(path: Path, data: object) -> None:
    """Replace a file atomically and durably with JSON, so that a revoked token stays revoked."""
    durable.write(path, json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "surrogateescape"))


# ---- hosts and origins --------------------------------------------------------------------------------------------

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
DEFAULT_PORTS = {"http": 80, "https": 443}


class AllowedHosts:
    """The values of the Host and Origin headers that one gateway accepts."""

    def __init__(self, host: str, port: int, allowed: Collection[str] = ()) -> None:
        own = [] if is_unspecified(host) else [url_host(host)]
        local = (*LOOPBACK_HOSTS, *own)
        # A browser leaves out the port that its scheme implies, and a proxy may have one of its own.
        without_port = local if port in DEFAULT_PORTS.values() else ()
        unnamed = [host for host in allowed if ":" not in host.rpartition("]")[2]]
        self.hosts = frozenset((*(f"{host}:{port}" for host in (*local, *unnamed)), *without_port, *allowed))
        # Behind a proxy, the page is served by https.
        self.origins = frozenset(f"{scheme}://{name}" for name in self.hosts for scheme in DEFAULT_PORTS)

    def allows_host(self, host: str | None) -> bool:
        """Return whether the Host header names this gateway."""
        return host is not None and host.lower() in self.hosts

    def allows_origin(self, origin: str | None) -> bool:
        """Return whether the request comes from the gateway's page, or not from a page at all."""
        return origin is None or origin.lower() in self.origins


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_unspecified(host: str) -> bool:
    """Return whether the address means all addresses of the machine, such as 0.0.0.0."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def url_host(host: str) -> str:
    """Return the host as it is written in a URL."""
    return f"[{host.lower()}]" if ":" in host and not host.startswith("[") else host.lower()


# ---- tokens -------------------------------------------------------------------------------------------------------

#: Scanners for leaked secrets recognize a token by it.
PREFIX = "mmr_"
LOCK_TIMEOUT_S = 10.0


class Token(BaseModel):
    """One token of the file, without its secret."""

    model_config = ConfigDict(frozen=True)

    id: str
    digest: str = Field(alias="sha256", pattern=r"^[0-9a-f]{64}$")
    access: Access
    #: Empty: every agent.
    agents: tuple[str, ...]
    name: str
    created_at: float = Field(alias="createdAt")

    @property
    def caller(self) -> Caller:
        """Return the caller that sends this token."""
        return Caller(self.id, self.access, frozenset(self.agents) or None, name=self.name)


class _TokenFile(BaseModel):
    version: int = 1
    tokens: tuple[Token, ...]


class Tokens:
    """The tokens of one home."""

    def __init__(self, home: Path) -> None:
        self.file = home / "gateway" / "tokens.json"
        self._file_state: tuple[int, int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()

    def caller(self, token: str) -> Caller | None:
        """Return the caller with this token. All digests are compared, so that the time reveals nothing."""
        digest = digest_of(token)
        matches = [known for known in self.current() if hmac.compare_digest(known.digest, digest)]
        return matches[0].caller if matches else None

    def is_valid(self, caller: Caller) -> bool:
        """Return whether the token of an earlier request still exists, with its access and the same agents."""
        callers = (token.caller for token in self.current() if token.id == caller.id)
        return any(one.agents == caller.agents and grants(one.access, caller.access) for one in callers)

    def current(self) -> tuple[Token, ...]:
        """Return the tokens in the file as it is now. A file that cannot be read contains none."""
        try:
            shared.refresh(self.file)
        except StoreError as error:
            # While the server is away, a token can be neither created nor revoked, so the known ones stay valid.
            log.warning("the tokens may be outdated: %s", error)
        try:
            stat = self.file.stat()
        except FileNotFoundError:
            return ()
        except OSError as error:
            log.error("cannot read the tokens, so all requests are rejected: %s", error)
            return ()
        state = (stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_mode)
        if state != self._file_state:
            try:
                self._tokens = self._read()
            except StoreBroken as error:
                log.error("all requests are rejected: %s", error)
                self._tokens = ()
            self._file_state = state
        return self._tokens

    def list(self) -> tuple[Token, ...]:
        """Return the tokens for the owner. Raise if the file cannot be read."""
        shared.refresh(self.file)
        return self._read() if self.file.exists() else ()

    def create(self, access: Access, *, agents: Sequence[str] = (), name: str = "") -> tuple[Token, str]:
        """Create a token. Return it with its secret, which cannot be read again."""
        secret, token = self._new(access, tuple(dict.fromkeys(agents)), name)
        with self._changing() as tokens:
            self._write([*tokens, token])
        return token, secret

    def create_first(self) -> str | None:
        """Create an `admin` token if there is no token at all. Return its secret, or None."""
        with self._changing() as tokens:
            if tokens:
                return None
            secret, token = self._new("admin", (), "first")
            self._write([token])
        return secret

    def revoke(self, token_id: str) -> Token:
        """Revoke a token and return it."""
        with self._changing() as tokens:
            revoked = next((token for token in tokens if token.id == token_id), None)
            if revoked is None:
                raise NotFound(f"Token {token_id!r} not found. `memoriter token list` lists all tokens.")
            self._write([token for token in tokens if token.id != token_id])
        return revoked

    def _new(self, access: Access, agents: tuple[str, ...], name: str) -> tuple[str, Token]:
        secret = PREFIX + secrets.token_urlsafe(32)
        token = Token(
            id=secrets.token_hex(4),
            sha256=digest_of(secret),
            access=access,
            agents=agents,
            name=name,
            createdAt=time.time(),
        )
        return secret, token

    @contextmanager
    def _changing(self) -> Iterator[tuple[Token, ...]]:
        """Return the tokens, and keep other processes from changing them."""
        make_private_folder(self.file.parent)
        try:
            with file_lock(self.file.with_name("tokens.lock"), LOCK_TIMEOUT_S):
                yield self._read() if self.file.exists() else ()
        except LockTimeout as error:
            raise MemoriterError("Another process is changing the tokens. Try again.") from error

    def _read(self) -> tuple[Token, ...]:
        try:
            check_private(self.file)
            return _TokenFile.model_validate_json(self.file.read_bytes()).tokens
        except (OSError, ValueError) as error:
            raise StoreBroken(
                f"Cannot read the tokens in {self.file} ({type(error).__name__}). Delete the file, then run "
                "`memoriter token create`."
            ) from error

    def _write(self, tokens: Sequence[Token]) -> None:
        write_json(self.file, _TokenFile(tokens=tuple(tokens)).model_dump(by_alias=True))


def digest_of(token: str) -> str:
    """Return the digest that is stored. A token is long and random, so one round of SHA-256 is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


# ---- browsers -----------------------------------------------------------------------------------------------------

#: A link that was not followed expires.
TICKET_LIFETIME_S = 600.0
#: A browser needs a new link after this time.
BROWSER_SESSION_S = 12 * 3600.0
MAX_BROWSER_SESSIONS = 64


class Tickets:
    """The tickets of links that were not used yet, of one home."""

    def __init__(self, home: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = home / "gateway" / "tickets"
        self._clock = clock

    def issue(self) -> str:
        """Create a ticket."""
        self._delete_expired()
        ticket = secrets.token_urlsafe(32)
        make_private_folder(self._folder)
        write_json(self._folder / digest_of(ticket), {"until": self._clock() + TICKET_LIFETIME_S})
        return ticket

    def use(self, ticket: str) -> bool:
        """Use up a ticket. Return whether it was valid."""
        file = self._folder / digest_of(ticket)
        try:
            with shared.changing(file):
                until = float(json.loads(file.read_text("utf-8"))["until"])
                file.unlink()  # when two clients use it at the same time, the second one fails here
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return self._clock() < until

    def _delete_expired(self) -> None:
        for file in self._folder.glob("*"):
            with suppress(OSError):  # another process may have deleted it
                if file.stat().st_mtime < self._clock() - 2 * TICKET_LIFETIME_S:
                    durable.remove(file)


class BrowserSessions:
    """The browsers that signed in with a link. Each has the access of the owner. A restart ends no session."""

    def __init__(self, home: Path, port: int, *, clock: Callable[[], float] = time.time) -> None:
        #: Browsers send a cookie to all ports of a host, so each gateway has its own name.
        self.cookie = f"memoriter-{port}"
        self.tickets = Tickets(home, clock=clock)
        self._clock = clock
        self._file = home / "gateway" / f"{self.cookie}.json"
        #: End of each session, by the digest of its cookie.
        self._expires_at: dict[str, float] = {}
        # Without the file, a link signs in again.
        with suppress(OSError, ValueError, AttributeError, StoreBroken):
            check_private(self._file)
            known = json.loads(self._file.read_text("utf-8")).items()
            self._expires_at = {str(digest): float(until) for digest, until in known}

    def sign_in(self, ticket: str) -> str | None:
        """Return a cookie value for a ticket, or None if the ticket is not valid."""
        if not self.tickets.use(ticket):
            return None
        now = self._clock()
        self._expires_at = {key: until for key, until in self._expires_at.items() if until > now}
        while len(self._expires_at) >= MAX_BROWSER_SESSIONS:
            del self._expires_at[min(self._expires_at, key=self._expires_at.__getitem__)]
        value = secrets.token_urlsafe(32)
        self._expires_at[digest_of(value)] = now + BROWSER_SESSION_S
        write_json(self._file, self._expires_at)
        return value

    def caller(self, value: str) -> Caller | None:
        """Return the caller with this cookie value."""
        if not value:
            return None
        digest = digest_of(value)  # the lookup is by digest, so its time reveals nothing
        until = self._expires_at.get(digest, 0.0)
        return Caller(f"page-{digest[:8]}", "admin", by_cookie=True) if self._clock() < until else None

    def is_valid(self, caller: Caller) -> bool:
        """Return whether the session of an earlier request is still open."""
        now = self._clock()
        return any(caller.id == f"page-{key[:8]}" and until > now for key, until in self._expires_at.items())
