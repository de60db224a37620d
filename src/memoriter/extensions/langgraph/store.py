"""LangGraph's `BaseStore`: stores values under a namespace and a key, and searches them with the memory's embedder.

Pass it to a graph as ``builder.compile(store=MemoriterStore(memory))``. This module translates LangGraph's operations;
`Items` stores the values. Scores are between 0 and 1. Expired items are never returned.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypedDict

from memoriter.errors import FrameworkMissing
from memoriter.extensions.langgraph.items import Items, items_of
from memoriter.extensions.langgraph.items.store import Item as Kept
from memoriter.extensions.langgraph.items.store import Put
from memoriter.memory import Memory

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise FrameworkMissing("LangGraph", "langgraph") from error

__all__ = ["Fields", "MemoriterStore"]

#: The path of the whole value.
WHOLE = "$"


class Fields(TypedDict, total=False):
    """The parts of a value that are searched, as in LangGraph's `IndexConfig`. The memory's embedder is used."""

    fields: Sequence[str]


class MemoriterStore(BaseStore):
    """A store for LangGraph over the memory of one agent.

    ``index={"fields": ["text", "tags[*]"]}`` says which parts of a value are searched; by default all of its texts.
    ``ttl`` is LangGraph's configuration. Expired items are deleted at the next write, or by `sweep_ttl`.
    """

    supports_ttl = True

    def __init__(self, memory: Memory, *, index: Fields | None = None, ttl: TTLConfig | None = None) -> None:
        super().__init__()
        self._memory = memory
        self._fields = list((index or {}).get("fields") or [WHOLE])
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations. Reads see the store as it was before, and either all writes are made or none."""
        given = list(ops)
        for op in given:
            validate_op_namespace(op)
        puts = [self._put(op) for op in given if isinstance(op, PutOp)]
        results = [self._read(op) for op in given]
        if puts:
            self._items.put(puts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `batch` in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete expired items now and return how many there were."""
        return self._items.sweep()

    @property
    def _items(self) -> Items:
        return items_of(self._memory)

    # ---- one operation ---------------------------------------------------------------------------------------

    def _read(self, op: Op) -> Result:
        items = self._items
        if isinstance(op, GetOp):
            found = items.get(op.namespace, op.key, refresh=op.refresh_ttl)
            return None if found is None else Item(**_fields_of(found))
        if isinstance(op, SearchOp):
            hits = items.search(
                op.namespace_prefix,
                op.query,
                matching=partial(_admits, wanted=op.filter) if op.filter else None,
                limit=op.limit,
                offset=op.offset,
                refresh=op.refresh_ttl,
            )
            return [SearchItem(**_fields_of(hit.item), score=hit.score) for hit in hits]
        if isinstance(op, ListNamespacesOp):
            return _filter_namespaces(items.namespaces(), op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"{type(op).__name__} is not an operation of a store.")

    def _put(self, op: PutOp) -> Put:
        if op.value is None:
            return Put(op.namespace, op.key, None)
        if op.ttl is not None and not op.ttl >= 0:
            raise ValueError(f"The ttl of {op.key!r} must be a number of minutes, not {op.ttl}.")
        value = _plain(op)
        paths = () if op.index is False else self._fields if op.index is None else op.index
        texts = tuple(text for path in paths for text in _texts(value, path) if text.strip())
        return Put(op.namespace, op.key, value, texts, None if op.ttl is None else op.ttl * 60)


# ---- values --------------------------------------------------------------------------------------------------


def _plain(op: PutOp) -> dict[str, Any]:
    """Return the value as JSON, or raise if JSON cannot represent it."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(op.value or {})))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"The value of {op.key!r} cannot be stored: {error}.") from error
    return plain


def _texts(value: Mapping[str, Any], path: str) -> list[str]:
    """Return the searchable text at a path; for the whole value its words, line by line, without JSON syntax."""
    return ["\n".join(_leaves(value))] if path == WHOLE else get_text_at_path(value, path)


def _leaves(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    elif value is not None and value != "":
        yield f"{name}: {value}"


def _fields_of(kept: Kept) -> dict[str, Any]:
    return {
        "value": dict(kept.value),
        "key": kept.key,
        "namespace": kept.namespace,
        "created_at": datetime.fromtimestamp(kept.created_at, UTC),
        "updated_at": datetime.fromtimestamp(kept.updated_at, UTC),
    }


# ---- filters -------------------------------------------------------------------------------------------------


def _admits(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_fits(value.get(key), one) for key, one in wanted.items())


def _fits(value: Any, wanted: Any) -> bool:
    """Return whether a value matches: by operators, part by part, or by equality."""
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_holds(value, operator, against) for operator, against in wanted.items())
        return isinstance(value, Mapping) and _admits(value, wanted)
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list) and len(value) == len(wanted)
        return same and all(map(_fits, value, wanted))
    return bool(value == wanted)


def _holds(value: Any, operator: str, against: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool(value == against) == (operator == "$eq")
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"Unsupported operator: {operator}")
    one, other = _comparable(value), _comparable(against)
    if one is None or type(one) is not type(other):
        return False  # values that cannot be compared do not match
    holds = {"$gt": one > other, "$gte": one >= other, "$lt": one < other, "$lte": one <= other}
    return bool(holds[operator])


def _comparable(value: Any) -> Any:
    """Return a number if the value is one or is written as one, else a text, else None."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return value if isinstance(value, str) else None


# ---- namespaces ----------------------------------------------------------------------------------------------


def _filter_namespaces(namespaces: Iterable[tuple[str, ...]], op: ListNamespacesOp) -> list[tuple[str, ...]]:
    matching = [one for one in namespaces if all(_matches(one, rule) for rule in op.match_conditions or ())]
    cut = sorted({one[: op.max_depth] for one in matching})
    return cut[op.offset : op.offset + op.limit]


def _matches(namespace: tuple[str, ...], rule: MatchCondition) -> bool:
    if len(namespace) < len(rule.path):
        return False
    if rule.match_type == "prefix":
        part = namespace[: len(rule.path)]
    elif rule.match_type == "suffix":
        part = namespace[len(namespace) - len(rule.path) :]
    else:
        raise ValueError(f"Unsupported match type: {rule.match_type}")
    return all(wanted in ("*", label) for wanted, label in zip(rule.path, part, strict=True))
