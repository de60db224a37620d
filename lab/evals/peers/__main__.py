"""`python -m lab.evals.peers --data DIR`: the same questions to memoriter and to other memories, in one run.

Every peer indexes the same notes and answers the same questions. Those that accept an embedder get ours through a
loopback server, whose cost is added to theirs. Figures of peers that are not part of this run stay in the JSON file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from lab.evals import metrics
from lab.evals.figures import Figures, summary
from lab.evals.metrics import expand
from lab.evals.options import choose, default_cache
from lab.evals.peers.embeddings import MODEL
from lab.evals.peers.install import PEERS, ROOT, Peer
from lab.evals.peers.process import Driver, PeerFailed
from lab.evals.run import sampled, write_notes
from lab.evals.sets import EvalSet, Item, Query

#: Hits that every peer is asked for.
LIMIT = 30
#: Sets with the number of their groups, and questions of each group. A part is enough for the slowest peer.
SETS, QUESTIONS = "locomo:2,memories:4", 50

Place = tuple[str, str, list[Item], list[Query]]


@dataclass
class Tally:
    """What one peer reached on one set."""

    ndcg: list[float] = field(default_factory=list)
    rr: list[float] = field(default_factory=list)
    languages: dict[str, list[float]] = field(default_factory=dict)
    index_s: float = 0.0
    search_s: float = 0.0
    rss_mb: float = 0.0
    items: int = 0

    def add(self, query: Query, ranked: Sequence[str]) -> None:
        """Score one answer."""
        score = metrics.ndcg(ranked, query.relevant)
        self.ndcg.append(score)
        self.rr.append(metrics.reciprocal_rank(ranked, query.relevant))
        self.languages.setdefault(query.language, []).append(score)

    def figures(self) -> Figures:
        """Return the tally as plain data."""
        return {
            "queries": len(self.ndcg),
            "items": self.items,
            "nDCG@10": summary(self.ndcg),
            "MRR": summary(self.rr),
            "languages": {name: fmean(values) for name, values in sorted(self.languages.items())},
            "index_s": self.index_s,
            "search_ms": 1000 * self.search_s / max(1, len(self.ndcg)),
            "rss_mb": self.rss_mb,
        }


class Server:
    """The loopback server for embeddings."""

    def __init__(self, url: str, dimensions: int) -> None:
        self.url = url
        self.dimensions = dimensions

    def cost(self) -> tuple[float, float]:
        """Return CPU seconds and resident megabytes."""
        with urllib.request.urlopen(f"{self.url}/cost") as answer:
            found = json.load(answer)
        return found["cpu_s"], found["rss_mb"]


@contextmanager
def embeddings(cache: Path) -> Iterator[Server]:
    """Run the server."""
    command = [sys.executable, "-m", "lab.evals.peers.embeddings", str(cache)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            started = json.loads(process.stdout.readline())
            yield Server(f"http://127.0.0.1:{started['port']}/v1", started["dimensions"])
        finally:
            process.kill()


def run_peer(peer: Peer, places: Sequence[Place], server: Server, cache: Path) -> Figures:
    """Let one peer answer everything; a failure is part of the figures."""
    tallies: dict[str, Tally] = {}
    found: Figures = {"version": peer.version, "limits": peer.limits, "embedder": _embedder(peer), "sets": {}}
    for name, group, items, queries in places:
        tally = tallies.setdefault(name, Tally())
        print(f"{peer.name}: {name}/{group}, {len(items)} items, {len(queries)} questions", file=sys.stderr)
        try:
            run_group(peer, cache / "peers" / name / group, items, queries, server, tally)
        except PeerFailed as failure:
            found["failed"] = f"{name}/{group}: {failure}"
            print(f"{peer.name} failed: {failure}", file=sys.stderr, flush=True)
            break
        found["sets"] = {name: tally.figures() for name, tally in tallies.items() if tally.ndcg}
    return found


def run_group(
    peer: Peer, place: Path, items: Sequence[Item], queries: Sequence[Query], server: Server, tally: Tally
) -> None:
    """Index one group and ask its questions."""
    by_path = write_notes(place, items)
    with (
        tempfile.TemporaryDirectory(prefix=f"{peer.name}-") as state,
        open_peer(peer, place, state, server) as driver,
    ):
        start = _cost(peer, driver, server)
        driver.ask({"op": "index"})
        indexed = _cost(peer, driver, server)
        driver.ask({"op": "search", "query": queries[0].text, "limit": LIMIT})
        warm = _cost(peer, driver, server)
        for query in queries:
            paths = driver.ask({"op": "search", "query": query.text, "limit": LIMIT})["paths"]
            tally.add(query, expand([by_path[path]] for path in paths if path in by_path))
        end = _cost(peer, driver, server)
    tally.items += len(items)
    tally.index_s += indexed[0] - start[0]
    tally.search_s += end[0] - warm[0]
    tally.rss_mb = max(tally.rss_mb, end[1])


@contextmanager
def open_peer(peer: Peer, place: Path, state: str, server: Server) -> Iterator[Driver]:
    """Run a peer over the notes of a folder."""
    arguments = [str(place.resolve()), state, server.url, MODEL, str(server.dimensions)]
    driver = Driver([*peer.command(), *arguments], peer.environment(), place / f"{peer.name}.log")
    try:
        driver.ask({"op": "start"})
        yield driver
    finally:
        driver.close()


def _cost(peer: Peer, driver: Driver, server: Server) -> tuple[float, float]:
    costs = [driver.cost(), *([server.cost()] if peer.uses_server else [])]
    return sum(cpu for cpu, _ in costs), sum(rss for _, rss in costs)


def _embedder(peer: Peer) -> str:
    if peer.uses_server:
        return "ours, over HTTP"
    return "ours" if peer.name == "memoriter" else "none"


def places_of(sets: Sequence[EvalSet], groups: Mapping[str, int], questions: int) -> list[Place]:
    """Return the first groups of each set with a sample of their answerable questions."""
    return [
        (one.name, group, items, list(sampled([query for query in queries if query.relevant], questions)))
        for one in sets
        for group, items, queries in [place for place in one.groups() if place[1] and place[2]][
            : groups[one.name]
        ]
    ]


def counts(text: str) -> dict[str, int]:
    """Read sets with the number of their groups.

    >>> counts("locomo:2,beam")
    {'locomo': 2, 'beam': 1}
    """
    return {name: int(number or 1) for name, _, number in (part.partition(":") for part in text.split(","))}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the peers and keep their figures."""
    options = parser().parse_args(arguments)
    places = places_of(choose(options.data, list(options.sets), None), options.sets, options.questions)
    known: dict[str, Any] = json.loads(options.json.read_text("utf-8")) if options.json.exists() else {}
    peers: dict[str, Any] = known.get("peers", {}) if known.get("questions") == _asked(places) else {}
    with embeddings(options.cache) as server:
        for peer in PEERS:
            if peer.name not in options.peers.split(",") and options.peers != "all":
                continue
            if not peer.is_installed:
                print(f"{peer.name} is not installed; run: python -m lab.evals.peers.install {peer.name}")
                continue
            peers[peer.name] = run_peer(peer, places, server, options.cache)
            peers = {one.name: peers[one.name] for one in PEERS if one.name in peers}
            kept = {"questions": _asked(places), "limit": LIMIT, "peers": peers}
            options.json.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(json.dumps(peers, ensure_ascii=False, indent=1))
    return 0


def _asked(places: Sequence[Place]) -> Mapping[str, Mapping[str, int]]:
    asked: dict[str, dict[str, int]] = {}
    for name, _, items, queries in places:
        counts = asked.setdefault(name, {"groups": 0, "items": 0, "queries": 0})
        counts["groups"] += 1
        counts["items"] += len(items)
        counts["queries"] += len(queries)
    return asked


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m lab.evals.peers", description=__doc__.split("\n", 1)[0])
    made.add_argument("--data", type=Path, help="Folder with sets.")
    made.add_argument(
        "--sets", type=counts, default=counts(SETS), help=f"Sets and numbers of groups (default: {SETS})."
    )
    made.add_argument(
        "--questions", type=int, default=QUESTIONS, help=f"Questions of each group (default: {QUESTIONS})."
    )
    made.add_argument("--peers", default="all", help=f"Comma-separated: {', '.join(p.name for p in PEERS)}.")
    made.add_argument("--json", type=Path, required=True, help="File with the figures; others stay in it.")
    made.add_argument("--cache", type=Path, default=default_cache(), help="Folder for notes and vectors.")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
