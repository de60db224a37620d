"""From Python: open a workspace, sync, search, read what a hit cites."""

from __future__ import annotations

import tempfile
from pathlib import Path

from memoriter import Memory
from memoriter.testing import sample_workspace


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = sample_workspace(Path(folder) / "notes")
        with Memory.open(workspace, home=Path(folder) / "home") as memory:
            report = memory.sync()
            print(f"{report.files} files, {report.chunks} chunks")
            answer = memory.search("how is the database backed up?", max_results=3)
            for hit in answer.hits:
                print(f"{hit.score:.2f}  {hit.citation}")
            best = answer.hits[0]
            print(memory.read(best.path, best.start_line, 4).text)


if __name__ == "__main__":
    main()
