"""The settings of projects."""

from __future__ import annotations

from pydantic import Field

from memoriter.config.fields import Section


class ProjectSettings(Section):
    """Projects and their branches."""

    branches: bool = Field(
        default=True,
        description="Whether statements about the project that hooks capture on a branch are used only there until "
        "the branch is merged. Statements about you, and what you ask to remember, are used everywhere. If "
        "`entries.approval` is on, you decide instead.",
    )
    trunks: tuple[str, ...] = Field(
        default=("main", "master", "trunk", "develop", "dev"),
        description="The branches whose statements are used everywhere. The default branch of `origin` is one too.",
    )
