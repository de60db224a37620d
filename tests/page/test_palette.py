"""The palette goes anywhere, searches and runs actions; searches are saved; memories lead to related ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from pathlib import Path

    from serving import Served

    from conftest import Visit

pytestmark = pytest.mark.integration


def test_the_palette_goes_to_views_runs_actions_and_finds_memories(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health").page
    expect(page.locator(".verdict")).to_be_visible()
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Go to a view, search, or run an action")
    expect(box).to_be_focused()
    page.keyboard.type("recal")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Recalls")
    page.keyboard.press("Control+k")
    box.fill("new memo")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Statement")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    box.fill("fern.garden is paid")
    page.get_by_role("option", name="Memory The domain fern.garden").click()
    expect(page.locator(".panel .statement")).to_have_text("The domain fern.garden is paid for three years")
    page.keyboard.press("Control+k")
    box.fill("quarterly forecast")
    page.get_by_role("option", name="Search quarterly forecast").click()
    expect(page.get_by_role("searchbox")).to_have_value("quarterly forecast")


def test_a_search_is_saved_opened_and_removed(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories?type=workflow&stars=4").page
    expect(page.locator(".entries tr[data-id]")).to_have_count(1)
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Go to a view, search, or run an action")
    box.fill("save this")
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_contain_text("Memories: workflow, 4")
    page.locator("nav [data-view=health]").click()
    expect(page.locator("h1")).to_have_text("Health")
    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Saved search Memories: workflow, 4").click()
    expect(page.locator(".entries tr[data-id]")).to_have_count(1)
    assert "type=workflow&stars=4" in page.url
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog").get_by_role("option").first).to_contain_text("Saved search")
    page.keyboard.press("Shift+Delete")
    expect(page.get_by_role("option", name="Saved search")).to_have_count(0)


def test_a_memory_leads_to_similar_ones_and_to_its_conversation(gateway: Served, visit: Visit) -> None:
    found = gateway.ask("entries.list", session="2026-02-10-servers", states=[])["entries"]
    entry = next(one for one in found if "Caddy" in one["text"])
    page = visit(gateway, f"#/memories/{entry['id']}").page
    same = page.locator(".same-session .entry-line")
    expect(same).to_have_count(len(found) - 1)
    page.locator(".panel [data-do=like]").click()
    expect(page.get_by_role("searchbox")).to_have_value(entry["text"])
    expect(page.locator(".hit[data-source=entries]").first).to_be_visible()


def test_health_says_what_has_no_vector_and_finishes_it(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search").page
    missing = [30]

    def answer(route: object) -> None:
        told = route.fetch().json()  # type: ignore[attr-defined]
        told["queue"]["pendingEntries"] = missing[0]
        told["sizes"] |= {"entries": 40, "chunks": 60}
        route.fulfill(json=told)  # type: ignore[attr-defined]

    page.route("**/health.get", answer)
    page.locator("nav [data-view=health]").click()
    card = page.locator(".card.vectors")
    expect(card).to_contain_text("30 memories have no vector yet.")
    expect(card).to_contain_text("70 of 100 are ready.")
    missing[0] = 10
    expect(card).to_contain_text("90 of 100 are ready.")
    with page.expect_request("**/memory.sync"):
        missing[0] = 0
        card.get_by_role("button", name="Finish now").click()
    expect(card).to_have_count(0)
    page.unroute_all(behavior="ignoreErrors")


def test_health_says_once_that_vectors_are_missing_and_why(
    tmp_path: Path, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no-server-reads-it")
    settings = {"provider": "openai", "model": "text-embedding-3-small", "base_url": "http://127.0.0.1:9/v1"}
    with served(tmp_path, {"embedding": settings}) as gateway:
        gateway.ask("notes.put", path="memory/rent.md", text="The rent is 900 euros.\n")
        gateway.ask("memory.sync")
        page = visit(gateway, "#/health").page
        expect(page.locator(".card.vectors")).to_contain_text("openai cannot be reached")
        expect(page.locator(".health").get_by_text("no vector")).to_have_count(1)
