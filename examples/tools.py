"""Offer the memory to a model as tools: schemas, a section for the system prompt, and calls."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import memoriter
from memoriter.testing import sample_workspace


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = sample_workspace(Path(folder) / "notes")
        with memoriter.open(workspace, home=Path(folder) / "home") as memory:
            memory.sync()
            toolbox = memoriter.Toolbox(memory, session="agent:main:main")
            system_prompt = toolbox.prompt("en")
            schemas = toolbox.anthropic()  # or toolbox.openai()
            print(system_prompt.splitlines()[0], [schema["name"] for schema in schemas][:2])

            # A call as the model writes it:
            call = {
                "name": "memory_search",
                "input": '{"query": "how is the database backed up?", "maxResults": 2}',
            }
            result = toolbox.call(call["name"], call["input"])
            for hit in result["results"]:
                print(hit["citation"], hit["snippet"].splitlines()[-1])

            best = result["results"][0]
            lines = toolbox.call("memory_get", {"path": best["path"], "from": best["startLine"], "lines": 2})
            print(json.dumps(lines, ensure_ascii=False))


if __name__ == "__main__":
    main()
