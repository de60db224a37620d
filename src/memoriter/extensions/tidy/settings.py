"""The settings of tidying."""

from __future__ import annotations

from pydantic import Field

from memoriter.config.fields import Section, Whole


class TidySettings(Section):
    """Tidying of entries (`memoriter tidy`)."""

    nightly: bool = Field(
        default=True,
        description="Whether the resident process tidies the entries once a day, when it is idle. Every run can be "
        "undone.",
    )
    model_pairs: Whole = Field(
        default=50,
        ge=0,
        le=1000,
        description="Pairs of statements that one run shows to the language model of `llm.provider`, if one is "
        "configured: those of which the bundled reader of changes is unsure. 0: none.",
    )
