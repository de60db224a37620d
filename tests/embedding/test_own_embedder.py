"""The example embedder in `docs/embedders.md` works."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memoriter import Memory

PAGE = Path(__file__).parents[2] / "docs" / "embedders.md"


def test_the_example_finds_anagrams(
    open_memory: Callable[..., Memory], note: Callable[[str, str], Path]
) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found
    names: dict[str, Any] = {}
    exec(found[1], names)
    note("memory/one.md", "listen")
    note("memory/two.md", "waterfall")
    memory = open_memory(names["Letters"]())
    memory.sync()
    assert [hit.path for hit in memory.search("silent").hits][:1] == ["memory/one.md"]
