"""A memory opens beside what the reader was doing: in search and in recalls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from serving import Served

    from conftest import Visit

pytestmark = pytest.mark.integration


def test_a_memory_opens_beside_the_results_and_back_restores_them(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search?q=server&in=entries").page
    hits = page.locator(".hit[data-source=entries]")
    expect(hits.nth(1)).to_be_visible()
    hits.first.locator(".row").click()
    panel = page.locator(".panel.peek")
    expect(panel.locator(".statement")).to_contain_text("server")
    first = panel.locator(".statement").inner_text()
    expect(hits.first).to_be_visible()
    assert page.url.split("#")[1].startswith("/search?q=server&in=entries&peek=")
    page.keyboard.press("j")
    expect(panel.locator(".statement")).not_to_have_text(first)
    page.keyboard.press("k")
    expect(panel.locator(".statement")).to_have_text(first)
    page.keyboard.press("e")
    expect(page.get_by_role("dialog").get_by_label("Statement")).to_have_value(first)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.go_back()
    page.go_back()
    page.go_back()
    expect(panel).to_be_hidden()
    expect(hits.first).to_be_visible()
    assert "peek" not in page.url
    hits.first.locator(".snippet").click()
    expect(panel.locator(".statement")).to_have_text(first)
    page.keyboard.press("Escape")
    expect(hits.first.locator(".row")).to_be_focused()


def test_a_memory_of_a_recall_opens_in_its_place(gateway: Served, visit: Visit) -> None:
    recall = gateway.ask("recalls.list", limit=5)["recalls"][-1]["id"]
    page = visit(gateway, f"#/recalls/{recall}").page
    link = page.locator(".considered a[href*=memories]").first
    expect(link).to_be_visible()
    link.click()
    panel = page.locator(".panel.peek")
    expect(panel.locator(".statement")).to_be_visible()
    expect(page.locator(".recall-line.open")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(link).to_be_visible()
    expect(page.locator(".recall-line.open")).to_have_count(1)


def test_an_opened_recall_stays_in_sight(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/recalls", live=False, viewport={"width": 1280, "height": 360}).page
    last = page.locator(".recall-line").last
    last.scroll_into_view_if_needed()
    last.click()  # its row becomes narrower and higher, as those above
    expect(page.locator(".panel .facts")).to_be_visible()
    expect(last).to_have_class("recall-line row open")
    expect(last).to_be_in_viewport(ratio=1)
