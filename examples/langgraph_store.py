"""LangGraph: a graph that is told something today, and another that knows it tomorrow. No key, no network.

Put a model of your own into the nodes; the store is the same.
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from memoriter import Memory
from memoriter.integrations.langgraph import MemoriterStore

USER = ("users", "mira")


class State(TypedDict, total=False):
    said: str
    answer: str


def remember(state: State, runtime: Runtime[None]) -> State:
    assert runtime.store is not None
    runtime.store.put(USER, str(uuid.uuid4()), {"text": state["said"]})
    return {"answer": "Noted."}


def answer(state: State, runtime: Runtime[None]) -> State:
    assert runtime.store is not None
    (best,) = runtime.store.search(USER, query=state["said"], limit=1)
    return {"answer": f"You told me: {best.value['text']}"}


def graph(node: object, store: MemoriterStore) -> CompiledStateGraph[State, None, State, State]:
    builder = StateGraph(State)
    builder.add_node("node", node)  # type: ignore[call-overload]
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile(store=store)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with Memory.open(folder, home=home) as memory:  # the first day
            told = graph(remember, MemoriterStore(memory))
            for said in ("I am allergic to hazelnuts.", "My sister arrives in Lisbon on Friday."):
                print("me:   ", said)
                print("agent:", told.invoke({"said": said})["answer"])
        with Memory.open(folder, home=home) as memory:  # the next, in a new process
            question = "Which food must I avoid?"
            print("me:   ", question)
            print("agent:", graph(answer, MemoriterStore(memory)).invoke({"said": question})["answer"])


if __name__ == "__main__":
    main()
