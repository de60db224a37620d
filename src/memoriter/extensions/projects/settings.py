"""The settings of projects."""

from __future__ import annotations

from memoriter.config.fields import Section, described


class ProjectSettings(Section):
    """Projects and their branches."""

    branches: bool = described(
        True,
        "Whether statements about the project that hooks capture on a branch are used only there until "
        "the branch is merged. Statements about you, and what you ask to remember, are used everywhere. If "
        "`entries.approval` is on, you decide instead.",
    )
    check_lines: bool = described(
        True,
        "Whether hooks look up what recalled lines about the project name in the working tree: paths, "
        "commands, flags, ports and versions. What is missing is labelled `stale`. After 20 ms no further file is "
        "read.",
    )
    trunks: tuple[str, ...] = described(
        ("main", "master", "trunk", "develop", "dev"),
        "The branches whose statements are used everywhere. The default branch of `origin` is one too.",
    )
