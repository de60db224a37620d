"""The settings of the gateway and of the resident process. Only the owner's file may set them, not a workspace's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, field_validator

from memoriter.config.fields import FOLDER_NAME, NO_FOLDER_NAME, Number, Section, Whole, described

#: A name or an address, with or without a port. An IPv6 address is in brackets.
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?", re.ASCII)


class ResidentSettings(Section):
    """The process that keeps the memory open for hooks and commands, so that they answer quickly."""

    enabled: bool = described(
        True,
        "Whether hooks and commands such as `search` start and use it. Without it, each "
        "of them opens the memory again.",
    )
    idle_minutes: Number = described(
        30.0, "It ends after this time without a request, in minutes.", gt=0, le=1440
    )


class GatewayLimits(Section):
    """Limits of the gateway."""

    body_bytes: Whole = described(4 * 1024 * 1024, "Maximum size of a request body, in bytes.", ge=1024)
    rate: Number = described(50.0, "Sustained requests per second for each token.", gt=0)
    burst: Whole = described(200, "Requests that a token may send in a burst above `rate`.", ge=1)
    timeout_s: Number = described(60.0, "Time limit for a request, in seconds.", gt=0, le=3600)
    concurrency: Whole = described(
        8, "Maximum number of concurrent operations. Seven times as many may wait.", ge=1, le=256
    )
    event_clients: Whole = described(64, "Maximum number of open event streams.", ge=1, le=4096)


class GatewaySettings(Section):
    """The address of `memoriter serve`, and the agents that it serves."""

    host: str = described(
        "127.0.0.1",
        "Address to listen on. Any other than a loopback address opens the gateway to the network.",
        min_length=1,
    )
    port: Whole = described(8377, "Port to listen on. 0: any free port.", ge=0, le=65535)
    allowed_hosts: tuple[str, ...] = described(
        (),
        "Host names that clients may use, besides this machine's own, such as `memory.example.org` behind "
        "a proxy.",
    )
    agents: Mapping[str, Path] = described(
        {},
        "More agents, each with its workspace, such as `{work: ~/work-notes}`. The agent named by `agent` "
        "is always served.",
    )
    trace_content: bool = described(False, "Include queries and results in OpenTelemetry spans.")
    limits: GatewayLimits = Field(default_factory=GatewayLimits)

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        lower = tuple(host.lower() for host in hosts)
        if not all(_HOST.fullmatch(host) for host in lower):
            raise ValueError(
                "must be host names such as 'memory.example.org' or 'box.lan:8377', without wildcards"
            )
        return lower

    @field_validator("agents")
    @classmethod
    def _are_names(cls, agents: Mapping[str, Path]) -> Mapping[str, Path]:
        if not all(FOLDER_NAME.fullmatch(name) and len(name) <= 64 for name in agents):
            raise ValueError(f"must be names of {NO_FOLDER_NAME}")
        return agents
