"""LangGraph: one graph stores something, and another finds it the next day. No key, no network.

Put your model into the nodes. The store stays the same.
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

import memoriter
from memoriter.extensions.langgraph import MemoriterStore

USER = ("users", "mira")


class State(TypedDict, total=False):
    text: str
    answer: str


def remember(state: State, runtime: Runtime[None]) -> State:
    assert runtime.store is not None
    runtime.store.put(USER, str(uuid.uuid4()), {"text": state["text"]})
    return {"answer": "Noted."}


def answer(state: State, runtime: Runtime[None]) -> State:
    assert runtime.store is not None
    (best,) = runtime.store.search(USER, query=state["text"], limit=1)
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
        with memoriter.open(folder, home=home) as memory:  # the first day
            storing = graph(remember, MemoriterStore(memory))
            for text in ("I am allergic to hazelnuts.", "My sister arrives in Lisbon on Friday."):
                print("me:   ", text)
                print("agent:", storing.invoke({"text": text})["answer"])
        with memoriter.open(folder, home=home) as memory:  # the next day, in a new process
            question = "Which food must I avoid?"
            print("me:   ", question)
            print("agent:", graph(answer, MemoriterStore(memory)).invoke({"text": question})["answer"])


if __name__ == "__main__":
    main()
