"""Live changes and slow requests do not disturb the reader: focus, open details and running requests stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served

sync_api = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it")
expect = sync_api.expect

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from conftest import Visit

pytestmark = pytest.mark.integration

#: The watcher waits until a note stops changing, and a busy machine takes longer.
UPDATE_TIMEOUT_MS = 60_000
FOCUSED = "() => document.activeElement.getAttribute('href') ?? document.activeElement.tagName"


def focused(page: Page) -> str:
    """Return the link or the tag of the focused element."""
    return str(page.evaluate(FOCUSED))


def test_new_results_keep_the_focus_and_open_details(gateway: Served, visit: Visit) -> None:
    gateway.ask("entries.add", text="The lanterns of the harbour hang on chains")
    gateway.ask("entries.add", text="The lanterns of the harbour need oil")
    page = visit(gateway, "#/search?q=lanterns of the harbour").page
    expect(page.locator(".pulse")).to_have_text("Live")
    second = page.locator(".hit").nth(1)
    place = second.locator(".place").get_attribute("href")
    second.locator("summary").click()
    gateway.ask("entries.add", text="The lanterns of the harbour are lit at dusk")
    expect(page.locator(".hit", has_text="lit at dusk")).to_be_visible(timeout=UPDATE_TIMEOUT_MS)
    same = page.locator(".hit", has=page.locator(f'.place[href="{place}"]'))
    expect(same.locator("details")).to_have_attribute("open", "")
    expect(same.locator("summary")).to_be_focused()
    same.locator(".place").focus()
    gateway.ask("entries.add", text="The lanterns of the harbour are painted green")
    expect(page.locator(".hit", has_text="painted green")).to_be_visible(timeout=UPDATE_TIMEOUT_MS)
    expect(same.locator(".place")).to_be_focused()


def test_a_new_recall_keeps_the_focus(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/recalls").page
    expect(page.locator(".pulse")).to_have_text("Live")
    page.locator(".recall-line").first.focus()
    before = focused(page)
    gateway.ask("recall", query="who lights the lanterns?")
    expect(page.locator(".recall-line", has_text="who lights the lanterns?")).to_be_visible(
        timeout=UPDATE_TIMEOUT_MS
    )
    assert focused(page) == before


def test_a_new_memory_keeps_the_focus_in_lists_and_panels(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".pulse")).to_have_text("Live")
    gateway.ask("entries.add", text="The lighthouse is painted every five years")
    row = page.locator(".entries tr", has_text="Coffee only before noon")
    row.locator(".row").click()
    edit = page.locator(".panel [data-do=edit]")
    edit.focus()
    entry = row.get_attribute("data-id")
    gateway.ask("entries.edit", id=entry, tags=["drinks"])
    expect(page.locator(".panel .labels")).to_contain_text("drinks", timeout=UPDATE_TIMEOUT_MS)
    expect(edit).to_be_focused()
    row.locator("input").focus()
    gateway.ask("entries.edit", id=entry, tags=["breakfast"])
    expect(row).to_contain_text("breakfast", timeout=UPDATE_TIMEOUT_MS)
    expect(row.locator("input")).to_be_focused()


def test_a_sync_does_not_interrupt_the_next_lines_of_a_note(gateway: Served, visit: Visit) -> None:
    lines = "\n\n".join(f"Bollard {number} is numbered." for number in range(1, 1500))
    gateway.write("memory/bollards.md", lines)
    gateway.ask("memory.sync")
    page = visit(gateway, "#/notes/memory/bollards.md").page
    expect(page.locator(".pulse")).to_have_text("Live")
    expect(page.locator(".prose")).to_contain_text("Bollard 700 is")
    held: list[Route] = []

    def hold(route: Route) -> None:
        first = (route.request.post_data_json or {}).get("from") == 1
        route.continue_() if first else held.append(route)

    page.route("**/notes.get", hold)
    page.get_by_role("button", name="Show more").click()
    gateway.write("memory/quay.md", "# Quay\n\nThe quay is being swept.\n")
    gateway.ask("memory.sync")
    expect(page.locator(".tree")).to_contain_text("quay.md", timeout=UPDATE_TIMEOUT_MS)
    expect(page.locator(".failure")).to_have_count(0)
    while not held:
        page.wait_for_timeout(20)  # lets the handler run
    held[0].continue_()
    expect(page.locator(".prose")).to_contain_text("Bollard 1499 is")


def test_an_event_does_not_interrupt_a_memory_that_is_being_opened(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/memories")
    page = watched.page
    expect(page.locator(".pulse")).to_have_text("Live")
    held = watched.hold("**/entries.get")
    page.locator(".entries .row").first.click()
    held.wait_for()
    gateway.ask("entries.add", text="The capstan is turned by four people")
    held.wait_for(2)  # the event lets the panel load again
    held.release()
    expect(page.locator(".panel")).to_be_focused()


def test_an_event_does_not_interrupt_a_slow_search(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/search")
    page = watched.page
    expect(page.locator(".pulse")).to_have_text("Live")
    counted = page.locator("[data-view=memories] .nav-count")
    expect(counted).not_to_be_empty()
    count = int(counted.inner_text())
    held = watched.hold("**/memory.search")
    page.get_by_role("searchbox").fill("server")
    held.wait_for()
    gateway.ask("entries.add", text="The server room of the harbour office is cold")
    expect(counted).to_have_text(str(count + 1))
    expect(page.locator(".summary")).to_have_text("Searching …")
    assert len(held.wait_for()) == 1  # it was not sent again
    held.release()
    expect(page.locator(".hit", has_text="server room of the harbour")).to_be_visible()
    expect(page.locator("main[aria-busy]")).to_have_count(0)


def test_an_event_does_not_interrupt_a_note_that_is_opened_again(gateway: Served, visit: Visit) -> None:
    gateway.write("memory/mooring.md", "# Mooring\n\nTwo ropes at the bow.\n")
    gateway.ask("memory.sync")
    watched = visit(gateway, "#/notes/memory/mooring.md")
    page = watched.page
    expect(page.locator(".pulse")).to_have_text("Live")
    expect(page.locator(".prose")).to_contain_text("Two ropes")
    page.evaluate("location.hash = '#/notes'")
    expect(page.locator(".prose")).to_have_count(0)
    held = watched.hold("**/notes.get")
    page.go_back()
    held.wait_for()
    gateway.write("memory/anchorage.md", "# Anchorage\n\nGood holding in sand.\n")
    gateway.ask("memory.sync")
    held.wait_for(2)  # the event lets the view load the note again
    held.release()
    expect(page.locator(".prose")).to_contain_text("Two ropes")


def test_an_event_does_not_interrupt_the_first_list_of_recalls(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/health", viewport={"width": 1800, "height": 900})
    page = watched.page
    expect(page.locator(".pulse")).to_have_text("Live")
    held = watched.hold("**/recalls.list")
    page.locator("nav [data-view=recalls]").click()
    held.wait_for()
    gateway.ask("recall", query="how is the capstan turned?")
    held.wait_for(2)
    held.release()
    expect(page.locator(".panel .statement")).to_have_text("how is the capstan turned?")


def test_a_typed_filter_has_no_effect_after_its_view_is_closed(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".entries")).to_be_visible()
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    page.get_by_role("searchbox").fill("coffee")
    page.locator("nav [data-view=health]").click()
    expect(page.locator(".health")).to_be_visible()
    page.clock.run_for(5000)
    assert page.evaluate("location.hash") == "#/health"
