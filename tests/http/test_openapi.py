"""The OpenAPI document, and requests generated from it. No request may cause a 500."""

from __future__ import annotations

import pytest
from gateways import Running, Start, ask

from lab.soak.requests import ask_everything
from memoriter.server.http.app import ERRORS
from memoriter.tools.table import OPERATIONS

STATUSES = {"200", *map(str, ERRORS)}


@pytest.mark.requirement("X9")
def test_the_document_describes_every_operation(gateway: Running) -> None:
    document = gateway.caller("read").get("/openapi.json").json()
    posts = {path: item["post"] for path, item in document["paths"].items() if "post" in item}
    assert set(posts) == {f"/v1/agents/{{agent}}/{name}" for name in OPERATIONS}
    for name, tool in OPERATIONS.items():
        post = posts[f"/v1/agents/{{agent}}/{name}"]
        assert post["operationId"] == name
        assert post["requestBody"]["content"]["application/json"]["schema"] == tool.schema()
        assert set(post["responses"]) == STATUSES
        schema = post["responses"]["200"]["content"]["application/json"]["schema"]
        assert schema == tool.output_schema()


def test_people_read_the_document_as_a_page(gateway: Running) -> None:
    page = gateway.caller("read").get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for name in OPERATIONS:
        assert f"<code>POST /v1/agents/{{agent}}/{name}</code>" in page.text
    assert "<td><code>query</code> (required)</td><td>string</td>" in page.text
    assert gateway.caller("read").get("/static/style/api.css").status_code == 200
    assert "<script" not in page.text
    closed = gateway.client().get("/docs", headers={"Accept": "text/html"})
    assert (closed.status_code, "memoriter open" in closed.text) == (401, True)
    assert gateway.client().get("/docs").json()["error"]


def test_the_list_of_operations_contains_the_required_access(gateway: Running) -> None:
    listed = gateway.caller("read").get("/v1/operations").json()
    assert {row["name"]: row["access"] for row in listed} == {
        name: tool.access for name, tool in OPERATIONS.items()
    }


def test_the_profile_can_be_read_with_get(gateway: Running) -> None:
    caller = gateway.caller("admin")
    ask(caller, "entries.add", text="I live in Munich")
    address = "/v1/agents/main/memory.profile"
    (line,) = caller.get(address).json()["lines"]
    assert (line["section"], line["text"], line["whose"]) == ("about", "I live in Munich", "owner")
    assert caller.get(address, params={"project": "true"}).json()["lines"] == []
    assert caller.get(address, params={"tokens": "none"}).status_code == 422
    assert caller.get("/v1/agents/main/memory.search", params={"query": "Munich"}).status_code == 405
    document = caller.get("/openapi.json").json()
    described = document["paths"]["/v1/agents/{agent}/memory.profile"]["get"]
    assert [one["name"] for one in described["parameters"] if one["in"] == "query"] == ["project", "tokens"]


@pytest.mark.integration
@pytest.mark.timeout(3600)
def test_generated_requests_never_cause_a_500(start: Start) -> None:
    """`python -m lab.soak requests` sends more of them."""
    gateway = start(watch__enabled=False, gateway__limits__rate=10_000, gateway__limits__burst=10_000)
    token = gateway.gateway.tokens.create("admin")[1]
    answers = ask_everything(gateway.address, token, examples=6, fixed=True, both_modes=False)
    posts = {f"/v1/agents/{{agent}}/{name}" for name in OPERATIONS}
    assert set(answers) == {*posts, "/v1/agents", "/v1/operations", "/v1/version", "/healthz"}
    assert all(200 in answers[path] for path in set(answers) - posts)
    # Both valid and invalid requests were generated.
    valid = sum(any(status in (200, 404) for status in answers[path]) for path in posts)
    invalid = sum(any(status in (400, 422) for status in answers[path]) for path in posts)
    assert min(valid, invalid) >= len(posts) // 3
