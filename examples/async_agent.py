"""Ask several questions at the same time in an event loop, with a time limit."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from memoriter import AsyncMemory
from memoriter.testing import sample_workspace

QUESTIONS = ["Which food must Mira avoid?", "妈妈什么时候到里斯本？", "How do I roll back a deployment?"]


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = sample_workspace(Path(folder) / "notes")
        async with AsyncMemory.open(workspace, home=Path(folder) / "home") as memory:
            await memory.sync()
            async with asyncio.timeout(30):
                answers = await asyncio.gather(
                    *(memory.search(question, max_results=1) for question in QUESTIONS)
                )
            for question, answer in zip(QUESTIONS, answers, strict=True):
                places = [hit.citation for hit in answer]
                print(f"{question}  →  {places}  {answer.degraded or ''}")


if __name__ == "__main__":
    asyncio.run(main())
