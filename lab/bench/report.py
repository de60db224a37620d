"""The figures of a run as Markdown, compared with their budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lab.bench.gateway import BUDGET_MS, Comparison
from lab.bench.measure import Spread, Timing
from lab.bench.searching import Timed, Whole
from lab.bench.syncing import Indexed
from memoriter.records import SyncReport

SEARCH_BUDGET_MS = {1_000: 3.0, 10_000: 5.0, 100_000: 12.0, 1_000_000: 30.0}
#: Of a search with both models, at any size.
RERANKED_BUDGET_MS = 70.0


@dataclass
class Figures:
    """The measurements of a run."""

    files: int = 0
    unchanged: Timing[SyncReport] | None = None
    indexed: Sequence[Indexed] = ()
    cold: Mapping[str, float] = field(default_factory=dict)
    #: Wall milliseconds, and CPU milliseconds if known.
    mcp: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)
    gateway: Comparison | None = None
    whole: list[Whole] = field(default_factory=list)
    timed: list[Timed] = field(default_factory=list)
    resident: dict[int, Mapping[str, float]] = field(default_factory=dict)


def markdown(figures: Figures) -> str:
    """Return all tables."""
    parts = [
        "#### Budgets",
        _table(["what", "budget", "measured", ""], _budgets(figures)),
        "#### Warm search, with and without the models (CPU ms, p50 / p95)",
        _table(
            ["chunks", "search", "and embedding the query", "and reranking", "and both"],
            map(_whole_row, figures.whole),
        ),
        "#### Warm search by leg, without the models (CPU ms)",
        _table(
            ["chunks", "work", "p50", "p95", "wall p50", "compared with", "its p50", "times faster"],
            map(_timed_row, figures.timed),
        ),
        "#### Indexing",
        _table(
            ["how", "chunks", "CPU s", "wall s", "chunks per CPU s", "CPU s per MB"],
            map(_indexed_row, figures.indexed),
        ),
        "#### Command line (CPU ms of its own process; warm: a resident process answers)",
        _table(["command", "CPU ms"], [[name, f"{ms:.0f}"] for name, ms in figures.cold.items()]),
        "#### `memoriter mcp`, cold (20 notes, bundled model)",
        _table(["step", "wall ms", "CPU ms"], map(_step_row, figures.mcp.items())),
        "#### A warm search over the gateway (200 notes, keywords only; ms)",
        _table(["library, CPU", "gateway, CPU", "added", "client waits"], _gateway_rows(figures.gateway)),
    ]
    return "\n\n".join(parts) + "\n"


def _budgets(figures: Figures) -> Iterable[list[str]]:
    if figures.unchanged:
        took = figures.unchanged
        yield _budget_row(f"no-change sync of {figures.files:,} files", 0.3, took.cpu_s, "s CPU")
    for run in figures.indexed[:1]:
        measured = f"{run.per_second:,.0f} chunks/s"
        yield ["indexing, no embedder", "≥ 5,000 chunks/s", measured, _verdict(run.per_second >= 5000)]
    for one in figures.timed:
        if one.work.startswith("search") and one.size in SEARCH_BUDGET_MS:
            name = f"{one.work} at {one.size:,} chunks, p50"
            yield _budget_row(name, SEARCH_BUDGET_MS[one.size], one.took.p50, "ms CPU")
    for found in figures.whole:
        if found.size in SEARCH_BUDGET_MS:
            name = f"search with both models at {found.size:,} chunks, p50"
            yield _budget_row(name, RERANKED_BUDGET_MS, found.both.p50, "ms CPU")
    for size, held in figures.resident.items():
        limit = f"resident memory at {size:,} chunks"
        yield _budget_row(limit, 400, held["all"], f"MB ({held['own']:.0f} of it not mapped files)")
    for name, budget in (("--help", 300), ("search (", 400), ("search, warm", 150), ("hook", 50)):
        for command, ms in figures.cold.items():
            if command.startswith(f"memoriter {name}"):
                yield _budget_row(command, budget, ms, "ms CPU")
    if figures.gateway:
        yield _budget_row(
            "what the gateway adds to a warm search", BUDGET_MS, figures.gateway.added, "ms CPU"
        )


def _budget_row(what: str, budget: float, measured: float, unit: str) -> list[str]:
    return [
        what,
        f"≤ {budget:g} {unit.split(maxsplit=1)[0]}",
        f"{measured:.3g} {unit}",
        _verdict(measured <= budget),
    ]


def _verdict(within: bool) -> str:
    return "met" if within else "**missed**"


def _whole_row(one: Whole) -> list[str]:
    spreads: tuple[Spread, ...] = (one.plain, one.embedded, one.reranked, one.both)
    return [f"{one.size:,}", *(f"{found.p50:.1f} / {found.p95:.1f}" for found in spreads)]


def _timed_row(one: Timed) -> list[str]:
    took, peer = one.took, one.peer
    row = [f"{one.size:,}", one.work, f"{took.p50:.2f}", f"{took.p95:.2f}", f"{took.wall_p50:.2f}"]
    if peer is None:
        return [*row, "", "", ""]
    return [*row, one.peer_name, f"{peer.p50:.2f}", f"{peer.p50 / took.p50:.1f}×"]


def _indexed_row(run: Indexed) -> list[str]:
    took = run.took
    times = [f"{took.cpu_s:.2f}", f"{took.wall_s:.2f}", f"{run.per_second:,.0f}", f"{run.per_megabyte:.1f}"]
    return [run.how, f"{run.chunks:,}", *times]


def _gateway_rows(found: Comparison | None) -> Iterable[list[str]]:
    if found:
        yield [f"{ms:.2f}" for ms in (found.library, found.gateway, found.added, found.wall)]


def _step_row(step: tuple[str, tuple[float, float | None]]) -> list[str]:
    name, (wall, cpu) = step
    return [name, f"{wall:.0f}", "" if cpu is None else f"{cpu:.0f}"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
