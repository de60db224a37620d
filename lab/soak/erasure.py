"""Random histories with kills, at the end of which everything is forgotten: no file may contain a forgotten word.

A word is unique to its history. The scan reads every file of the home and the workspace, and looks for the word raw, in
UTF-16, as JSON and in base64, and for the vectors of the texts that contained it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lab.soak.bytescan import holders, tables
from lab.soak.forking import ForkFailed, in_fork, load_core
from lab.soak.part import Part, Round, Task
from lab.soak.writers import Home, words

ENGINES = ("scan", "sqlite-vec", "lancedb")
#: How often a history uses each engine. LanceDB must be loaded in each process, because its threads survive no fork.
SHARES = (10, 10, 1)
HISTORIES = 40
#: Steps of one process of a history, and the longest time until it is killed.
STEPS, MAX_LIFE_S = 10, 0.15


def open_memory(home: Home, engine: str) -> Any:
    """Open a memory with one of the vector engines, and with side files even for few vectors."""
    from memoriter import Memory
    from memoriter.extensions import external_tables as external
    from memoriter.store.vectors import scan
    from memoriter.testing import HashEmbedder

    scan.LIMITS = scan.ScanLimits(threshold=2, tail_rows=1)
    external.BATCH_ROWS = 2
    settings = {
        "index.vector_engine": engine,
        "search.rerank": False,
        "embedding.background": False,
        "entries.approval": "agent",
    }
    return Memory.open(home.workspace, home=home.home, embedder=HashEmbedder(), overrides=settings)


# ---- steps ----------------------------------------------------------------------------------------------------


class History:
    """Random steps with one memory. Every text is a statement, with or without the word to forget."""

    def __init__(self, memory: Any, word: str, seed: int) -> None:
        self.memory, self.entries, self.word = memory, memory.entries, word
        self.random = random.Random(seed)

    def run(self, steps: int) -> None:
        """Take some steps. A step that is refused was tried, which is enough."""
        from memoriter.errors import MemoriterError

        choices = (
            *(
                self.add,
                self.add,
                self.repeat,
                self.capture,
                self.update,
                self.supersede,
                self.merge,
                self.undo,
            ),
            *(
                self.recall,
                self.save,
                self.import_,
                self.stage,
                self.hide,
                self.search,
                self.sync,
                self.forget_one,
            ),
        )
        for _ in range(steps):
            try:
                self.random.choice(choices)()
            except MemoriterError:
                continue

    def text(self) -> str:
        """Return a statement, in two of three cases with the word."""
        about = self.random.choice(("codename", "door code", "project", "暗号", "计划"))
        value = self.word if self.random.random() < 0.67 else words(self.random).split()[0]
        return f"The {about} of {words(self.random).split()[0]} is {value}"

    def _any(self) -> str:
        return str(self.random.choice(self.entries.list(states=()) or [self._added()]).id)

    def _added(self) -> Any:
        return self.entries.add(self.text()).entry

    def add(self) -> None:
        self._added()

    def repeat(self) -> None:
        entry = self.entries.get(self._any())
        self.entries.add(f"{entry.text} since spring" if self.random.random() < 0.5 else entry.text)

    def capture(self) -> None:
        message = {"role": "user", "content": f"Remember that {self.text()}. I prefer tea in the morning."}
        self.memory.capture_messages([message], session=f"s{self.random.randrange(3)}", record=False)

    def update(self) -> None:
        self.entries.update(self._any(), text=self.text())

    def supersede(self) -> None:
        self.entries.supersede(self._any(), self.text())

    def merge(self) -> None:
        self.entries.merge([self._any(), self._any()], self.text())

    def undo(self) -> None:
        self.entries.undo(self._any())

    def recall(self) -> None:
        self.memory.recall(f"what is {self.text()}?", session=f"s{self.random.randrange(3)}")

    def save(self) -> None:
        self.memory.save(self.entries.get(self._any()).text)

    def import_(self) -> None:
        self.entries.import_(json.dumps([{"memory": self.text()}, {"memory": self.text()}]))

    def stage(self) -> None:
        from memoriter.entries.drafts import Draft

        self.entries.add_draft(Draft(self.text(), trust="agent"), actor="agent")
        staged = self.entries.list(states=("staged",))
        if staged and self.random.random() < 0.5:
            self.entries.approve(staged[0].id)

    def hide(self) -> None:
        self.memory.forget(self._any())

    def search(self) -> None:
        self.memory.search(self.text())

    def sync(self) -> None:
        self.memory.sync()

    def forget_one(self) -> None:
        self.memory.erase(self._any())


def live(home: Home, engine: str, word: str, seed: int) -> None:
    """Run one process of a history."""
    with open_memory(home, engine) as memory:
        History(memory, word, seed).run(STEPS)


def forget_all(home: Home, engine: str, word: str, by_time: bool) -> None:
    """Forget everything, or every entry whose text or history contains the word."""
    with open_memory(home, engine) as memory:
        if by_time:
            from memoriter.records import Selection

            memory.erase(Selection(since=0.0))
            return
        for entry in (*memory.entries.list(states=()), *memory.entries.undone()):
            history = str(memory.entries.history(entry.id))
            if word in entry.text or word in history:
                _forget(memory, entry.id)


def vectors_of(home: Home, engine: str, word: str) -> list[str]:
    """Return the vectors of the entries that contain the word, as they are stored, in hexadecimal."""
    from memoriter.testing import HashEmbedder

    with open_memory(home, engine) as memory:
        memory.sync()
        texts = sorted({entry.text for entry in memory.entries.list(states=()) if word in entry.text})
    return [row.tobytes().hex() for row in HashEmbedder().embed(texts)] if texts else []


def _forget(memory: Any, entry_id: str) -> None:
    from memoriter.errors import NotFound

    try:
        memory.erase(entry_id)
    except NotFound:  # it was forgotten together with an earlier one
        return


def delete_rows(home: Home, engine: str, word: str, by_time: bool) -> None:
    """Delete rows and forget their copies: the control."""
    del by_time
    with open_memory(home, engine) as memory:
        memory.search(word)
        for entry in memory.entries.list():
            with memory.entries._context.store.database.write() as connection:
                connection.execute("delete from entries where id = ?", (entry.id,))


# ---- one history ----------------------------------------------------------------------------------------------


def _killed(function: Callable[[], None], life_s: float | None) -> bool:
    """Run a function in a process and kill it after some time; return whether it was killed."""
    child = os.fork()
    if child == 0:
        code = 0
        try:
            function()
        except BaseException:  # noqa: BLE001  the exit status says so
            import traceback

            traceback.print_exc()
            code = 1
        os._exit(code)
    if life_s is None:
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) != 0:
            raise ForkFailed(f"the process ended with status {os.waitstatus_to_exitcode(status)}")
        return False
    until = time.monotonic() + life_s
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _history(task: Task, number: int, forget: Callable[..., None], done: Round, engine: str) -> None:
    home = Home(task.folder / str(number)).create()
    word = "zq" + "".join(task.random.choices("bcdfghjklmnpqrstvwx", k=12))
    slow = 1.5 if engine == "lancedb" else 0.0  # the import of LanceDB
    processes = 2 if engine == "lancedb" else 3
    for _ in range(processes):
        life = slow + task.random.random() * MAX_LIFE_S if task.random.random() < 0.5 else None
        if _killed(partial(live, home, engine, word, task.random.randrange(1 << 31)), life):
            done.count("kills")
    found = holders(task.folder / str(number), word)
    vectors = [bytes.fromhex(one) for one in in_fork(vectors_of, home, engine, word)]
    done.count("with vectors before", 1 if vectors and holders(home.root, blobs=vectors) else 0)
    by_time = task.random.random() < 0.3
    if task.random.random() < 0.3:
        life = slow + task.random.random() * MAX_LIFE_S
        if _killed(partial(forget, home, engine, word, by_time), life):
            done.count("kills")
    _killed(partial(forget, home, engine, word, by_time), None)
    done.count("histories")
    done.count(f"histories with {engine}")
    done.count("with the word before", 1 if found else 0)
    left = holders(task.folder / str(number), word, blobs=vectors)
    if left:
        how = "by time" if by_time else "one by one"
        places = [_place(home.root / name, name, word) for name in left]
        done.fail(f"{engine}, forgotten {how}: {word} is still in {', '.join(places)}")


def _place(file: Path, name: str, word: str) -> str:
    """Name a file, and for a database the tables that hold the word."""
    return f"{name} ({', '.join(tables(file, word)) or 'free space'})" if file.suffix == ".db" else name


def run(task: Task) -> Round:
    """Run some histories with each engine in turn."""
    return _histories(task, 3 if task.short else HISTORIES, forget_all)


def _histories(
    task: Task,
    histories: int,
    forget: Callable[..., None],
    engines: Sequence[str] = ENGINES,
    shares: Sequence[int] = SHARES,
) -> Round:
    load_core()
    done = Round()
    for number in range(histories):
        engine = engines[number] if number < len(engines) else task.random.choices(engines, shares)[0]
        try:
            _history(task, number, forget, done, engine)
        except ForkFailed as failed:
            done.fail(f"{engine}: {failed}")
    return done


def control(task: Task) -> Round:
    """Forget with an eraser that deletes rows and forgets their copies."""
    return _histories(task, 4, delete_rows, ENGINES[:1], SHARES[:1])


PART = Part(
    "erasure",
    "Random histories with kills, then forgotten: byte scan of every file",
    {"histories": 1_000},
    run,
    control,
    "an eraser that deletes the rows only",
)
