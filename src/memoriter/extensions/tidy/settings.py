"""The settings of tidying."""

from __future__ import annotations

from memoriter.config.fields import Section, Whole, described


class TidySettings(Section):
    """Tidying of entries (`memoriter tidy`)."""

    nightly: bool = described(
        True,
        "Whether the resident process tidies the entries once a day, when it is idle. Every run can be "
        "undone.",
    )
    model_pairs: Whole = described(
        50,
        "Pairs of statements that one run shows to the language model of `llm.provider`, if one is "
        "configured: those of which the bundled reader of changes is unsure. 0: none.",
        ge=0,
        le=1000,
    )
