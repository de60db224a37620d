"""Hosts: programs that run an agent, how each is connected to the memory, and what was imported from it.

An extension offers each one.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, Protocol

from memoriter.errors import BadArgument
from memoriter.extension import offers, suggest
from memoriter.records import Imported

if TYPE_CHECKING:
    from memoriter.agent.agent import Agent
    from memoriter.config import Settings
    from memoriter.memory import Memory
    from memoriter.resident.calls import Unanswered
    from memoriter.resident.command_line import HookCommand


#: What copying a file means: it is new, the same, longer than the existing one, or in conflict with another.
ImportAction = Literal["new", "same", "grown", "other"]


@dataclass(frozen=True, slots=True)
class ImportStep:
    """One file of another program, and what is done with it."""

    kind: Literal["note", "session"]
    source: Path
    target: Path
    action: ImportAction
    #: The reason why it was skipped.
    note: str = ""
    #: The title of a conversation, and the digest of its transcript.
    title: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import from another program."""

    program: str
    home: Path
    agent: str
    steps: tuple[ImportStep, ...]
    entries: Imported
    remarks: tuple[str, ...] = ()
    dry_run: bool = False
    #: Conversations that cannot be read.
    damaged: int = 0
    #: Turns of the sessions that were written, and those that enter no prompt, by the reason.
    turns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """A request to `install` or `uninstall`."""

    settings: Settings
    #: The options with which the host finds the same memory.
    options: Mapping[str, str]
    scope: Literal["user", "project"] = "user"
    #: The folder of the host, if it is not the default one.
    home: Path | None = None
    with_import: bool = False
    dry_run: bool = False
    #: Opens the memory of an agent with its workspace, for the import.
    open_memory: Callable[[str, Path], AbstractContextManager[Memory]] | None = None


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file of the host."""

    path: Path
    changed: bool
    #: None unless the request was a dry run.
    diff: str | None = None


@dataclass(frozen=True, slots=True)
class InstallReport:
    """The changes of an installation, for people (lines) and for programs."""

    lines: Sequence[str] = ()
    plugin: Path | None = None
    commands: Sequence[str] | None = None
    files: Sequence[ChangedFile] | None = None
    imports: Sequence[ImportReport] = ()


State = Literal["connected", "incomplete", "not connected"]


@dataclass(frozen=True, slots=True)
class Connection:
    """A host on this machine, and whether it uses the memory."""

    title: str
    state: State
    #: The folder of its settings.
    folder: Path


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The answer of a hook that runs in the resident process."""

    #: What the hook prints.
    output: str = ""
    errors: str = ""
    #: Work that the resident process does after the answer.
    afterwards: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class QueueState:
    """Sessions that were processed, and those that wait."""

    done: int = 0
    waiting: int = 0
    #: Another process is working on them.
    busy: bool = False


@dataclass(frozen=True, slots=True)
class HookRequest:
    """A hook of another process: its command line, its input, and where it runs."""

    arguments: Sequence[str]
    data: bytes
    deadline_s: float
    environ: Mapping[str, str]
    open_agent: Callable[[Settings], Agent] = field(repr=False)


class Host(Protocol):
    """A program that runs an agent."""

    def install(self, request: InstallRequest) -> InstallReport:
        """Make the memory that of the host."""

    def uninstall(self, request: InstallRequest) -> InstallReport:
        """Undo what `install` changed. The memory is kept."""

    def find(self, request: InstallRequest) -> Connection | None:
        """Return how the host is connected; None if it is not on this machine."""

    def answer_hook(self, command: HookCommand, unanswered: Unanswered | None = None) -> NoReturn:
        """Answer a hook on standard output within its deadline, and end the process."""

    def answer_in_process(self, request: HookRequest) -> HookAnswer:
        """Answer a hook of another process. Raises `Declined` if that process has to do it itself."""

    def process_queue(self, agent: Agent) -> QueueState:
        """Process the sessions that hooks have queued."""


class HostWithoutHooks:
    """The part of a host that calls tools instead of hooks."""

    def find(self, request: InstallRequest) -> Connection | None:
        """Find nothing."""
        del request
        return None

    def answer_hook(self, command: HookCommand, unanswered: Unanswered | None = None) -> NoReturn:
        """Refuse: the host has no hooks."""
        del unanswered
        raise BadArgument(f"{command.host} has no hooks.")

    def answer_in_process(self, request: HookRequest) -> HookAnswer:
        """Leave the answer to the process of the hook."""
        from memoriter.resident.client import Declined

        del request
        raise Declined("The host has no hooks.")

    def process_queue(self, agent: Agent) -> QueueState:
        """Process nothing."""
        del agent
        return QueueState()


def hosts() -> dict[str, Host]:
    """Return every host by name."""
    return {name: offer.load() for name, offer in offers("hosts").items()}


def queues() -> list[Host]:
    """Return one host for each queue of sessions. Hosts that inherit `process_queue` share their queue."""
    return list({type(host).process_queue: host for host in hosts().values()}.values())


def find_host(name: str) -> Host:
    """Return the host of this name. Raises `BadArgument` with a suggestion."""
    offer = offers("hosts").get(name)
    if offer is None:
        raise BadArgument(f"Unknown host {name!r}. {suggest(name, sorted(offers('hosts')))}")
    host: Host = offer.load()
    return host


@cache
def program() -> tuple[str, ...]:
    """Return the command that starts memoriter from any folder."""
    found = shutil.which("memoriter", path=str(Path(sys.executable).parent)) or shutil.which("memoriter")
    return (found,) if found else (sys.executable, "-m", "memoriter")
