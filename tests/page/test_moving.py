"""Navigation: back and forward, the focus after each step, the place after an undo, and recovery from failures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from serving import Served

sync_api = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it")
expect = sync_api.expect

if TYPE_CHECKING:
    from browsing import Watched

    from conftest import Visit

pytestmark = pytest.mark.integration

TOP = "() => Math.round(scrollY)"


def searches(watched: Watched) -> list[str]:
    """Return the search requests."""
    return [path for path in watched.data_requests() if path.endswith("/memory.search")]


def test_back_restores_the_hit_and_the_scroll_position(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search?q=fern", viewport={"width": 1280, "height": 400}).page
    hit = page.locator(".hit .place").nth(3)
    hit.scroll_into_view_if_needed()
    before, place = page.evaluate(TOP), hit.get_attribute("href")
    assert before > 0
    hit.click()
    expect(page.locator(".note-body > *, .panel .statement").first).to_be_visible()
    page.go_back()
    expect(page.locator(f'.hit .place[href="{place}"]')).to_be_focused()
    assert page.evaluate(TOP) == before


def test_the_focus_moves_into_the_opened_panel_and_back_to_the_row(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health").page
    expect(page.locator(".verdict")).to_be_visible()
    for view, row in (("m", ".entries .row"), ("r", ".recall-line")):
        page.keyboard.press("g")
        page.keyboard.press(view)
        expect(page.locator("main")).to_be_focused()
        expect(page.locator(row).first).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.locator(".panel")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.locator(".panel-bar :focus")).to_have_count(1)
        before = page.url
        page.keyboard.press("j")  # opens what is after it
        page.wait_for_url(lambda url, before=before: url != before)
        expect(page.locator(".panel")).to_be_focused()
        expect(page.locator(".panel .statement")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".panel .statement")).to_have_count(0)
        expect(page.locator(row).nth(2)).to_be_focused()


def test_typing_keeps_the_focus(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    page.locator(".entries .row").first.click()
    expect(page.locator(".panel")).to_be_focused()
    box = page.get_by_role("searchbox")
    box.fill("coffee")
    expect(page.locator(".entries tbody tr")).to_have_count(1)
    expect(box).to_be_focused()


def test_a_memory_without_changes_offers_no_undo(gateway: Served, visit: Visit) -> None:
    entry = str(gateway.ask("entries.add", text="The tandem has a flat tyre")["entry"]["id"])
    page = visit(gateway, f"#/memories/{entry}").page
    panel = page.locator(".panel")
    expect(panel.locator("[data-do=forget]")).to_be_visible()
    expect(panel.locator("[data-do=undo]")).to_have_count(0)
    gateway.ask("entries.edit", id=entry, importance=5)
    expect(panel.locator("[data-do=undo]")).to_have_attribute("title", re.compile("Edited"))
    panel.locator("[data-do=undo]").click()
    expect(panel.locator(".history").get_by_text("Undone")).to_be_visible()
    expect(panel.locator("[data-do=undo]")).to_have_count(0)


def test_undoing_a_replacement_shows_the_replaced_memory(gateway: Served, visit: Visit) -> None:
    old = str(gateway.ask("entries.add", text="The sundial stands in the yard")["entry"]["id"])
    made = gateway.ask("entries.supersede", id=old, text="The sundial stands on the roof")["entry"]["id"]
    page = visit(gateway, f"#/memories/{made}").page
    page.locator("[data-do=undo]").click()
    expect(page.locator(".panel .statement")).to_have_text("The sundial stands in the yard")
    expect(page.locator(".panel .label[data-kind=state]")).to_have_text("Active")
    expect(page.locator(".panel .failure")).to_have_count(0)
    assert page.evaluate("location.hash") == f"#/memories/{old}"


def test_recalls_are_filtered_by_the_address_and_an_empty_list_says_so(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/recalls?session=no such talk").page
    expect(page.locator(".lines .nothing")).to_have_text("No recalls match these filters.")
    page.get_by_role("link", name="Clear filters").click()
    page.locator(".recall-line").first.click()
    page.locator(".panel .facts").get_by_role("link", name="2026-02-10-servers").click()
    expect(page.locator(".summary")).to_contain_text("2026-02-10-servers")
    expect(page.locator(".recall-line")).to_have_count(5)
    page.go_back()
    expect(page.locator(".summary")).not_to_contain_text("2026-02-10-servers")
    page.locator("[data-filter=q]").fill("invoices")
    page.keyboard.press("Enter")
    expect(page.locator(".recall-line")).to_have_count(1)
    expect(page.locator(".recall-line")).to_contain_text("when do invoices go out?")
    assert page.url.endswith("?q=invoices") or "q=invoices" in page.url


def test_filters_without_matches_can_be_cleared(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories?stars=5&type=skill").page
    expect(page.get_by_text("No memories match these filters.")).to_be_visible()
    page.locator(".nothing").get_by_role("link", name="Clear filters").click()
    expect(page.locator(".entries .row").first).to_be_visible()


def test_a_failure_without_a_message_is_explained(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health").page
    expect(page.locator(".verdict")).to_be_visible()
    page.route("**/entries.list", lambda route: route.fulfill(status=500, body="Internal Server Error"))
    page.locator("nav [data-view=memories]").click()
    expect(page.locator(".failure")).to_contain_text("The server could not do this (error 500).")


def test_a_view_whose_script_does_not_load_can_be_opened_again(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".entries .row").first).to_be_visible()
    page.route("**/static/page-*.js", lambda route: route.abort())
    page.locator("nav [data-view=health]").click()
    expect(page.locator(".failure")).to_be_visible()
    page.unroute("**/static/page-*.js")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".verdict")).to_be_visible()
    page.locator("nav [data-view=notes]").click()
    expect(page.locator(".tree")).to_be_visible()
    page.go_back()
    expect(page.locator(".verdict")).to_be_visible()


def test_a_failed_view_recovers_when_the_gateway_is_back(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health").page
    expect(page.locator(".verdict")).to_be_visible()
    greeting = "retry: 300\n\nevent: hello\ndata: {}\n\n"  # then the connection is lost
    page.route("**/v1/events**", lambda route: route.fulfill(body=greeting, content_type="text/event-stream"))
    page.route("**/entries.list", lambda route: route.abort())
    page.goto(f"{gateway.address}/#/memories")
    page.reload()
    expect(page.locator(".table-place .failure")).to_contain_text("The server does not answer.")
    page.unroute("**/entries.list")
    expect(page.locator(".entries .row").first).to_be_visible()


def test_a_slow_search_says_so(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/search")
    page = watched.page
    expect(page.locator(".holdings")).to_be_visible()
    held = watched.hold("**/memory.search")
    page.get_by_role("searchbox").fill("server")
    expect(page.locator(".summary")).to_have_text("Searching …")
    held.release()
    expect(page.locator(".hit").first).to_be_visible()
    expect(page.locator(".summary")).not_to_contain_text("Searching")
    expect(page.locator("main[aria-busy]")).to_have_count(0)


def test_ime_composition_makes_no_request(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/search", live=False)
    page = watched.page
    expect(page.locator(".holdings")).to_be_visible()
    page.get_by_role("searchbox").focus()
    keyboard = page.context.new_cdp_session(page)
    watched.requests.clear()
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    for written in ("m", "ma", "ma m", "ma ma"):
        begun = {"text": written, "selectionStart": len(written), "selectionEnd": len(written)}
        keyboard.send("Input.imeSetComposition", begun)
        page.clock.run_for(500)
    assert searches(watched) == []
    keyboard.send("Input.insertText", {"text": "妈妈"})
    page.clock.run_for(500)
    expect(page.locator(".hit mark", has_text="妈妈").first).to_be_visible()
    assert len(searches(watched)) == 1


def test_the_arrow_key_moves_from_the_field_to_the_first_hit(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search?q=server").page
    expect(page.locator(".hit").first).to_be_visible()
    page.get_by_role("searchbox").press("ArrowDown")
    expect(page.locator(".hit .place").first).to_be_focused()


def test_a_used_link_opens_the_page_again_or_explains_how_to_get_another(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, "#/health").page
    expect(page.locator(".verdict")).to_be_visible()
    answer = page.goto(gateway.link)
    assert answer
    assert answer.status == 403
    expect(page.locator(".holdings")).to_be_visible()  # this browser has used the link before
    assert "ticket" not in page.url
    page.context.clear_cookies()
    page.goto(gateway.link)
    expect(page.get_by_text("memoriter open", exact=True).first).to_be_visible()
