"""Fail or kill at every write and sync call of every write path.

`shim.c` is loaded with LD_PRELOAD and counts the calls of the process that write, sync, truncate, rename or link below
the home and the workspace. Each write path runs once to count its calls, and then once for each call and each fault:
the disk is full from there on, full in the middle of a write, one I/O error, a kill before the call, a kill in the
middle of it. Only a write can be half done, and a kill within a sync leaves the files as a kill before it does, so
those faults are not repeated for other calls. Opening a home is a path of its own; the other paths start with an open
memory. Afterwards the truth must be as before or as after the write, a confirmed write must be there, an error must be
one of this package, and the memory must work again. `transfers` has the paths that move a whole memory.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lab.soak.forking import ForkFailed, in_fork, load_core
from lab.soak.part import Part, Round, Task
from lab.soak.transfers import CARELESS, SERVER, TRANSFERS, is_allowed, kept, look
from lab.soak.writers import Home
from memoriter.extensions.anthropic.agent_folder import AgentFolder
from memoriter.memory import parts_of

COUNT, FAIL, KILL_BEFORE, KILL_WITHIN, FAIL_WITHIN = range(5)
#: Name of a fault: action, error and whether it lasts.
FAULTS = {
    "disk full": (FAIL, errno.ENOSPC, 1),
    "disk full within a write": (FAIL_WITHIN, errno.ENOSPC, 1),
    "I/O error": (FAIL, errno.EIO, 0),
    "kill before": (KILL_BEFORE, 0, 0),
    "kill within": (KILL_WITHIN, 0, 0),
}
#: Faults that differ from the others, by the kind of call that the shim reports.
FAULTS_OF = {
    "w": tuple(FAULTS),
    "s": ("disk full", "I/O error", "kill before"),
    "c": ("disk full", "I/O error", "kill before", "kill within"),
    "n": ("kill before", "kill within"),
}
#: The path that opens a home whose files are new to it, as after a restore or a copy, and closes it again.
OPEN = "open a copied home"
FIRST, SECOND = "The heron stands in the northern marsh", "Invoices are paid on the third Friday"
UNDONE = "The attic has a skylight"
MESSAGES = [
    {"role": "user", "content": "Remember that the stork nests on the water tower."},
    {"role": "assistant", "content": "I will remember that."},
]
Snapshot = dict[str, Any]


def unavailable() -> str | None:
    """Return why faults cannot be injected here."""
    if sys.platform != "linux":
        return "Faults are injected through LD_PRELOAD, which needs Linux."
    return None if shutil.which("gcc") else "Faults need gcc, which compiles lab/soak/shim.c."


# ---- write paths ----------------------------------------------------------------------------------------------


def _entry_id(memory: Any, text: str) -> str:
    return next(str(entry.id) for entry in memory.entries.list(states=()) if entry.text == text)


def _items(memory: Any) -> Any:
    from memoriter.extensions.langgraph.items import items_of

    return items_of(memory)


def _put(memory: Any, key: str, value: dict[str, str] | None) -> None:
    from memoriter.extensions.langgraph.items.store import Put

    _items(memory).put([Put(("soak",), key, value, tuple((value or {}).values()))])


def _queue(memory: Any) -> None:
    from memoriter.extensions.hooks.capture import session_queue
    from memoriter.extensions.hooks.queue import SessionRequest

    session_queue(memory.settings).add(SessionRequest("Stop", "s1", "/nowhere/s1.jsonl", 0))


OTHER = "memory/other.md"


def _version(memory: Any) -> str:
    return str(memory.notes.text(OTHER).version)


def _touch_and_search(memory: Any) -> None:
    note = memory.settings.workspace / "MEMORY.md"
    os.utime(note, (1_800_000_000, 1_800_000_000))
    answer = memory.search("heron northern marsh", source="memory")
    assert answer.hits, f"a search found nothing: {answer.degraded}"


def _tidy(memory: Any) -> None:
    from memoriter.extensions.tidy.running import tidy

    report = tidy(memory)
    assert report.changed == 2, f"a run changed {report.changed} entries"


def _touch_and_sync(memory: Any) -> None:
    os.utime(memory.settings.workspace / "memory/other.md", (1_800_000_000, 1_800_000_000))
    memory.sync()


PATHS: dict[str, Callable[[Any], object]] = {
    OPEN: lambda _: None,
    "add an entry": lambda memory: memory.remember("The kettle is in the blue cupboard", "fact"),
    "repeat an entry": lambda memory: memory.remember(FIRST, "fact"),
    "update an entry": lambda memory: memory.entries.update(_entry_id(memory, FIRST), text="Herons left"),
    "supersede an entry": lambda memory: memory.entries.supersede(_entry_id(memory, FIRST), "Herons moved"),
    "merge entries": lambda memory: memory.entries.merge(
        [_entry_id(memory, FIRST), _entry_id(memory, SECOND)], "Herons are paid on Fridays"
    ),
    "undo": lambda memory: memory.entries.undo(_entry_id(memory, FIRST)),
    "redo": lambda memory: memory.entries.redo(_entry_id(memory, UNDONE)),
    "hide an entry": lambda memory: memory.forget(_entry_id(memory, SECOND)),
    "forget an entry": lambda memory: memory.erase(_entry_id(memory, SECOND)),
    "import entries": lambda memory: memory.entries.import_(
        json.dumps([{"memory": "The printer is called Ada"}, {"memory": "The scanner is called Grace"}])
    ),
    "clean up": lambda memory: memory.entries.cleanup(),
    "tidy": _tidy,
    "capture a conversation": lambda memory: memory.capture_messages(MESSAGES, session="s1", record=True),
    "recall": lambda memory: memory.recall("where does the heron stand?"),
    "save to the log": lambda memory: memory.save("The roof was repaired."),
    "save to a category": lambda memory: memory.save("The roof was repaired.", "roof", category="house"),
    "summarise a session": lambda memory: memory.summarise(MESSAGES, "s1"),
    "flush before compaction": lambda memory: memory.flush(MESSAGES, "s1", window=None),
    "write a note": lambda memory: memory.notes.put("memory/new.md", "The roof is new.\n", version=None),
    "replace a note": lambda memory: memory.notes.put(OTHER, "Empty.\n", version=_version(memory)),
    "move a note": lambda memory: memory.notes.move(OTHER, "memory/moved.md", version=_version(memory)),
    "remove a note": lambda memory: memory.notes.remove(OTHER, version=_version(memory)),
    "change an agent's note": lambda memory: AgentFolder.of(memory).create("plan.md", "The plan is ready.\n"),
    "append to a transcript": lambda memory: memory.transcript_writer("s0").add(MESSAGES),
    "remove from a transcript": lambda memory: memory.transcript_writer("s0").pop(),
    "put an item": lambda memory: _put(memory, "new", {"text": "a new value"}),
    "replace an item": lambda memory: _put(memory, "old", {"text": "another value"}),
    "delete an item": lambda memory: _put(memory, "old", None),
    "queue a session": _queue,
    "sync": _touch_and_sync,
    "rebuild the index": lambda memory: memory.sync(force=True),
    "search after a change": _touch_and_search,
}
#: The names of all paths. The last transfer is the control.
NAMES = (*PATHS, *(name for name in TRANSFERS if name != CARELESS))


def careless(memory: Any) -> None:
    """Write a file and ignore every error: the control."""
    try:
        with (memory.settings.workspace / "memory/other.md").open("r+", buffering=1) as file:
            file.write("The first line is new.\n")
            file.write("The second line is new.\n")
    except OSError:
        return


# ---- snapshots of the truth ----------------------------------------------------------------------------------


def open_memory(home: Home) -> Any:
    """Open a memory with an embedder that has no model."""
    from memoriter import Memory
    from memoriter.testing import HashEmbedder

    settings = {"search.rerank": False, "embedding.background": False}
    return Memory.open(home.workspace, home=home.home, embedder=HashEmbedder(), overrides=settings)


def prepare(home: Home) -> None:
    """Fill a home with two entries and a duplicate, two notes, a transcript and an item, all indexed."""
    home.create()
    (home.workspace / "MEMORY.md").write_text("# Memory\n\nThe heron stands in the northern marsh at dawn.\n")
    (home.workspace / "memory/other.md").write_text("# Other\n\nThe invoices are in the third drawer.\n")
    with open_memory(home) as memory:
        for text in (FIRST, SECOND):
            memory.remember(text, "fact")
        memory.entries.import_(json.dumps([{"memory": "On the third Friday invoices are paid"}]))
        undone = memory.remember(UNDONE, "fact").entry
        memory.entries.update(undone.id, text="The attic has two skylights")
        memory.entries.undo(undone.id)
        memory.transcript_writer("s0").add(MESSAGES)
        _put(memory, "old", {"text": "an old value"})
        memory.sync()


def snapshot(home: Home, is_used: bool = False) -> Snapshot:
    """Return what a home knows, without ids and times. ``is_used`` also checks that it works again after a fault."""
    with open_memory(home) as memory:
        found: Snapshot = {
            "entries": sorted((entry.text, entry.state) for entry in memory.entries.list(states=())),
            "transcript": memory.transcript_writer("s0").items(),
            "items": sorted((hit.item.key, str(hit.item.value)) for hit in _items(memory).search(("soak",))),
            "problems": parts_of(memory).entry_context.store.check(deep=True),
            "notes": notes_below(home.workspace),
            "queue": len(list((home.agent / "queue").glob("[0-9]*.json"))),
        }
        if is_used:
            use(memory)
    return found


def notes_below(root: Path) -> dict[str, str]:
    """Return the notes below a folder, without days and times."""
    return {
        _timeless(str(file.relative_to(root))): _timeless(file.read_text("utf-8", errors="replace"))
        for file in sorted(root.rglob("*.md"))
        if not any(part.startswith(".") for part in file.relative_to(root).parts)
    }


def _timeless(text: str) -> str:
    """Replace days and times, because the runs that are compared write theirs at different times."""
    return re.sub(r"(?<!\d)(?:\d{4}-\d\d-\d\d|\d\d:\d\d(?::\d\d)?(?:[+-]\d\d:\d\d)?)(?!\d)", "0", text)


def use(memory: Any) -> None:
    """Check that the memory finds what it knows and accepts new writes."""
    assert memory.remember("After the fault a lamp was lit", "fact").entry is not None, "an add is refused"
    memory.save("After the fault a note was written.")
    memory.sync()
    hits = memory.search("heron northern marsh dawn", source="memory").hits
    assert [hit.path for hit in hits][:1] == ["MEMORY.md"], f"a search finds {hits}"
    found = memory.entries.search("After the fault a lamp was lit", limit=1).hits
    assert found, "the new entry is not found"


# ---- the process with the shim --------------------------------------------------------------------------------


def _run_path(library: str, home: Home, path: str, at: int, fault: str) -> dict[str, object]:
    """Run a write path with a fault. The result is what it said, and the number of calls."""
    from memoriter.errors import MemoriterError

    shim = ctypes.CDLL(library)
    shim.soak_kinds.restype = ctypes.c_char_p
    arm = partial(shim.soak_arm, str(home.root).encode(), at, *FAULTS.get(fault, (COUNT, 0, 0)))
    said, raised = "confirmed", ""
    try:
        if path in TRANSFERS:
            arm()
            TRANSFERS[path].run(home)
        else:
            _run_open(home, path, arm)
    except MemoriterError as failure:
        said, raised = "refused", str(failure)
    except BaseException as failure:  # noqa: BLE001  a bug, reported with its type
        said, raised = "raised", f"{type(failure).__name__}: {failure}"
    shim.soak_disarm()
    return {"said": said, "error": raised, "calls": shim.soak_kinds().decode()}


def _run_open(home: Home, path: str, arm: Callable[[], object]) -> None:
    if path == OPEN:
        arm()
    with open_memory(home) as memory:
        if path != OPEN:
            arm()
        PATHS.get(path, careless)(memory)


class PathCheck:
    """The check of one write path, in a process with the shim."""

    def __init__(self, library: str, folder: Path, path: str) -> None:
        self._library, self._folder, self._path = library, folder, path
        self._base = Home(folder / "base")
        self._transfer = TRANSFERS.get(path)
        self._look = look if self._transfer else snapshot
        self.done = Round()

    def run(self, *, every: int = 1) -> Round:
        """Run the path once for each ``every``-th call and each fault."""
        # Prepared where the copies will be, because an index belongs to the path of its workspace.
        home = Home(self._folder / "home")
        for earlier in (home, self._base):
            shutil.rmtree(earlier.root, ignore_errors=True)
        in_fork(prepare, home)
        if self._transfer:
            in_fork(self._transfer.prepare, home)
        shutil.copytree(home.root, self._base.root)
        before = in_fork(self._look, self._copy())
        home = self._copy()
        counted = self._call(home, 0, "")
        if counted["said"] != "confirmed":
            self.done.fail(f"{self._path} without a fault: {counted['error']}")
            return self.done
        after = in_fork(self._look, home)
        self.done.count("paths")
        self.done.notes = [f"path: {self._path}"]
        self.done.count("calls", len(counted["calls"]))
        for at, kind in list(enumerate(counted["calls"], 1))[::every]:
            for fault in FAULTS_OF[kind]:
                self._check(at, fault, before, after)
        return self.done

    def _check(self, at: int, fault: str, before: Snapshot, after: Snapshot) -> None:
        home, self.where = self._copy(), f"{self._path}, {fault} at call {at}"
        self.done.count("faults")
        try:
            said = self._call(home, at, fault)["said"]
        except ForkFailed as ended:
            said = "killed"
            if not fault.startswith("kill") or "-9" not in str(ended):
                self.done.fail(f"{self.where}: {str(ended)[-500:]}")
        try:
            if self._transfer:
                self._check_transfer(home, str(said), before, after)
            else:
                self._compare(in_fork(snapshot, home, self._path in PATHS), str(said), before, after)
        except ForkFailed as failed:
            self.done.fail(f"{self.where}, then {said}: {str(failed)[-900:]}")

    def _check_transfer(self, home: Home, said: str, before: Snapshot, after: Snapshot) -> None:
        """Compare, run the same command again, compare once more, and use the memory."""
        assert self._transfer is not None
        now = in_fork(look, home, self._transfer.replaces)
        if now is not None:
            self._compare(now, said, before, after)
        elif said == "confirmed":
            self.done.fail(f"{self.where}: confirmed, but the home cannot be opened")
        were = set(in_fork(kept, home))
        in_fork(self._transfer.run, home)
        if lost := were - set(in_fork(kept, home)):
            self.done.fail(f"{self.where}: {said}, and the next run lost {lost}")
        self.where += ", run again"
        self._compare(in_fork(look, home), "confirmed", before, after)
        in_fork(snapshot, home, True)

    def _compare(self, now: Snapshot, said: str, before: Snapshot, after: Snapshot) -> None:
        for name, value in now.items():
            if not is_allowed(value, after[name] if said == "confirmed" else before[name], after[name]):
                self.done.fail(f"{self.where}: {said}, but {name} are {str(value)[:300]}")

    def _call(self, home: Home, at: int, fault: str) -> dict[str, Any]:
        result: dict[str, Any] = in_fork(_run_path, self._library, home, self._path, at, fault)
        if result["said"] == "raised":
            self.done.fail(f"{self._path}, {fault} at call {at}: {result['error']}")
        return result

    def _copy(self) -> Home:
        """Return a copy of the base, always at the same place."""
        home = Home(self._folder / "home")
        shutil.rmtree(home.root, ignore_errors=True)
        shutil.copytree(self._base.root, home.root)
        (home.root / "run").write_text(uuid.uuid4().hex)
        return home


def main(library: str, folder: str, path: str, every: int) -> None:
    """Run in the process with the shim and print the round."""
    load_core()
    done = PathCheck(library, Path(folder), path).run(every=every)
    sys.stdout.write(json.dumps([done.counts, done.failures, done.notes]))


@contextmanager
def _server(path: str) -> Iterator[str]:
    """Start a Postgres server if the path needs one, and yield its URL."""
    if path not in TRANSFERS or not TRANSFERS[path].server:
        yield ""
        return
    from lab.soak.failover import cluster_class

    cluster = cluster_class()().create()
    try:
        yield cluster.url
    finally:
        cluster.stop()
        shutil.rmtree(cluster.folder, ignore_errors=True)


def _with_shim(task: Task, path: str, every: int = 1) -> Round:
    library = task.folder / "shim.so"
    if not library.exists():
        source = Path(__file__).with_name("shim.c")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    call = (
        f"from lab.soak import faults; faults.main({str(library)!r}, {str(task.folder)!r}, {path!r}, {every})"
    )
    with _server(path) as url:
        ended = subprocess.run(
            [sys.executable, "-c", call],
            env={**os.environ, "LD_PRELOAD": str(library), SERVER: url},
            capture_output=True,
            text=True,
            check=False,
        )
    if ended.returncode != 0:
        return Round({}, [ended.stderr[-3000:]])
    return Round(*json.loads(ended.stdout))


def run(task: Task) -> Round:
    """Check one write path at every call; in short, some calls of two paths."""
    if task.short:
        done = _with_shim(task, "add an entry", every=9)
        more = _with_shim(task, "save to the log", every=4)
        return Round(
            {name: done.counts[name] + more.counts[name] for name in done.counts},
            done.failures + more.failures,
        )
    return _with_shim(task, NAMES[task.number % len(NAMES)])


def control(task: Task) -> Round:
    """Check a writer that ignores errors, and a restore that deletes the old files before it writes the new ones."""
    done, more = _with_shim(task, "careless"), _with_shim(task, CARELESS, every=32)
    if not done.failures or not more.failures:
        return Round(done.counts)  # a control that does not fail
    return Round(done.counts, done.failures + more.failures)


PART = Part(
    "faults",
    "Disk full, I/O error and kill at every write and sync call of every write path",
    {"paths": len(NAMES)},
    run,
    control,
    "a writer that ignores errors, and a restore that deletes first",
    unavailable,
)
