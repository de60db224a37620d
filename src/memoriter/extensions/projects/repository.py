"""Where an agent works: the repository, the working tree and the branch, read from Git's own files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_HEADS = "refs/heads/"
_ORIGIN = "refs/remotes/origin/"
#: Files that name the branch of a rebase, while no branch is checked out.
_REBASES = ("rebase-merge/head-name", "rebase-apply/head-name")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
#: Bytes of a file of Git that are read. A list of all branches may be long.
_MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """A folder in which an agent works."""

    #: The folder of the repository, the same for all of its working trees; without a repository the folder itself.
    project: str = ""
    #: The top folder of the working tree, or the folder itself.
    tree: str = ""
    #: Empty without a repository, or if no branch is checked out.
    branch: str = ""


def locate(folder: str) -> Place:
    """Return the repository, the working tree and the branch of a folder. Empty if the folder is not absolute."""
    if not folder or "\0" in folder or not os.path.isabs(folder):  # noqa: PTH117
        return Place()
    at = Path(os.path.normpath(folder))
    try:
        top = next((path for path in (at, *at.parents) if (path / ".git").exists()), None)
    except OSError:
        top = None
    if top is None:
        return Place(str(at), str(at))
    own, shared = _folders(top)
    project = top if own == shared else shared.parent if shared.name == ".git" else shared
    return Place(str(project), str(top), _branch(own))


def git_folder(project: str) -> Path:
    """Return the folder in which the repository of a project keeps its branches."""
    return _folders(Path(project))[1] if (Path(project) / ".git").exists() else Path(project)


def index_file(tree: Path) -> Path:
    """Return Git's list of the tracked files of a working tree."""
    return _folders(tree)[0] / "index"


def trunks(project: str, names: Sequence[str]) -> list[str]:
    """Return the full names of the branches that others are merged into: those of ``names``, and origin's default."""
    folder = git_folder(project)
    default = _text(folder / _ORIGIN / "HEAD").removeprefix("ref:").strip()
    found = [f"{prefix}{name}" for name in names for prefix in (_HEADS, _ORIGIN)]
    found += [default, _HEADS + default.removeprefix(_ORIGIN)] if default.startswith(_ORIGIN) else []
    return [name for name in dict.fromkeys(found) if commit_of(project, name)]


def commit_of(project: str, name: str) -> str:
    """Return the commit of a branch, by its full name; empty if there is none."""
    folder = git_folder(project)
    commit = _text(folder / name).strip()
    if not _COMMIT.fullmatch(commit):
        rows = (row.split(" ") for row in _text(folder / "packed-refs").splitlines())
        commit = next((row[0] for row in rows if row[1:] == [name]), "")
    return commit if _COMMIT.fullmatch(commit) else ""


def has_commits(project: str, branch: str, since: str) -> bool:
    """Return whether the log of a branch has a commit that was made on it after the commit ``since``."""
    found = False
    for row in _text(git_folder(project) / "logs" / _HEADS / branch).splitlines():
        change, _, what = row.partition("\t")
        found = change.split(" ")[1:2] != [since] and (found or what.startswith("commit"))
    return found


def _folders(top: Path) -> tuple[Path, Path]:
    """Return the folder of Git for a working tree, and the one that all working trees of the repository share."""
    link = top / ".git"
    named = _text(link).removeprefix("gitdir:").strip() if link.is_file() else ""
    own = Path(os.path.normpath(top / named)) if named else link
    common = _text(own / "commondir").strip()
    return own, Path(os.path.normpath(own / common)) if common else own


def _branch(folder: Path) -> str:
    names = (_text(folder / name).removeprefix("ref:").strip() for name in ("HEAD", *_REBASES))
    branch = next((name.removeprefix(_HEADS) for name in names if name.startswith(_HEADS)), "")
    # Repositories with another format of branches say ".invalid".
    return "" if branch.startswith(".") else branch


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MAX_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
