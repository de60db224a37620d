"""The dimensions of a model that memoriter does not know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from test_faults import by_meaning
from vendors import Vendors

from memoriter import Memory

OpenProvider = Callable[..., Memory]
UNKNOWN = {"embedding__model": "house-embed-7", "embedding__dimensions": None, "embedding__background": False}


@pytest.mark.parametrize("name", ["openai", "ollama"])
def test_a_server_is_asked_once_for_the_dimensions_of_an_unknown_model(
    vendors: Vendors, open_provider: OpenProvider, note: Callable[[str, str], Path], name: str
) -> None:
    note("memory/heron.md", "The grey heron stands in the river at dawn.")
    memory = open_provider(name, **UNKNOWN)
    report = memory.sync()
    assert (report.embedded, report.pending, report.degraded) == (1, 0, None)
    assert by_meaning(memory.search("heron at dawn"))
    calls = vendors.calls()
    again = open_provider(name, **UNKNOWN)
    assert (again.sync().pending, vendors.calls()) == (0, calls)


def test_a_server_that_does_not_answer_is_reported_and_asked_again_later(
    vendors: Vendors, open_provider: OpenProvider, note: Callable[[str, str], Path]
) -> None:
    note("memory/heron.md", "The grey heron stands in the river at dawn.")
    vendors.fault = "500"
    memory = open_provider("openai", **UNKNOWN)
    answer = memory.search("heron")
    assert [hit.path for hit in answer.hits] == ["memory/heron.md"]
    assert answer.degraded is not None
    assert answer.degraded.startswith(
        "keyword search only: the server could not be asked for the dimensions of 'house-embed-7', and "
        "embedding.dimensions is not set: openai failed with status 500"
    )
    report = memory.sync()
    assert (report.pending, report.embedded) == (1, 0)
    vendors.fault = None
    assert open_provider("openai", **UNKNOWN).sync().embedded == 1
