"""Projects: a Git repository with all its working trees. What is learned on a branch stays there until it is merged.

`repository` reads Git's files, `branches` holds entries back and puts them in force, and `checking` looks up what
recalled lines name in the working tree. The hooks call all of them.
"""

from memoriter.extension import Extension

extension = Extension(
    name="projects", settings={"projects": "memoriter.extensions.projects.settings:ProjectSettings"}
)
