"""The settings of the profile."""

from __future__ import annotations

from memoriter.config.fields import Section, described


class ProfileSettings(Section):
    """The profile of the owner and of the project (`memoriter profile`)."""

    files: bool = described(
        False,
        "Whether the profile is kept in `USER.md` and `PROJECT.md` of the workspace, between two marks. "
        "What you write between the marks is remembered. Nothing outside them is changed.",
    )
