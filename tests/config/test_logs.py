"""The package's logger, silent until it is set up."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from memoriter import logs


@pytest.fixture(autouse=True)
def untouched_afterwards() -> Iterator[None]:
    logger = logs.get()
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = handlers, level, propagate


@pytest.mark.requirement("C10")
def test_each_package_has_a_child_logger() -> None:
    assert [logs.get(name).name for name in ("", "memoriter", "store", "memoriter.store.index")] == [
        "memoriter",
        "memoriter",
        "memoriter.store",
        "memoriter.store.index",
    ]


def test_nothing_is_logged_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    logs.get("store").error("not shown")
    assert capsys.readouterr() == ("", "")


def test_repeated_setup_shows_each_message_once() -> None:
    stream = io.StringIO()
    root = list(logging.getLogger().handlers)
    logs.setup("debug", io.StringIO())
    logs.setup("warning", stream)
    logs.get("store").info("not this")
    logs.get("store").warning("but this")
    assert stream.getvalue() == "WARNING memoriter.store: but this\n"
    assert logging.getLogger().handlers == root
