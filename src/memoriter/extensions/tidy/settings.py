"""The settings of tidying."""

from __future__ import annotations

from pydantic import Field

from memoriter.config.fields import Section


class TidySettings(Section):
    """Tidying of entries (`memoriter tidy`)."""

    nightly: bool = Field(
        default=True,
        description="Whether the resident process tidies the entries once a day, when it is idle. Every run can be "
        "undone.",
    )
