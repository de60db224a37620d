"""Metrics in the Prometheus format.

Label values are names of agents, operations, outcomes, routes and statuses. All of them come from fixed tables, so a
caller cannot create new ones, and no metric contains user text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
GAUGES = {
    "memoriter_chunks": "Chunks in the index.",
    "memoriter_entries": "Entries in the memory.",
}


class Metrics:
    """The metrics of one gateway since it was started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._operations = Histogram(
            "memoriter_operation_duration_seconds",
            "Duration of operations.",
            ("agent", "operation", "outcome"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._syncs = Histogram(
            "memoriter_sync_duration_seconds",
            "Duration of automatic syncs.",
            ("agent", "outcome"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._requests = Counter(
            "memoriter_http_requests",
            "Requests by route and status.",
            ("route", "status"),
            registry=self._registry,
        )

    def count_operation(self, agent: str, name: str, outcome: str, seconds: float) -> None:
        """Count an operation."""
        self._operations.labels(agent, name, outcome).observe(seconds)

    def count_sync(self, agent: str, outcome: str, seconds: float) -> None:
        """Count a sync."""
        self._syncs.labels(agent, outcome).observe(seconds)

    def count_request(self, route: str, status: int) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()

    def render(
        self,
        may_see: Callable[[str], bool],
        sizes: Mapping[str, Mapping[str, float]],
        listeners: int | None,
    ) -> bytes:
        """Return the metrics of the agents that the caller may see.

        ``sizes`` holds the gauges by agent. ``listeners`` is None for a caller that may not see the gateway's own
        metrics.
        """
        return generate_latest(_Visible(self._registry, may_see, sizes, listeners))


class _Visible(Collector):
    """The metrics that one caller may see."""

    def __init__(
        self,
        registry: CollectorRegistry,
        may_see: Callable[[str], bool],
        sizes: Mapping[str, Mapping[str, float]],
        listeners: int | None,
    ) -> None:
        self._registry = registry
        self._may_see = may_see
        self._sizes = sizes
        self._listeners = listeners

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics with the samples that the caller may see."""
        for metric in self._registry.collect():
            visible = Metric(metric.name, metric.documentation, metric.type)
            visible.samples = [
                sample
                for sample in metric.samples
                if self._is_visible(sample.labels) and not sample.name.endswith("_created")
            ]
            if visible.samples:
                yield visible
        for name, help_text in GAUGES.items():
            gauge = GaugeMetricFamily(name, help_text, labels=("agent",))
            for agent, value in self._sizes.get(name, {}).items():
                if self._may_see(agent):
                    gauge.add_metric((agent,), value)
            yield gauge
        if self._listeners is not None:
            yield GaugeMetricFamily("memoriter_event_listeners", "Open event streams.", self._listeners)

    def _is_visible(self, labels: Mapping[str, str]) -> bool:
        agent = labels.get("agent")
        return self._listeners is not None if agent is None else self._may_see(agent)
