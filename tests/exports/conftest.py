"""A memory that imports."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memoriter import Memory


@pytest.fixture
def memory(open_memory: Callable[..., Memory]) -> Memory:
    return open_memory()
