"""memoriter itself, with default settings and the bundled model in the same process."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lab.evals.peers.drivers.lines import arguments, serve


def main() -> None:
    """Open a memory and answer."""
    given = arguments()
    package: Any = import_module("memoriter")
    config = given.state / "config.yaml"
    config.touch()
    memory = package.Memory.open(
        given.workspace,
        home=given.state / "home",
        config=config,
        overrides={"search.sync_before": False},
    )

    def search(query: str, limit: int) -> list[str]:
        return [hit.path for hit in memory.search(query, max_results=limit, min_score=0.0).hits]

    serve(memory.sync, search)
    memory.close()


main()
