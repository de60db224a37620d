from __future__ import annotations

from collections.abc import Iterator

import pytest
from chat_server import Server, running


@pytest.fixture
def server() -> Iterator[Server]:
    with running() as state:
        yield state
