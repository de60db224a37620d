"""Write paths of `faults` that move a whole memory: restore, migrate, pull, push, and opening an old home.

Each starts with a home that no process has open. After a fault, the home is as before or as after, or it refuses to be
opened. The same command, run again, must then complete it, and nothing that was there may be lost.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.soak.writers import Home

SAMPLE = Path(__file__).parents[2] / "tests/memory/samples/home-0.1.0.tar.xz"
#: Name of the variable with the URL of the Postgres server.
SERVER = "SOAK_POSTGRES"
#: The control.
CARELESS = "a restore that deletes first"


@dataclass(frozen=True)
class Transfer:
    """A write path that moves a whole memory."""

    prepare: Callable[[Home], None]
    run: Callable[[Home], None]
    #: Whether it needs a Postgres server.
    server: bool = False
    #: Whether it replaces the entries. One is then added between the fault and the next run, which must keep it.
    replaces: bool = False


def _backup(home: Home) -> Path:
    return home.root / "backup.zip"


def _folder(home: Home) -> Path:
    return home.root / "folder"


def _open(home: Home) -> Any:
    from lab.soak.faults import open_memory

    return open_memory(home)


def _back_up(home: Home) -> None:
    from memoriter.extensions.backup.creating import create

    create(_settings(home.home, workspace=home.workspace), _backup(home))


def _back_up_and_change(home: Home) -> None:
    _back_up(home)
    with _open(home) as memory:
        memory.remember("The ferry leaves after the backup", "fact")
        memory.notes.put("memory/later.md", "Written after the backup.\n", version=None)
        (home.workspace / "MEMORY.md").write_text("The heron stands in the northern marsh at dawn, still.\n")
        memory.sync()


def _back_up_and_delete(home: Home) -> None:
    _back_up(home)
    shutil.rmtree(home.home)
    shutil.rmtree(home.workspace)
    home.create()


def _restore(home: Home) -> None:
    from memoriter.extensions.backup.restoring import restore

    restore(_backup(home), home=home.home, workspace=home.workspace, force=True, accept=True)


def _delete_and_restore(home: Home) -> None:
    shutil.rmtree(home.agent, ignore_errors=True)
    _restore(home)


def _change_both_sides(home: Home) -> None:
    """Change notes in the memory and in the folder: one on each side, one on both, one new and one removed on each."""
    workspace, folder = home.workspace / "memory", _folder(home) / "memory"
    names = ("mine", "yours", "both", "gone-here", "gone-there")
    for name in names:
        (workspace / f"{name}.md").write_text(f"The note {name} is as both sides had it.\n")
    _pull(home)
    for root, changed, new, gone in (
        (workspace, "mine", "new-here", "gone-here"),
        (folder, "yours", "new-there", "gone-there"),
    ):
        (root / f"{changed}.md").write_text(f"The note {changed} was changed in {root.parent.name}.\n")
        (root / "both.md").write_text(f"The note was changed in {root.parent.name}.\n")
        (root / f"{new}.md").write_text(f"The note is new in {root.parent.name}.\n")
        (root / f"{gone}.md").unlink()


def _exchange(home: Home, method: str) -> None:
    from memoriter.errors import WriteError
    from memoriter.extensions.exchange.folder import exchange

    with _open(home) as memory:
        report = getattr(exchange(memory, _folder(home)), method)()
        if report.problems:  # the command prints them, and ends with an error
            raise WriteError(str(report.problems))


def _pull(home: Home) -> None:
    _exchange(home, "pull")


def _push(home: Home) -> None:
    _exchange(home, "push")


def _settings(home: Path, **values: object) -> Any:
    from memoriter.config import load

    return load(arguments={"home": home, "search.rerank": False, **values}, environ={}, cwd=home)


def _on_server(home: Home, tenant: str) -> Any:
    place = home.root / "gateway"
    return _settings(place, **{"store.url": os.environ[SERVER], "store.tenant": tenant})


def _make_gateway(home: Home) -> None:
    (home.root / "gateway").mkdir()


def _move_to_server(home: Home) -> None:
    from memoriter.extensions.backup.migrating import migrate

    _make_gateway(home)
    migrate(_settings(home.home, workspace=home.workspace), _on_server(home, home.root.parent.name))
    for old in (home.home, home.workspace, home.root / "gateway"):
        shutil.rmtree(old)
    home.create()
    home.home.mkdir()
    _make_gateway(home)


def _migrate_back(home: Home) -> None:
    from memoriter.extensions.backup.migrating import migrate

    migrate(_on_server(home, home.root.parent.name), _settings(home.home, workspace=home.workspace))


def _migrate(home: Home) -> None:
    """Copy the memory to the server, to a tenant that only this copy of the home uses."""
    from memoriter.extensions.backup.migrating import migrate

    migrate(_settings(home.home, workspace=home.workspace), _on_server(home, (home.root / "run").read_text()))


def _old_home(home: Home) -> None:
    for earlier in (home.home, home.workspace):
        shutil.rmtree(earlier)
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(home.root, filter="data")
    (home.root / "notes").rename(home.workspace)
    with (home.workspace / "MEMORY.md").open("a") as file:
        file.write("\nThe heron stands in the northern marsh at dawn.\n")


def _upgrade(home: Home) -> None:
    with _open(home) as memory:
        memory.entries.list()


TRANSFERS = {
    "restore over a memory": Transfer(_back_up_and_change, _restore, replaces=True),
    "restore into an empty home": Transfer(_back_up_and_delete, _restore, replaces=True),
    "pull": Transfer(_change_both_sides, _pull),
    "push": Transfer(_change_both_sides, _push),
    "migrate to a server": Transfer(_make_gateway, _migrate, server=True),
    "migrate from a server": Transfer(_move_to_server, _migrate_back, server=True),
    "open a home of version 0.1.0": Transfer(_old_home, _upgrade),
    CARELESS: Transfer(_back_up_and_change, _delete_and_restore, replaces=True),
}


# ---- what is there afterwards ---------------------------------------------------------------------------------


def look(home: Home, adds: bool = False) -> dict[str, Any] | None:
    """Return what a home and the folder beside it hold; None if the home says that a restore was interrupted.

    ``adds`` adds an entry afterwards.
    """
    from lab.soak.faults import notes_below, snapshot
    from memoriter.errors import BackupError

    try:
        found = {**snapshot(home), "folder": notes_below(_folder(home))}
        if adds:
            with _open(home) as memory:
                memory.remember("The lamp was lit after the fault", "fact")
    except BackupError:
        return None
    return found


def kept(home: Home) -> list[str]:
    """Return the texts of all entries of the home, and of those that a restore put aside."""
    found = set[str]()
    for database in (home.agent / "memory.db", *home.home.glob("replaced-*/agents/main*/memory.db")):
        if database.exists():
            connection = sqlite3.connect(database)
            found.update(text for (text,) in connection.execute("select text from entries"))
            connection.close()
    return sorted(found)


def is_allowed(now: Any, before: Any, after: Any) -> bool:
    """Return whether a value is as before or as after; of notes, each one."""
    if isinstance(now, dict) and isinstance(before, dict):
        names = {*now, *before, *after}
        return all(now.get(name) in (before.get(name), after.get(name)) for name in names)
    return now in (before, after)
