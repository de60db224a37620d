"""The first visit to an empty workspace: three steps, and the first leads to a search with a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from conftest import Visit

pytestmark = pytest.mark.integration


def test_the_first_step_leads_to_a_search_with_a_result(empty_gateway: Served, visit: Visit) -> None:
    page = visit(empty_gateway).page
    expect(page.get_by_role("heading", name="No memories yet")).to_be_visible()
    expect(page.locator(".steps > li")).to_have_count(3)
    page.get_by_label("Something to remember").fill("My sister Ana keeps bees near Évora")
    page.get_by_role("button", name="Remember it and search for it").click()
    expect(page.locator(".hit .snippet")).to_have_text("My sister Ana keeps bees near Évora")


def test_a_first_note_on_disk_is_found_without_a_reload(empty_gateway: Served, visit: Visit) -> None:
    page = visit(empty_gateway).page
    expect(page.locator(".steps")).to_be_visible()
    expect(page.locator(".pulse")).to_have_text("Live")
    empty_gateway.write("MEMORY.md", "# Me\n\n- I prefer tabs over spaces.\n")
    expect(page.locator(".holdings")).to_be_visible(timeout=60_000)
    page.get_by_role("searchbox").fill("tabs or spaces")
    expect(page.locator(".hit .snippet").first).to_contain_text("I prefer tabs")


@pytest.mark.parametrize("view", ["memories", "notes", "recalls", "health"])
def test_every_empty_view_says_so(view: str, empty_gateway: Served, visit: Visit) -> None:
    page = visit(empty_gateway, f"#/{view}").page
    expect(page.locator("main .loading")).to_have_count(0)
    expect(page.locator("main [role=alert]")).to_have_count(0)
    if view != "health":
        expect(page.locator("main .nothing").first).to_be_visible()


def test_the_page_can_be_reloaded_many_times(gateway: Served, visit: Visit) -> None:
    """Each reload requests all files of the page again."""
    page = visit(gateway, "#/notes").page
    for _ in range(30):
        page.reload()
    expect(page.locator("h1")).to_be_visible()
