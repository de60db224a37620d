"""The check of `items.db` for `memoriter doctor`."""

from __future__ import annotations

from collections.abc import Iterator

from memoriter.errors import MemoriterError, message_of
from memoriter.extensions.langgraph.items import count_namespaces, items_of
from memoriter.memory import Memory
from memoriter.records import Finding
from memoriter.sentences import sentence
from memoriter.tools.doctor import truth_fix


def check_items(memory: Memory, *, deep: bool) -> Iterator[Finding]:
    """Check `items.db`. It is a source of truth and cannot be rebuilt."""
    try:
        namespaces = count_namespaces(memory)
        damage = items_of(memory).check(deep=True) if deep and namespaces is not None else []
    except (MemoriterError, OSError) as error:
        yield Finding("items", "wrong", message_of(error), truth_fix(memory, error, "check.restore"))
        return
    if damage:
        yield Finding("items", "wrong", "; ".join(damage), sentence("check.restore"))
    elif namespaces is not None:
        yield Finding("items", "ok", sentence("check.items", n=namespaces))
