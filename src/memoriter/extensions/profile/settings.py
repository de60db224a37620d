"""The settings of the profile."""

from __future__ import annotations

from pydantic import Field

from memoriter.config.fields import Section


class ProfileSettings(Section):
    """The profile of the owner and of the project (`memoriter profile`)."""

    files: bool = Field(
        default=False,
        description="Whether the profile is kept in `USER.md` and `PROJECT.md` of the workspace, between two marks. "
        "What you write between the marks is remembered. Nothing outside them is changed.",
    )
