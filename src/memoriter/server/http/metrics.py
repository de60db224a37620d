"""Counts and durations as Prometheus reads them.

Labels are names of agents and operations, outcomes, routes and statuses: all of them from our own tables, so nobody
can make more of them by asking. No text of anybody is in here.
"""

from __future__ import annotations

import bisect
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


class Histogram:
    """How many took how long."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect.bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def lines(self, name: str, labels: Labels) -> Iterator[str]:
        """As Prometheus reads it: each bucket holds those before it."""
        running = 0
        for limit, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            running += count
            yield f"{name}_bucket{_braces((*labels, ('le', limit)))} {running}"
        yield f"{name}_sum{_braces(labels)} {self.total:.6f}"
        yield f"{name}_count{_braces(labels)} {running}"


class Metrics:
    """What the gateway counted since it was started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._operations: defaultdict[Labels, Histogram] = defaultdict(Histogram)
        self._syncs: defaultdict[Labels, Histogram] = defaultdict(Histogram)
        self._requests: defaultdict[Labels, int] = defaultdict(int)

    def operation(self, agent: str, name: str, outcome: str, seconds: float) -> None:
        """An operation was done."""
        labels = (("agent", agent), ("operation", name), ("outcome", outcome))
        with self._lock:
            self._operations[labels].add(seconds)

    def sync(self, agent: str, outcome: str, seconds: float) -> None:
        """A sync was done."""
        with self._lock:
            self._syncs[(("agent", agent), ("outcome", outcome))].add(seconds)

    def request(self, route: str, status: int) -> None:
        """A request was answered."""
        with self._lock:
            self._requests[(("route", route), ("status", str(status)))] += 1

    def text(
        self,
        seen: Callable[[str], bool],
        by_agent: Mapping[str, Mapping[str, float]],
        listeners: int | None,
    ) -> str:
        """Everything that belongs to agents which the reader may see; the gateway's own where they may see all."""
        with self._lock:
            lines = [
                *_histograms("memoriter_operation_duration_seconds", "Operations.", self._operations, seen),
                *_histograms("memoriter_sync_duration_seconds", "Syncs.", self._syncs, seen),
            ]
            requests = dict(self._requests)
        for name, values in by_agent.items():
            labelled = [((("agent", agent),), value) for agent, value in values.items() if seen(agent)]
            lines += _family(name, "gauge", "At the last look.", labelled)
        if listeners is not None:
            lines += _family("memoriter_http_requests_total", "counter", "Requests.", requests.items())
            lines += _family("memoriter_event_listeners", "gauge", "Open streams.", [((), listeners)])
        return "\n".join(lines) + "\n"


def _histograms(
    name: str, words: str, held: Mapping[Labels, Histogram], seen: Callable[[str], bool]
) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} histogram"
    for labels, histogram in sorted(held.items(), key=lambda item: item[0]):
        if seen(dict(labels)["agent"]):
            yield from histogram.lines(name, labels)


def _family(name: str, kind: str, words: str, values: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} {kind}"
    for labels, value in sorted(values):
        yield f"{name}{_braces(labels)} {value}"


def _braces(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}" if labels else ""
