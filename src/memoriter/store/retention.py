"""Observed time, and since when entries wait to be erased.

A clock can be wrong, and a machine can sleep for months. So nothing is erased because of the time of day. Observed
time advances with the clock, but at most `MAX_STEP_S` between two observations, and never backwards. An entry is
erased after it has waited for a retention of observed time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from memoriter.store.protocol import Connection, Transactions, value

DAY_S = 86_400.0
#: Observed time advances at most this much between two observations.
MAX_STEP_S = 7 * DAY_S
#: A clock that is set back by more than this has jumped.
MAX_BACK_S = 3600.0
#: A clock that advances by more than this between two observations has jumped, or the machine was off.
MAX_AHEAD_S = 60 * DAY_S

_GET = "select value from meta where key = ?"
_PUT = "insert into meta(key, value) values(?, ?) on conflict(key) do update set value = excluded.value"


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump of the clock."""

    #: Seconds; negative when the clock was set back.
    seconds: float
    #: The observed time at which it was noticed.
    observed: float


class Retention:
    """The observed time of one ``memory.db``, and the entries that wait to be erased."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def observe(self, now: float) -> float:
        """Advance observed time to a new reading of the clock, and return it. A jump of the clock is recorded."""
        with self._database.write() as connection:
            seen, observed = _number(connection, "seen"), _number(connection, "observed") or 0.0
            if seen is not None:
                ahead = now - seen
                observed += min(max(0.0, ahead), MAX_STEP_S)
                if not -MAX_BACK_S <= ahead <= MAX_AHEAD_S:
                    connection.execute(_PUT, ("jump", json.dumps([ahead, observed])))
            connection.executemany(_PUT, [("seen", repr(now)), ("observed", repr(observed))])
        return observed

    def seen(self) -> float | None:
        """Return the last reading of the clock; None before the first."""
        with self._database.read() as connection:
            return _number(connection, "seen")

    def last_jump(self, within_s: float) -> Jump | None:
        """Return the last jump of the clock, if it was noticed within this much observed time."""
        with self._database.read() as connection:
            stored, observed = value(connection, _GET, ("jump",)), _number(connection, "observed") or 0.0
            jump = Jump(*json.loads(stored)) if stored else None
        return jump if jump and observed - jump.observed < within_s else None

    def due(self, states: Iterable[str], until: float) -> list[str]:
        """Return the entries in these states that wait since a time or longer, oldest first."""
        statement = """
            select e.id from retention r join entries e on e.id = r.entry_id
            where r.since <= ? and e.state in (select value from json_each(?)) order by r.since, e.id"""
        with self._database.read() as connection:
            return [str(row[0]) for row in connection.execute(statement, (until, json.dumps([*states])))]

    def record(self, states: Iterable[str], observed: float) -> None:
        """Record that the entries in these states wait from now on. Others do not wait any more."""
        waiting = json.dumps([*states])
        inside = "select id from entries where state in (select value from json_each(?))"
        with self._database.write() as connection:
            connection.execute(f"delete from retention where entry_id not in ({inside})", (waiting,))  # noqa: S608
            connection.execute(
                f"insert into retention(entry_id, since) select id, ? from ({inside}) as waiting where true"  # noqa: S608
                " on conflict do nothing",
                (observed, waiting),
            )


def _number(connection: Connection, key: str) -> float | None:
    found = value(connection, _GET, (key,))
    return None if found is None else float(found)
