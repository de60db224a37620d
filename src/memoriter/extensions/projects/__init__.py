"""Projects: a Git repository with all its working trees. What is learned on a branch stays there until it is merged.

`repository` reads Git's files, and `branches` holds entries back and puts them in force. The hooks call both.
"""

from __future__ import annotations

from memoriter.extension import Extension

extension = Extension(
    name="projects", settings={"projects": "memoriter.extensions.projects.settings:ProjectSettings"}
)
