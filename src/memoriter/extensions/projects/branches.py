"""Entries of a branch: staged while the branch is open, in force once it is merged.

A branch may say the opposite of the others, such as "we use Postgres now". So its statements are not compared with
what is known until they join it. On the branch itself, a session begins with them (`held_entries`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from memoriter import logs
from memoriter.entries.adding import change_draft
from memoriter.extensions.projects.repository import commit_of, git_folder, has_commits, trunks
from memoriter.extensions.projects.settings import ProjectSettings
from memoriter.files.state import SessionStates, as_record
from memoriter.recall.profile import section_of
from memoriter.sentences import sentence
from memoriter.text.dates import local_day
from memoriter.text.redaction import clean_name

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.entries.drafts import Draft
    from memoriter.memory import Memory
    from memoriter.records import Entry

log = logs.get("projects")

#: Branches with held entries that are kept.
MAX_BRANCHES = 500
#: Sessions of a branch that are kept.
MAX_SESSIONS = 500
#: Time for the questions to Git at the start of a session.
GIT_S = 1.0


@dataclass(frozen=True, slots=True)
class _Branch:
    """A branch on which something was learned."""

    project: str
    name: str
    #: Its newest commit at that time.
    commit: str
    #: Whether it had commits that no trunk had. A new branch has none, and Git calls it merged.
    ahead: bool
    #: The sessions on it. Empty: what was learned has joined the rest.
    sessions: tuple[str, ...] = ()


@contextmanager
def learning(memory: Memory, project: str, branch: str, session: str) -> Iterator[None]:
    """Within this context, entries get the branch as a tag, and those about the project stay on the branch."""
    if not branch:
        yield
        return
    reason, today = sentence("entry.on_branch", branch=branch), local_day(time.time())
    is_open = cache(lambda: _may_hold(memory.settings) and _is_open(memory, project, branch, session))

    def change(draft: Draft) -> Draft:
        is_asked_for = draft.on_purpose or draft.requested
        held = not is_asked_for and section_of(draft.entry(0.0), today) == "projects" and is_open()
        return replace(draft, tags=(*draft.tags, _tag(branch)), held=reason if held else "")

    token = change_draft.set(change)
    try:
        yield
    finally:
        change_draft.reset(token)


def held_entries(memory: Memory, project: str, branch: str) -> list[Entry]:
    """Return the entries that are held on a branch."""
    if not branch or not _may_hold(memory.settings):
        return []
    found = as_record(_Branch, _states(memory.settings).get(_key(project, branch)))
    return _entries(memory, found) if found else []


def join_merged(memory: Memory, project: str) -> int:
    """Put the entries of merged branches of a project in force. Return how many there were."""
    if not _may_hold(memory.settings):
        return 0
    states, joined, until = _states(memory.settings), 0, time.monotonic() + GIT_S
    for one in (as_record(_Branch, values) for values in states.newest(MAX_BRANCHES)):
        if one is None or not one.sessions or one.project != project:
            continue
        targets = trunks(project, memory.settings.section(ProjectSettings).trunks)
        now = commit_of(project, f"refs/heads/{one.name}") or one.commit
        merged = _is_merged(project, now, targets, until)
        if merged is False and not one.ahead:
            states.put(_key(project, one.name), asdict(replace(one, ahead=True)))
        elif merged and (one.ahead or has_commits(project, one.name, one.commit)):
            held = [entry.id for entry in _entries(memory, one)]
            memory.entries.approve(held, actor="merge")
            states.put(_key(project, one.name), asdict(replace(one, sessions=())))
            joined += len(held)
    return joined


def _may_hold(settings: Settings) -> bool:
    return settings.section(ProjectSettings).branches and settings.entries.approval == "none"


def _is_open(memory: Memory, project: str, branch: str, session: str) -> bool:
    """Return whether a branch holds what is learned on it, and record the session. Without Git, none does."""
    targets = trunks(project, memory.settings.section(ProjectSettings).trunks)
    own = f"refs/heads/{branch}"
    if not targets or own in targets or shutil.which("git") is None:
        return False
    states, commit = _states(memory.settings), commit_of(project, own)
    known = as_record(_Branch, states.get(_key(project, branch)))
    ahead = bool(known and known.sessions and known.ahead)
    if not ahead and commit:
        ahead = _is_merged(project, commit, targets, time.monotonic() + GIT_S) is False
    sessions = dict.fromkeys((*(known.sessions if known else ()), clean_name(session)))
    found = _Branch(project, branch, commit, ahead, tuple(sessions)[-MAX_SESSIONS:])
    if found != known:
        states.put(_key(project, branch), asdict(found))
        states.prune()
    return True


def _entries(memory: Memory, branch: _Branch) -> list[Entry]:
    found = memory.entries.list(states=("staged",), tags=(_tag(branch.name),), within=branch.sessions)
    return [entry for entry in found if entry.session in branch.sessions]


def _tag(branch: str) -> str:
    return f"branch:{branch}".casefold()[:64]


# ---- Git -------------------------------------------------------------------------------------------------------


def _is_merged(project: str, commit: str, targets: list[str], until: float) -> bool | None:
    """Return whether one of the targets contains a commit; None if Git does not say so in time."""
    answers = set[bool | None]()
    for target in targets:
        answers.add(answer := _contains(project, target, commit, until - time.monotonic()))
        if answer:
            return True
    return False if answers == {False} else None


def _contains(project: str, target: str, commit: str, timeout_s: float) -> bool | None:
    command = [f"--git-dir={git_folder(project)}", "merge-base", "--is-ancestor", commit, target]
    # The variables of a Git that started the agent name its repository, not this one.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        ran = subprocess.run(  # noqa: S603
            [shutil.which("git") or "git", *command],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=max(0.05, timeout_s),
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("Git did not say whether %s was merged: %s", target, error)
        return None
    return {0: True, 1: False}.get(ran.returncode)


# ---- state -----------------------------------------------------------------------------------------------------


def _states(settings: Settings) -> SessionStates:
    return SessionStates(settings.agent_folder / "branches", MAX_BRANCHES)


def _key(project: str, branch: str) -> str:
    return f"{project}\n{branch}"
