"""Several agents in one gateway: a token for one agent sees nothing of the others."""

from __future__ import annotations

import random
from pathlib import Path

import httpx
import pytest
from gateways import Running, Start, ask, listening

from memoriter.tools.table import OPERATIONS

TENANTS = ("red", "green", "blue")


def words_of(name: str) -> str:
    return f"canary{name}"


@pytest.fixture
def shared(start: Start, tmp_path: Path) -> Running:
    """A gateway with three more agents. Each has a note, an entry and a recall that contain its name."""
    for name in TENANTS:
        notes = tmp_path / name / "memory"
        notes.mkdir(parents=True)
        (notes / f"{words_of(name)}.md").write_text(f"# Plans\n\nThe password of {words_of(name)} is tea.\n")
    agents = {name: tmp_path / name for name in TENANTS}
    gateway = start(watch__enabled=False, gateway__agents=agents)
    owner = gateway.caller("admin")
    for name in TENANTS:
        ask(owner, "entries.add", name, text=f"{words_of(name)} prefers green tea in the morning.")
        ask(owner, "recall", name, query="What does everybody prefer in the morning?")
    return gateway


def tenant(gateway: Running, name: str) -> httpx.Client:
    return gateway.caller("admin", agents=(name,))


def arguments_for(name: str, own: dict[str, object], chance: random.Random) -> dict[str, object]:
    """Return arguments with which an operation finds something in any memory. Ids and paths are the caller's own."""
    fill = {
        "string": "What does everybody prefer in the morning? canary tea",
        "integer": 3,
        "number": 0.0,
        "boolean": True,
        "array": ["tea"],
        "object": {},
    }
    schema = OPERATIONS[name].schema()
    given: dict[str, object] = {}
    for argument, value in schema["properties"].items():
        optional = chance.random() < 0.3 and argument in ("query", "limit", "maxResults")
        if argument in schema["required"] or optional:
            known = value["enum"][0] if "enum" in value else fill[value["type"]]
            given[argument] = own.get(argument, known)
    return given


def test_no_response_contains_data_of_another_agent(shared: Running) -> None:
    chance = random.Random(8)
    callers = {name: tenant(shared, name) for name in TENANTS}
    wanted = [(name, operation) for name in TENANTS for operation in OPERATIONS]
    chance.shuffle(wanted)
    own: dict[str, dict[str, object]] = {}
    for name, caller in callers.items():
        entry = ask(caller, "entries.list", name)["entries"][0]["id"]
        messages = [{"role": "user", "content": f"Remember that {words_of(name)} lives in Porto."}]
        path = f"memory/{words_of(name)}.md"
        own[name] = {"id": entry, "ids": [entry], "path": path, "messages": messages}
    called: set[str] = set()
    for name, operation in wanted:
        given = arguments_for(operation, own[name], chance)
        answer = callers[name].post(f"/v1/agents/{name}/{operation}", json=given)
        others = [other for other in TENANTS if other != name and words_of(other) in answer.text]
        assert others == [], (name, operation, answer.text)
        if answer.status_code == 200:
            called.add(operation)
    assert len(called) >= 0.7 * len(OPERATIONS), sorted(
        set(OPERATIONS) - called
    )  # an error would prove nothing


@pytest.mark.requirement("X14")
def test_each_agent_finds_its_own_data(shared: Running) -> None:
    for name in TENANTS:
        caller = tenant(shared, name)
        found = ask(caller, "memory.search", name, query="the password tea")["results"]
        assert {hit["path"] for hit in found if hit["source"] == "memory"} == {f"memory/{words_of(name)}.md"}
        listed = ask(caller, "entries.list", name)
        assert ([entry["text"] for entry in listed["entries"]], listed["total"]) == (
            [f"{words_of(name)} prefers green tea in the morning."],
            1,
        )


def test_the_id_of_another_agents_entry_is_unknown(shared: Running) -> None:
    theirs = ask(tenant(shared, "green"), "entries.list", "green")["entries"][0]["id"]
    red = tenant(shared, "red")
    for operation in ("entries.get", "entries.undo", "entries.forget"):
        known = red.post(f"/v1/agents/red/{operation}", json={"id": theirs})
        never = red.post(f"/v1/agents/red/{operation}", json={"id": theirs[::-1]})
        assert (known.status_code, known.text.replace(theirs, "")) == (
            never.status_code,
            never.text.replace(theirs[::-1], ""),
        )
    assert ask(tenant(shared, "green"), "entries.get", "green", id=theirs)["entry"]["id"] == theirs


def test_the_name_of_another_agent_is_unknown(shared: Running) -> None:
    red = tenant(shared, "red")
    for path in ("/v1/agents/{}/memory.stats", "/v1/agents/{}/no.such", "/v1/agents/{}"):
        theirs, never = (red.post(path.format(name)) for name in ("green", "unknown"))
        assert (
            (theirs.status_code, theirs.text)
            == (never.status_code, never.text)
            == (
                404,
                '{"error":"Agent not found. GET /v1/agents lists all agents.","code":"unknown_agent"}',
            )
        )
    for name in ("green", "main", "unknown"):
        assert red.get("/v1/events", params={"agent": name}).status_code == 404
        assert red.post("/mcp", headers={"X-Memoriter-Agent": name}, json={}).status_code == 404
    assert red.post("/mcp", json={}).status_code == 404  # also the default agent
    assert red.get("/v1/events").status_code == 404


def test_lists_and_counts_contain_only_the_callers_agent(shared: Running) -> None:
    red = tenant(shared, "red")
    assert [agent["name"] for agent in red.get("/v1/agents").json()] == ["red"]
    assert {agent["name"] for agent in shared.caller("read").get("/v1/agents").json()} == {"main", *TENANTS}
    assert all("workspace" not in agent for agent in shared.caller("read").get("/v1/agents").json())
    read = red.get("/metrics").text
    assert 'agent="red"' in read
    assert not any(f'agent="{name}"' in read for name in ("green", "blue", "main"))
    assert "memoriter_http_requests_total" not in read


def test_events_contain_only_the_callers_agent(shared: Running) -> None:
    red, green = tenant(shared, "red"), tenant(shared, "green")
    with listening(red, "red") as events:
        events.until("hello")
        ask(green, "entries.add", "green", text="No other agent may see this.")
        ask(red, "entries.add", "red", text="My sister lives in Porto with two cats.")
        assert events.until("entries")["data"]["agent"] == "red"
