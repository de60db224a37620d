"""The settings of the gateway: where it listens, whom it serves, and how much it lets through.

Only the owner sets them: they are not among what a workspace's own file may say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, field_validator

from memoriter.config.base import Number, Section, Whole

#: A name or an address, with or without a port; an IPv6 address stands in brackets.
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?", re.ASCII)
_AGENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}", re.ASCII)


class GatewayLimits(Section):
    """How much one caller may ask of the gateway."""

    body_bytes: Whole = Field(
        default=4 * 1024 * 1024, ge=1024, description="Most bytes in the body of a request."
    )
    rate: Number = Field(
        default=50.0, gt=0, description="Requests a second that each token may make for long."
    )
    burst: Whole = Field(default=200, ge=1, description="Requests that it may make at once.")
    time_s: Number = Field(
        default=60.0, gt=0, le=3600, description="Seconds after which an operation is given up."
    )
    at_once: Whole = Field(
        default=16,
        ge=1,
        le=256,
        description="Operations that run at the same time; three times as many may wait.",
    )
    event_clients: Whole = Field(
        default=64, ge=1, le=4096, description="Streams of events that are open at the same time."
    )


class Gateway(Section):
    """Where `memoriter serve` listens, and whose memories it serves."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="The address to listen at. Another than this machine's own opens the gateway to a network.",
    )
    port: Whole = Field(default=8377, ge=0, le=65535, description="The port; 0: any that is free.")
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Names by which the gateway may be called beside this machine's own, such as "
        "`memory.example.org` behind a proxy.",
    )
    agents: Mapping[str, Path] = Field(
        default_factory=dict,
        description="More agents with a workspace each, such as `{work: ~/work-notes}`; the agent of `agent` is "
        "always served.",
    )
    trace_content: bool = Field(
        default=False, description="Spans of OpenTelemetry also carry queries and what was found."
    )
    limits: GatewayLimits = Field(default_factory=GatewayLimits)

    @field_validator("allowed_hosts")
    @classmethod
    def _are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        small = tuple(host.lower() for host in hosts)
        if not all(_HOST.fullmatch(host) for host in small):
            raise ValueError("must be names such as 'memory.example.org' or 'box.lan:8377', and no pattern")
        return small

    @field_validator("agents")
    @classmethod
    def _are_names(cls, agents: Mapping[str, Path]) -> Mapping[str, Path]:
        if not all(_AGENT.fullmatch(name) for name in agents):
            raise ValueError("must be names of letters, digits, '-', '_' and '.', not starting with '.'")
        return agents
