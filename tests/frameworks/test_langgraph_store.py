"""MemoriterStore follows LangGraph's contract: it returns the same items as LangGraph's in-memory store."""

from __future__ import annotations

import asyncio
import math
import operator
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from memoriter import Memory
from memoriter.extensions.langgraph.items import items_of
from memoriter.extensions.langgraph.store import MemoriterStore
from memoriter.testing import FailingEmbedder

OpenMemory = Callable[..., Memory]
EXAMPLES = 500 if os.environ.get("MEMORITER_SOAK") else 15


@pytest.fixture
def store(memory: Memory) -> MemoriterStore:
    return MemoriterStore(memory)


# ---- beside the oracle -------------------------------------------------------------------------------------------

labels = st.sampled_from(["users", "docs", "a/b", "文档", 'q"]', "*", "u,1"])
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
keys = st.sampled_from(["one", "two", "三", "a b"])
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(-5, 5), st.sampled_from(["red", "蓝"])
)
values = st.fixed_dictionaries(
    {"n": st.integers(-3, 3), "color": scalars},
    optional={
        "inner": st.dictionaries(st.sampled_from(["x", "y"]), scalars),
        "list": st.lists(scalars, max_size=3),
    },
)
comparisons = st.dictionaries(
    st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), st.integers(-3, 3), min_size=1, max_size=2
)
filters = st.one_of(
    st.none(),
    st.fixed_dictionaries({"n": st.one_of(st.integers(-3, 3), comparisons)}),
    st.fixed_dictionaries({"color": scalars}),
    st.fixed_dictionaries({"inner": st.dictionaries(st.sampled_from(["x", "y"]), scalars, max_size=1)}),
    st.fixed_dictionaries({"list": st.lists(scalars, max_size=2)}),
)
conditions = st.lists(
    st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), st.lists(labels, max_size=2).map(tuple)),
    max_size=2,
).map(tuple)
fields = st.sampled_from([None, None, False, ["color"], ["list[*]", "inner.x"]])
prefixes = st.one_of(st.just(()), namespaces)
queries = st.sampled_from([None, None, "red color", "蓝"])
operations: st.SearchStrategy[Op] = st.one_of(
    st.tuples(namespaces, keys, values, fields).map(lambda given: PutOp(*given)),
    st.tuples(namespaces, keys, st.none()).map(lambda given: PutOp(*given)),
    st.tuples(namespaces, keys).map(lambda given: GetOp(*given)),
    st.tuples(prefixes, filters, st.just(1000), st.just(0), queries).map(lambda given: SearchOp(*given)),
    st.tuples(conditions, st.one_of(st.none(), st.integers(1, 3)), st.just(1000)).map(
        lambda given: ListNamespacesOp(*given)
    ),
)


def shown(result: object) -> object:
    """Return a result without its times and scores, in a canonical order."""
    if isinstance(result, Item):
        return (result.namespace, result.key, repr(sorted(result.value.items())))
    if isinstance(result, list):
        return sorted(map(str, map(shown, result)))
    return result


class Oracle(InMemoryStore):
    """LangGraph's store without empty namespaces: it creates one for every namespace that is read."""

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        for namespace in [name for name, held in self._data.items() if not held]:
            del self._data[namespace]
        return super()._handle_list_namespaces(op)


@pytest.mark.requirement("X9")
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(operations, max_size=4), max_size=8))
def test_the_same_operations_give_the_same_items_as_langgraphs_own_store(
    memory: Memory, batches: list[list[Op]]
) -> None:
    store, oracle = MemoriterStore(memory), Oracle()
    store.batch([PutOp(item.namespace, item.key, None) for item in store.search((), limit=10_000)])
    for batch in batches:
        for ours, theirs in zip(store.batch(batch), oracle.batch(batch), strict=True):
            assert shown(ours) == shown(theirs)
    everything = SearchOp((), limit=10_000)
    assert shown(store.batch([everything])[0]) == shown(oracle.batch([everything])[0])


# ---- names and values --------------------------------------------------------------------------------------------


def test_an_item_keeps_its_creation_time_and_gets_a_new_update_time(store: MemoriterStore) -> None:
    store.put(("users", "1"), "prefs", {"theme": "dark"})
    first = store.get(("users", "1"), "prefs")
    store.put(("users", "1"), "prefs", {"theme": "light"})
    second = store.get(("users", "1"), "prefs")
    assert first is not None
    assert second is not None
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert second.value == {"theme": "light"}


def test_values_are_returned_unchanged(store: MemoriterStore) -> None:
    value = {
        "文": "内容 \ud83d",
        "deep": {"list": [1, 2.5, None, True, {"x": []}]},
        "empty": "",
        "big": 10**40,
    }
    store.put(("v",), "key\n with\t all", value)
    found = store.get(("v",), "key\n with\t all")
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("value", [{"at": object()}, {"set": {1, 2}}, {"bytes": b"x"}])
def test_a_value_that_is_not_json_is_refused_with_its_whole_batch(
    store: MemoriterStore, value: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match="The value of 'bad' cannot be stored"):
        store.batch([PutOp(("v",), "good", {"x": 1}), PutOp(("v",), "bad", value)])
    assert store.search(()) == []


def test_names_that_cannot_be_encoded_are_refused(store: MemoriterStore) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "key", {"x": 1})])
    with pytest.raises(Exception, match="cannot be encoded as UTF-8"):
        store.put(("users",), "\ud800", {"x": 1})


def test_the_last_write_of_a_name_in_a_batch_wins(store: MemoriterStore) -> None:
    store.batch([PutOp(("n",), "k", {"v": 1}), PutOp(("n",), "k", None), PutOp(("n",), "k", {"v": 2})])
    found = store.get(("n",), "k")
    assert found is not None
    assert found.value == {"v": 2}


def test_pages_together_are_the_whole_result(store: MemoriterStore) -> None:
    for number in range(23):
        store.put(("docs", str(number % 3)), str(number), {"text": f"tea and number {number}"})
    for query in (None, "tea"):
        whole = [item.key for item in store.search(("docs",), query=query, limit=100)]
        pages = [store.search(("docs",), query=query, limit=5, offset=at) for at in range(0, 25, 5)]
        assert [item.key for page in pages for item in page] == whole
        assert len(set(whole)) == 23


# ---- searching ---------------------------------------------------------------------------------------------------


def test_a_query_ranks_the_matching_item_first_within_its_namespace(
    store: MemoriterStore,
) -> None:
    store.put(("users", "1"), "food", {"text": "Mira is allergic to hazelnuts", "kind": "fact"})
    store.put(("users", "1"), "work", {"text": "The deployment runs on Fridays", "kind": "fact"})
    store.put(("users", "2"), "food", {"text": "Tomás is allergic to hazelnuts", "kind": "fact"})
    found = store.search(("users", "1"), query="who is allergic to hazelnuts?", filter={"kind": "fact"})
    assert [item.key for item in found] == ["food", "work"]
    scores = [item.score for item in found]
    assert scores[0] is not None
    assert scores[1] is not None
    assert 0.5 < scores[0] <= 1
    assert scores[1] < scores[0]


ODD = [
    1,
    1.0,
    True,
    "1",
    "one",
    "",
    None,
    2**53 + 1,
    10**40,
    math.inf,
    math.nan,
    [1],
    {"x": 1},
    '{"x":1}',
    "\ud83d",
]
NAMES = ["n", 'a"b', "a\\b", "a.b[0]", "$n", "", "名", "\ud83d"]


@pytest.mark.parametrize("name", NAMES)
def test_a_filter_sees_odd_names_and_values_as_langgraphs_own_store_does(
    store: MemoriterStore, name: str
) -> None:
    oracle = InMemoryStore()
    puts = [PutOp(("f",), str(number), {name: value}) for number, value in enumerate(ODD)]
    puts.append(PutOp(("f",), "without", {"other": 1}))
    for one in (store, oracle):
        one.batch(puts)
    for wanted in (*ODD, *({sign: value} for sign in ("$eq", "$ne") for value in ODD)):
        ours, theirs = (one.search(("f",), filter={name: wanted}, limit=99) for one in (store, oracle))
        assert (wanted, {item.key for item in ours}) == (wanted, {item.key for item in theirs})


def test_values_that_cannot_be_compared_do_not_match_and_texts_may_be_numbers(store: MemoriterStore) -> None:
    values = {"int": 7, "float": 2.5, "text": "30", "word": "seven", "yes": True, "null": None, "list": [9]}
    store.batch([PutOp(("c",), key, {"n": value}) for key, value in [*values.items(), ("deep", nested(700))]])
    store.put(("c",), "without", {})

    def fitting(**wanted: object) -> set[str]:
        return {
            item.key for item in store.search(("c",), filter={"n": {f"${k}": v for k, v in wanted.items()}})
        }

    assert fitting(gt=2) == {"int", "float", "text"}
    assert fitting(gte=1, lt=7) == {"float", "yes"}
    assert fitting(lte="30") == {"int", "float", "text", "yes"}
    assert fitting(gt="a") == {"word"}
    assert fitting(gt=None) == set()


def nested(depth: int) -> object:
    return [nested(depth - 1)] if depth else 1


def test_any_limit_is_accepted(store: MemoriterStore) -> None:
    store.put(("a",), "1", {"text": "tea"})
    for query in (None, "tea"):
        assert [item.key for item in store.search(("a",), query=query, limit=2**62)] == ["1"]
        assert store.search(("a",), query=query, limit=2**62, offset=2**62) == []


def test_only_the_named_fields_are_searched_and_an_unindexed_item_has_no_score(memory: Memory) -> None:
    store = MemoriterStore(memory, index={"fields": ["title"]})
    store.put(("d",), "titled", {"title": "zebra crossing", "body": "penguin colony"})
    store.put(("d",), "own", {"title": "zebra crossing", "body": "penguin colony"}, index=["body"])
    store.put(("d",), "hidden", {"title": "penguin colony"}, index=False)
    found = {item.key: item.score for item in store.search(("d",), query="penguin colony")}
    assert found["own"] is not None
    assert found["own"] > 0.9
    assert found["titled"] is not None
    assert found["titled"] < 0.5
    assert found["hidden"] is None


def test_without_an_embedder_items_are_found_by_words(open_memory: OpenMemory) -> None:
    store = MemoriterStore(open_memory(embedding__provider="none"))
    store.put(("d",), "1", {"text": "数据库备份在每晚三点"})
    store.put(("d",), "2", {"text": "lunch at noon"})
    best = store.search(("d",), query="备份")[0]
    assert (best.key, best.score) == ("1", pytest.approx(1, abs=0.5))


def test_a_failing_embedder_loses_no_item(open_memory: OpenMemory) -> None:
    embedder = FailingEmbedder()
    store = MemoriterStore(open_memory(embedder))
    embedder.failing = True
    store.put(("d",), "1", {"text": "the spare key is with Dona Graça"})
    assert [item.key for item in store.search(("d",), query="spare key")] == ["1"]
    assert store.get(("d",), "1") is not None


def test_items_are_not_part_of_what_an_agent_searches(memory: Memory, store: MemoriterStore) -> None:
    store.put(("users", "1"), "secret", {"text": "the zebra is called Kunibert"})
    assert memory.search("zebra Kunibert").hits == ()


# ---- time to live ------------------------------------------------------------------------------------------------


def test_an_item_expires_after_its_last_use_without_a_trace(memory: Memory) -> None:
    store = MemoriterStore(memory, ttl={"default_ttl": 10})
    now = 1_700_000_000.0
    items_of(memory).clock = lambda: now
    store.put(("s",), "short", {"text": "a"})
    store.put(("s",), "kept", {"text": "b"}, ttl=None)
    now += 9 * 60
    assert store.get(("s",), "short", refresh_ttl=False) is not None
    assert store.get(("s",), "short") is not None  # starts its time to live again
    now += 9 * 60
    assert store.get(("s",), "short", refresh_ttl=False) is not None
    now += 2 * 60
    assert store.get(("s",), "short") is None
    assert [item.key for item in store.search(("s",))] == ["kept"]
    assert (store.sweep_ttl(), store.sweep_ttl()) == (1, 0)


def test_a_namespace_whose_items_have_expired_is_not_listed(memory: Memory) -> None:
    store = MemoriterStore(memory)
    now = 1_700_000_000.0
    items_of(memory).clock = lambda: now
    store.put(("gone", "soon"), "k", {"x": 1}, ttl=1)
    store.put(("stays",), "k", {"x": 1})
    assert store.list_namespaces() == [("gone", "soon"), ("stays",)]
    now += 61
    assert store.list_namespaces() == [("stays",)]


@pytest.mark.posix("modes of files")
def test_files_are_private(store: MemoriterStore, tmp_path: Path) -> None:
    store.put(("d",), "k", {"x": 1})
    (file,) = (tmp_path / "state").glob("agents/*/items.db")
    assert oct(file.stat().st_mode)[-3:] == "600"


def test_concurrent_puts_of_many_threads_lose_nothing(store: MemoriterStore) -> None:
    async def main() -> None:
        await asyncio.gather(*(store.aput(("t", str(n % 3)), str(n), {"n": n}) for n in range(24)))

    asyncio.run(main())
    assert {item.key for item in store.search(("t",), limit=100)} == {str(n) for n in range(24)}


# ---- in a graph --------------------------------------------------------------------------------------------------


class State(TypedDict):
    said: str
    answers: Annotated[list[str], operator.add]


def remember(state: State, *, store: BaseStore) -> dict[str, list[str]]:
    store.put(("users", "mira"), str(uuid.uuid4()), {"text": state["said"]})
    return {"answers": ["noted"]}


def answer(state: State, runtime: Any) -> dict[str, list[str]]:
    assert runtime.store is not None
    found = runtime.store.search(("users", "mira"), query=state["said"], limit=1)
    return {"answers": [found[0].value["text"] if found else "I do not know"]}


def graph_with(node: Any, store: BaseStore) -> Any:
    from langgraph.graph import END, START, StateGraph  # loads for seconds

    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile(store=store)


def test_a_graph_finds_what_another_graph_stored_earlier(open_memory: OpenMemory) -> None:
    with open_memory() as memory:
        told = graph_with(remember, MemoriterStore(memory)).invoke(
            {"said": "I take my tea green", "answers": []}
        )
        assert told["answers"] == ["noted"]
    memory = open_memory()
    graph = graph_with(answer, MemoriterStore(memory))
    asked = asyncio.run(graph.ainvoke({"said": "which tea do I take?", "answers": []}))
    assert asked["answers"] == ["I take my tea green"]
