"""Open a workspace, search it, read what a hit cites, and remember something."""

from __future__ import annotations

import tempfile
from pathlib import Path

import memoriter
from memoriter.testing import sample_workspace


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = sample_workspace(Path(folder) / "notes")
        with memoriter.open(workspace, home=Path(folder) / "home") as memory:
            report = memory.sync()
            print(f"{report.files} files, {report.chunks} chunks")
            answer = memory.search("how is the database backed up?", max_results=3)
            for hit in answer:
                print(f"{hit.score:.2f}  {hit.citation}")
            best = answer.hits[0]
            print(memory.read(best.path, best.start_line, 4).text)

            memory.remember("Mira prefers tabs in Go files.", type="user_preference")
            print(memory.recall("Does Mira prefer tabs or spaces?").text)


if __name__ == "__main__":
    main()
