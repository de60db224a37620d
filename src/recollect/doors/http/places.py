"""By which names the gateway may be called, and from which pages.

A page of a stranger can make a browser call this machine: under its own name that resolves to us (Host), or openly
(Origin). Both are refused before anything else is looked at.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

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
