"""Damage derived files at random. A search never raises, and after one sync it answers like a healthy home."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.soak.forking import ForkFailed, in_fork, load_core
from lab.soak.part import Part, Round, Task
from lab.soak.writers import Home

#: Files and folders of an agent that are not derived from anything.
TRUTH = (
    "memory.db",
    "items.db",
    "sessions",
    "queue",
    "hooks",
    "seen_turns",
    "flushes",
    "tokens.json",
    "pinecone",
)
DAMAGES = 100
#: Queries whose answers hold every note, the transcript and every entry, so that no lost row stays unnoticed.
NOTES, ENTRIES, ITEMS = (
    ("heron marsh at dawn 备份", "invoices drawer"),
    "stork nests on tower",
    "invoices of drawer",
)
ALL = 100
Damage = Callable[[Path, random.Random], None]


# ---- damage ---------------------------------------------------------------------------------------------------


def flip(file: Path, chooser: random.Random) -> None:
    """Change one to eight bytes."""
    content = bytearray(file.read_bytes() or b"\0")
    for _ in range(chooser.randrange(1, 9)):
        content[chooser.randrange(len(content))] ^= 1 << chooser.randrange(8)
    file.write_bytes(bytes(content))


def garble(file: Path, chooser: random.Random) -> None:
    """Overwrite a part with random bytes."""
    content = bytearray(file.read_bytes() or b"\0")
    at = chooser.randrange(len(content))
    content[at : at + chooser.choice((16, 512, 8192))] = chooser.randbytes(chooser.choice((16, 512, 8192)))
    file.write_bytes(bytes(content))


def zero(file: Path, chooser: random.Random) -> None:
    """Overwrite a page with zeros."""
    content = bytearray(file.read_bytes() or b"\0")
    at = chooser.randrange(len(content)) & ~8191
    content[at : at + 8192] = bytes(len(content[at : at + 8192]))
    file.write_bytes(bytes(content))


def truncate(file: Path, chooser: random.Random) -> None:
    """Cut off the end."""
    with file.open("r+b") as opened:
        opened.truncate(chooser.randrange(max(1, file.stat().st_size)))


def empty(file: Path, _: random.Random) -> None:
    """Remove the content."""
    file.write_bytes(b"")


def delete(file: Path, _: random.Random) -> None:
    """Remove the file."""
    file.unlink()


def replace(file: Path, chooser: random.Random) -> None:
    """Replace the content by random bytes."""
    file.write_bytes(chooser.randbytes(chooser.choice((10, 5_000, 200_000))))


def extend(file: Path, chooser: random.Random) -> None:
    """Append random bytes."""
    with file.open("ab") as opened:
        opened.write(chooser.randbytes(chooser.choice((10, 8192))))


DAMAGE: tuple[Damage, ...] = (flip, flip, garble, garble, zero, truncate, empty, delete, replace, extend)


# ---- a home ---------------------------------------------------------------------------------------------------


def open_memory(home: Home) -> Any:
    """Open a memory with vectors in side files, which a large store has."""
    from memoriter import Memory
    from memoriter.index import follow
    from memoriter.store.vectors import scan
    from memoriter.testing import HashEmbedder

    follow.EMBED_S = 60.0  # a starved machine would otherwise answer from keywords until the next search
    scan.LIMITS = scan.ScanLimits(threshold=20, tail_rows=4)
    settings = {"search.rerank": False, "embedding.background": False}
    return Memory.open(home.workspace, home=home.home, embedder=HashEmbedder(), overrides=settings)


def prepare(home: Home) -> None:
    """Fill a home with notes, entries, items and a transcript, and index them."""
    from memoriter.extensions.langgraph.items import items_of
    from memoriter.extensions.langgraph.items.store import Put

    home.create()
    for number in range(24):
        text = f"# Note {number}\n\nThe heron {number} stands in the marsh at dawn.\n\n数据库备份第 {number} 份。\n"
        (home.workspace / f"memory/{number}.md").write_text(text)
    with open_memory(home) as memory:
        for number in range(24):
            memory.remember(f"The stork number {number} nests on tower {number * 7 + 3}", "fact")
        items = items_of(memory)
        items.put(
            [
                Put(("soak",), f"k{n}", {"t": f"invoices of drawer {n}"}, (f"invoices of drawer {n}",))
                for n in range(20)
            ]
        )
        memory.transcript_writer("s0").add([{"role": "user", "content": "The invoices are in drawer 4."}])
        memory.sync()
        _answers(memory)


def _answers(memory: Any) -> list[list[object]]:
    """Return what the memory answers, without times."""
    from memoriter.extensions.langgraph.items import items_of

    answers: list[list[object]] = []
    for query in NOTES:
        answer = memory.search(query, min_score=0, max_results=ALL)
        answers.append([[hit.path, hit.start_line, round(hit.score, 6)] for hit in answer.hits])
    found = memory.entries.search(ENTRIES, limit=ALL)
    answers.append([[hit.entry.text, round(hit.similarity, 6)] for hit in found.hits])
    items = items_of(memory).search(("soak",), ITEMS, limit=ALL)
    answers.append([hit.item.key for hit in items])
    return answers


def answers(home: Home) -> list[list[object]]:
    """Open a home and return its answers."""
    with open_memory(home) as memory:
        return _answers(memory)


def first_use(home: Home) -> list[str]:
    """Use a damaged home at once: nothing may raise anything but an error of this package, and a search never."""
    from memoriter.errors import MemoriterError

    wrong = []
    try:
        with open_memory(home) as memory:
            memory.search(NOTES[0])
            memory.recall(ENTRIES)
            try:
                memory.sync()
            except MemoriterError as error:
                wrong.append(f"sync: {error}")
    except Exception as error:  # noqa: BLE001  this is what the part looks for
        wrong.append(f"{type(error).__name__}: {error}")
    return wrong


def truth(home: Home) -> dict[str, int]:
    """Return digests of the notes and transcripts. A recall may write to the databases of truth."""
    files = [*home.workspace.rglob("*.md"), *(home.agent / "sessions").rglob("*.jsonl")]
    return {str(file.relative_to(home.root)): hash(file.read_bytes()) for file in files}


def derived_files(home: Home) -> list[Path]:
    """Return the derived files of the agent that hold anything."""
    found = [file for file in sorted(home.agent.rglob("*")) if file.is_file() and file.suffix != ".lock"]
    relative = ((file, file.relative_to(home.agent).parts[0]) for file in found)
    return [file for file, top in relative if not top.startswith(TRUTH) and not file.name.endswith("-shm")]


class Damaged:
    """A healthy home, and copies of it that are damaged one after the other."""

    def __init__(self, folder: Path) -> None:
        load_core()
        self._base, self.home = Home(folder / "base"), Home(folder / "home")
        in_fork(prepare, self.restore(create=True))
        shutil.copytree(self.home.root, self._base.root)
        self.expected = in_fork(answers, self.restore())

    def restore(self, *, create: bool = False) -> Home:
        """Return the home as it was before any damage, at the same place."""
        shutil.rmtree(self.home.root, ignore_errors=True)
        if not create:
            shutil.copytree(self._base.root, self.home.root)
        return self.home


def run(task: Task) -> Round:
    """Damage derived files one after the other, and check that each is healed."""
    return _damage(task, 5 if task.short else DAMAGES, heal=True)


def _damage(task: Task, times: int, *, heal: bool) -> Round:
    damaged, done = Damaged(task.folder), Round()
    for _ in range(times):
        home = damaged.restore()
        file = task.random.choice(derived_files(home))
        damage = task.random.choice(DAMAGE)
        where = f"{damage.__name__} {file.relative_to(home.agent)}"
        damage(file, task.random)
        before = truth(home)
        done.count("damages")
        try:
            if heal:
                for problem in in_fork(first_use, home):
                    done.fail(f"{where}: at first {problem}")
            now = in_fork(answers if heal else unhealed, home)
        except ForkFailed as failed:
            done.fail(f"{where}: {str(failed)[-900:]}")
            continue
        if now != damaged.expected:
            wrong = [pair for pair in zip(now, damaged.expected, strict=True) if pair[0] != pair[1]]
            done.fail(
                f"{where}: not healed, {len(wrong)} of {len(now)} answers differ: {str(wrong[0])[:300]}"
            )
        if truth(home) != before:
            done.fail(f"{where}: a file of truth changed")
    return done


def unhealed(home: Home) -> list[list[object]]:
    """Read the chunks with plain SQLite, as a program without repair would: the control."""
    import sqlite3

    index = next(home.agent.rglob("index.db"))
    with sqlite3.connect(index) as database:
        database.execute("select count(*), max(text) from chunks where text like '%heron%'").fetchall()
        if database.execute("pragma quick_check").fetchall() != [("ok",)]:
            raise RuntimeError("the index is damaged")
    return answers(home)


def control(task: Task) -> Round:
    """Read damaged files without repair."""
    return _damage(task, 40, heal=False)


PART = Part(
    "derived",
    "Damage to derived files: all healed",
    {"damages": 2_000},
    run,
    control,
    "plain SQLite on the damaged index",
)
