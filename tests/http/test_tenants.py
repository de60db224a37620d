"""Many agents in one gateway: nobody sees an id, a count, a text or an error of another's memory."""

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
    """A gateway with three agents beside its own, each with a note, an entry and a recall that name it."""
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
    """Arguments for an operation that would find something, in whatever memory it looks; what is named is one's own."""
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


def test_no_answer_to_one_names_another(shared: Running) -> None:
    chance = random.Random(8)
    callers = {name: tenant(shared, name) for name in TENANTS}
    wanted = [(name, operation) for name in TENANTS for operation in OPERATIONS]
    chance.shuffle(wanted)
    own: dict[str, dict[str, object]] = {}
    for name, caller in callers.items():
        entry = ask(caller, "entries.list", name)["entries"][0]["id"]
        said = [{"role": "user", "content": f"Remember that {words_of(name)} lives in Porto."}]
        path = f"memory/{words_of(name)}.md"
        own[name] = {"id": entry, "ids": [entry], "path": path, "messages": said}
    done: set[str] = set()
    for name, operation in wanted:
        given = arguments_for(operation, own[name], chance)
        answer = callers[name].post(f"/v1/agents/{name}/{operation}", json=given)
        others = [other for other in TENANTS if other != name and words_of(other) in answer.text]
        assert others == [], (name, operation, answer.text)
        if answer.status_code == 200:
            done.add(operation)
    assert len(done) >= 0.7 * len(OPERATIONS), sorted(set(OPERATIONS) - done)  # an error names nobody


def test_each_finds_its_own(shared: Running) -> None:
    for name in TENANTS:
        caller = tenant(shared, name)
        found = ask(caller, "memory.search", name, query="the password tea")["results"]
        assert {hit["path"] for hit in found if hit["source"] == "memory"} == {f"memory/{words_of(name)}.md"}
        listed = ask(caller, "entries.list", name)
        assert ([entry["text"] for entry in listed["entries"]], listed["total"]) == (
            [f"{words_of(name)} prefers green tea in the morning."],
            1,
        )


def test_an_id_of_another_is_as_unknown_as_one_that_never_was(shared: Running) -> None:
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


def test_an_agent_of_another_is_as_unknown_as_one_that_never_was(shared: Running) -> None:
    red = tenant(shared, "red")
    for path in ("/v1/agents/{}/memory.stats", "/v1/agents/{}/no.such", "/v1/agents/{}"):
        theirs, never = (red.post(path.format(name)) for name in ("green", "nobody"))
        assert (
            (theirs.status_code, theirs.text)
            == (never.status_code, never.text)
            == (
                404,
                '{"error":"Agent not found. GET /v1/agents lists all agents.","code":"unknown_agent"}',
            )
        )
    for name in ("green", "main", "nobody"):
        assert red.get("/v1/events", params={"agent": name}).status_code == 404
        assert red.post("/mcp", headers={"X-Memoriter-Agent": name}, json={}).status_code == 404
    assert red.post("/mcp", json={}).status_code == 404  # the gateway's own agent is another's too
    assert red.get("/v1/events").status_code == 404


def test_lists_and_counts_are_of_ones_own(shared: Running) -> None:
    red = tenant(shared, "red")
    assert [agent["name"] for agent in red.get("/v1/agents").json()] == ["red"]
    assert {agent["name"] for agent in shared.caller("read").get("/v1/agents").json()} == {"main", *TENANTS}
    assert all("workspace" not in agent for agent in shared.caller("read").get("/v1/agents").json())
    read = red.get("/metrics").text
    assert 'agent="red"' in read
    assert not any(f'agent="{name}"' in read for name in ("green", "blue", "main"))
    assert "memoriter_http_requests_total" not in read


def test_events_are_of_ones_own(shared: Running) -> None:
    red, green = tenant(shared, "red"), tenant(shared, "green")
    with listening(red, "red") as events:
        events.until("hello")
        ask(green, "entries.add", "green", text="Nobody else may hear of this.")
        ask(red, "entries.add", "red", text="My sister lives in Porto with two cats.")
        assert events.until("entries")["data"]["agent"] == "red"
