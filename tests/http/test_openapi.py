"""The OpenAPI document, and requests generated from it. No request may cause a 500."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any

import pytest
import requests
import schemathesis
from gateways import Running, Start
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from memoriter.server.http.app import ERRORS
from memoriter.tools.table import OPERATIONS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
SOAK = bool(os.environ.get("MEMORITER_SOAK"))
EXAMPLES = 100 if SOAK else 6
STATUSES = {"200", *map(str, ERRORS)}


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


def test_the_list_of_operations_contains_the_required_access(gateway: Running) -> None:
    listed = gateway.caller("read").get("/v1/operations").json()
    assert {row["name"]: row["access"] for row in listed} == {
        name: tool.access for name, tool in OPERATIONS.items()
    }


MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


def modes(number: int, method: str) -> tuple[GenerationMode, ...]:
    """Return both modes in a soak run, otherwise alternate. A GET has no arguments to get wrong."""
    if method == "get":
        return MODES[:1]
    return MODES if SOAK else (MODES[number % 2],)


@pytest.mark.timeout(3600)
def test_generated_requests_never_cause_a_500(start: Start) -> None:
    gateway = start(watch__enabled=False, gateway__limits__rate=10_000, gateway__limits__burst=10_000)
    token = gateway.gateway.tokens.create("admin")[1]
    document = gateway.client(token).get("/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    found = [one.ok() for one in schema.get_all_operations()]
    session = requests.Session()
    answers: defaultdict[str, list[int]] = defaultdict(list)

    for number, operation in enumerate(found):
        for mode in modes(number, operation.method):

            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                derandomize=not SOAK,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def ask(case: Any) -> None:
                if case.method.lower() == "post":
                    case.path_parameters["agent"] = "main"
                headers = {"Authorization": f"Bearer {token}"}
                answer = case.call(base_url=gateway.address, session=session, headers=headers)
                answers[case.operation.path].append(answer.status_code)
                case.validate_response(answer, checks=CHECKS)
                if answer.status_code >= 400:
                    assert {"error", "code"} <= set(answer.json()) <= {"error", "code", "details"}

            ask()
    session.close()
    posts = {f"/v1/agents/{{agent}}/{name}" for name in OPERATIONS}
    assert set(answers) == {*posts, "/v1/agents", "/v1/operations", "/v1/version", "/healthz"}
    assert all(200 in answers[path] for path in set(answers) - posts)
    # Both valid and invalid requests were generated.
    valid = sum(any(status in (200, 404) for status in answers[path]) for path in posts)
    invalid = sum(any(status in (400, 422) for status in answers[path]) for path in posts)
    assert min(valid, invalid) >= len(posts) // 3
