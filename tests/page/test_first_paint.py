"""Requests of the page: one until the first view is visible, whatever the size of the memory, and none is stale."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from large import WORDS, statements
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Request, Route

    from conftest import Visit

pytestmark = pytest.mark.integration

CHUNKS, ENTRIES = 100_000, 10_000
#: Chunks per note.
NOTE_CHUNKS = 100
#: Size limit of the answer that the first view waits for.
MAX_BYTES = 64_000


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with a large memory, without vectors, which would take minutes and not change the requests."""
    settings = {"embedding": {"provider": "none"}, "gateway": {"limits": {"timeout_s": 600}}}
    with served(tmp_path_factory.mktemp("large"), settings) as running:
        for note in range(CHUNKS // NOTE_CHUNKS):
            parts = [
                f"## Part {part}\n\nNote {note} says about the {WORDS[(note + part) % 10]} and the {WORDS[part % 10]} "
                f"that number {note * NOTE_CHUNKS + part} was seen on the shelf beside the window in the long room.\n"
                for part in range(NOTE_CHUNKS)
            ]
            running.write(f"memory/{note // 100:02}/{note:04}.md", f"# Note {note}\n\n" + "\n".join(parts))
        running.ask("entries.import", data=json.dumps(statements(ENTRIES)))
        running.client.timeout = 600
        report = running.ask("memory.sync")
        assert report["chunks"] >= CHUNKS
        running.ask("memory.search", query="quince")  # the first search indexes the entries
        yield running


@pytest.mark.parametrize("place", ["#/search", "#/search?q=quince%20cellar"])
def test_the_first_view_needs_one_request_of_bounded_size(place: str, gateway: Served, visit: Visit) -> None:
    watched = visit(gateway)
    page = watched.page
    expect(page.locator(".holdings")).to_be_visible()
    page.goto("about:blank")
    before: list[tuple[str, int]] = []  # requests until something is visible
    painted = "() => document.querySelector('.hit, .holdings') !== null"

    def passed(route: Route) -> None:
        if not page.evaluate(painted):
            answer = route.fetch()
            before.append((route.request.url.rsplit("/", 1)[1], len(answer.body())))
            route.fulfill(response=answer)
        else:
            route.continue_()

    page.route("**/v1/agents**", passed)
    page.route("**/v1/agents/**", passed)
    page.goto(f"{gateway.address}/{place}")
    expect(page.locator(".hit, .holdings").first).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")  # later requests do not matter here
    ((operation, size),) = before
    assert operation == ("memory.search" if "q=" in place else "memory.status")
    assert 0 < size < MAX_BYTES


def test_a_new_search_cancels_the_one_before(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/search", live=False)
    page = watched.page
    expect(page.locator(".holdings")).to_be_visible()
    failed: list[Request] = []
    page.on("requestfailed", lambda request: failed.append(request))  # noqa: PLW0108 - playwright needs a function
    held = watched.hold("**/memory.search")
    box = page.get_by_role("searchbox")
    for word in ("quince", "quince ferry", "violin"):
        with page.expect_request("**/memory.search"):
            box.fill(word)
    held.wait_for(3)[-1].continue_()
    expect(page.locator(".hit mark", has_text="violin").first).to_be_visible()
    given_up = [one.post_data_json["query"] for one in failed if one.url.endswith("/memory.search")]
    assert given_up == ["quince", "quince ferry"]  # one request at a time, none queued


def test_fast_typing_makes_one_request(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/search", live=False)
    page = watched.page
    expect(page.locator(".holdings")).to_be_visible()
    watched.requests.clear()
    page.clock.install()  # the clock of the page follows the keystrokes, however slow the machine is
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    for letter in "quince cellar":
        page.get_by_role("searchbox").press_sequentially(letter)
        page.clock.run_for(15)
    page.clock.run_for(1000)
    expect(page.locator(".hit mark", has_text="quince").first).to_be_visible()
    asked = [path for path in watched.data_requests() if path.endswith("memory.search")]
    assert len(asked) == 1


def test_a_long_table_loads_a_page_at_a_time(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/memories", live=False)
    page = watched.page
    expect(page.locator(".summary")).to_have_text("10,000 memories")
    page.evaluate("() => scrollTo(0, document.body.scrollHeight)")
    expect(page.locator(".entries tr[data-id]", has_text="Statement 9999 on")).to_be_in_viewport()
    asked = [path for path in watched.data_requests() if path.endswith("entries.list")]
    assert len(asked) <= 4
