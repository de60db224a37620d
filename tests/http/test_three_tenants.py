"""Three tenants on one Postgres server: through Python, HTTP and MCP, each sees its own memories and no others."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from gateways import ask, running
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from postgres_cluster import PostgresCluster

from memoriter import Memory
from memoriter.testing import HashEmbedder

SPEAKS = {"Accept": "application/json, text/event-stream"}
SUBJECTS = ("The harbour light", "Our ledger", "The green door", "王小明的钥匙", "The night train")
FACTS = (
    "faces the northern lake",
    "lists seventeen names",
    "opens at dawn",
    "放在第三个抽屉里",
    "stops in Lyon",
)


class Tenant:
    """One tenant, with a word that all its memories contain, and three doors to them."""

    def __init__(self, number: int, url: str, folder: Path, stack: ExitStack) -> None:
        self.name = uuid.uuid4().hex
        self.word = f"tenantword{number}"
        common = {
            "store.url": url,
            "store.tenant": self.name,
            "search.rerank": False,
            "embedding.provider": "none",
            "plugins.slots.memory": "memory-full",
        }
        self.memory = stack.enter_context(
            Memory.open(home=folder / f"python{number}", overrides=common, embedder=HashEmbedder())
        )
        dotted = {key.replace(".", "__"): value for key, value in common.items()}
        gateway = stack.enter_context(
            running(None, folder / f"gateway{number}", watch__enabled=False, **dotted)
        )
        self.http = gateway.caller()

    def add(self, door: str, text: str) -> None:
        match door:
            case "python":
                self.memory.remember(text, "fact")
            case "http":
                ask(self.http, "entries.add", text=text, type="fact")
            case "mcp":
                call_tool(self.http, "memory_store", text=text, category="fact")

    def listed(self, door: str) -> set[str]:
        """Return the texts that a door lists."""
        if door == "python":
            return {entry.text for entry in self.memory.entries.list()}
        if door == "http":
            return {entry["text"] for entry in ask(self.http, "entries.list", limit=100)["entries"]}
        listed = call_tool(self.http, "memory", action="list", limit=100)
        return {entry["text"] for entry in json.loads(listed)["memories"]}

    def everything_said(self, query: str) -> str:
        """Return all that the doors answer to a query, as one text."""
        answers = [
            repr(self.memory.search(query)),
            repr(self.memory.recall(query)),
            repr(list(self.memory.entries.export())),
            repr(self.memory.entries.recalls()),
            json.dumps(ask(self.http, "memory.search", query=query)),
            json.dumps(ask(self.http, "entries.facets")),
            call_tool(self.http, "memory_recall", query=query),
        ]
        return "\n".join(answers)


def call_tool(client: httpx.Client, name: str, **arguments: object) -> str:
    """Call a tool over MCP and return its text."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }
    answer = client.post("/mcp", json=body, headers=SPEAKS)
    line = next(line for line in answer.text.splitlines() if line.startswith(("data: ", "{")))
    result: dict[str, Any] = json.loads(line.removeprefix("data: "))["result"]
    assert not result.get("isError"), result
    return str(result["content"][0]["text"])


@pytest.fixture
def tenants(postgres: PostgresCluster, tmp_path: Path) -> Iterator[list[Tenant]]:
    with ExitStack() as stack:
        yield [Tenant(number, postgres.url, tmp_path, stack) for number in range(3)]


DOORS = st.sampled_from(("python", "http", "mcp"))


@pytest.mark.integration
def test_no_door_shows_a_memory_of_another_tenant(tenants: list[Tenant], postgres: PostgresCluster) -> None:
    chosen = st.sampled_from(range(3))

    class Sharing(RuleBasedStateMachine):
        @rule(number=chosen, door=DOORS, subject=st.sampled_from(SUBJECTS), fact=st.sampled_from(FACTS))
        def add(self, number: int, door: str, subject: str, fact: str) -> None:
            tenant = tenants[number]
            tenant.add(door, f"{tenant.word}: {subject} {fact}")

        @rule(number=chosen)
        def forget_the_newest(self, number: int) -> None:
            entries = tenants[number].memory.entries
            for entry in entries.list(limit=1):
                entries.erase(entry.id)

        @rule(number=chosen, query=st.sampled_from((*SUBJECTS, "tenantword0", "tenantword1", "tenantword2")))
        def search(self, number: int, query: str) -> None:
            said = tenants[number].everything_said(query).replace(query, "")
            others = [tenant.word for tenant in tenants if tenant is not tenants[number]]
            assert [word for word in others if f"{word}:" in said] == []

        @invariant()
        def every_door_lists_the_rows_of_its_tenant(self) -> None:
            with psycopg.connect(postgres.url) as connection:  # a superuser sees every row
                stored = connection.execute(
                    "select tenant, text from memoriter.entries where state = 'active'"
                )
                rows = stored.fetchall()
            for tenant in tenants:
                own = {text for name, text in rows if name == tenant.name}
                assert all(text.startswith(f"{tenant.word}:") for text in own)
                assert [tenant.listed(door) for door in ("python", "http", "mcp")] == [own, own, own]

    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Sharing,
        settings=settings(
            max_examples=4, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
