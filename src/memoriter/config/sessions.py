"""The settings of sessions: what is read of them, when notes are looked at again, what is written, and by whom."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator

from memoriter.config.base import Number, Section, Whole


class Sessions(Section):
    """Which transcripts are remembered."""

    enabled: bool = Field(default=True, description="Transcripts of sessions are indexed beside the notes.")
    paths: tuple[Path, ...] = Field(
        default=(),
        description="Folders or files of transcripts beside the agent's own, such as `~/.claude/projects` or "
        "`~/.openclaw/agents/main/sessions`.",
    )
    delta_bytes: Whole = Field(
        default=100_000, ge=1, description="A transcript that grew by so many bytes is taken in by itself."
    )
    delta_messages: Whole = Field(
        default=50,
        ge=1,
        description="So is one that grew by so many messages. Less waits for the next search.",
    )
    debounce_s: Number = Field(
        default=5.0, ge=0, le=600, description="Seconds of quiet before a grown transcript is read."
    )


class Watch(Section):
    """When changed files are taken in by themselves, while a service or `memoriter watch` runs."""

    enabled: bool = Field(default=True, description="Watch the notes and transcripts for changes.")
    debounce_s: Number = Field(
        default=1.5, ge=0, le=600, description="Seconds of quiet before changed notes are taken in."
    )
    interval_minutes: Number = Field(
        default=0,
        ge=0,
        description="Take in changes at least this often, whatever was seen; 0: not by the clock.",
    )
    on_session_start: bool = Field(default=True, description="Take in changes when a session starts.")
    poll_s: Number = Field(
        default=10.0, gt=0, description="How often to look where the system has no watches left to give."
    )


class Writing(Section):
    """What is written down, and when."""

    flush: bool = Field(
        default=True, description="Write down what a conversation would lose when its host shortens it."
    )
    flush_rule: Literal["reserve", "margin"] = Field(
        default="reserve",
        description="When that is: `reserve` (window − reserve − soft tokens) or `margin` (window − margin tokens).",
    )
    flush_reserve_tokens: Whole = Field(
        default=20_000, ge=0, description="What the host keeps free for its answer, for `reserve`."
    )
    flush_soft_tokens: Whole = Field(
        default=4_000, ge=0, description="How long before that, in tokens, for `reserve`."
    )
    flush_margin_tokens: Whole = Field(
        default=20_000, ge=0, description="Distance to the end of the window, for `margin`."
    )
    timezone: str = Field(
        default="",
        description="Zone of dates and times in notes, such as `Asia/Shanghai`; empty: the system's.",
    )

    @field_validator("timezone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        from zoneinfo import ZoneInfo

        if name:
            try:
                ZoneInfo(name)
            except (OSError, ValueError, KeyError) as error:
                raise ValueError("must be a time zone such as 'Europe/Berlin'") from error
        return name


class Llm(Section):
    """Which language model summarises; none is needed, and nothing is spent unless one is named."""

    provider: Literal["none", "openai", "anthropic"] = Field(
        default="none", description="`openai` is any server that speaks its protocol, at `base_url`."
    )
    model: str = Field(default="", description="The model's name, as the provider knows it.")
    base_url: str | None = Field(default=None, description="Address of the API, if not the provider's own.")
    api_key: SecretStr | None = Field(
        default=None,
        description="Key; not set: the provider's variable, which is sent to the provider's own address alone.",
    )
    timeout_s: Number = Field(default=60.0, gt=0, le=600, description="Limit for one answer.")
    retries: Whole = Field(default=2, ge=0, le=10, description="How often a failed call is made again.")
    daily_tokens: Whole = Field(
        default=200_000, ge=0, description="Most tokens in a day, sent and received; then it is done without."
    )
