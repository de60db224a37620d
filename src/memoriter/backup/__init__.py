"""One file that holds everything that cannot be rebuilt: databases, sessions, settings and notes.

    >>> from memoriter.backup import create, restore  # doctest: +SKIP
    >>> create(settings, Path("memory.zip"))  # doctest: +SKIP
    >>> restore(Path("memory.zip"), home=Path("~/.memoriter").expanduser())  # doctest: +SKIP

The index and everything else that is derived is left out. The first search after a restore builds it.
"""

from __future__ import annotations

from memoriter.backup.creating import BackupReport, create
from memoriter.backup.migrating import MigrationReport, migrate
from memoriter.backup.restoring import RestoreReport, restore

__all__ = ["BackupReport", "MigrationReport", "RestoreReport", "create", "migrate", "restore"]
