"""Layout: large counts and long names fit, print shows content, and empty views help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from conftest import Visit

pytestmark = pytest.mark.integration

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
FACETS = {
    "total": 12345,
    "types": {"fact": 12345},
    "states": {"active": 12345, "staged": 678},
    "trust": {"owner": 12345},
    "tags": {"a tag that the owner typed without thinking of how wide a column can be on a screen": 3},
}
TEXT_AT_THE_RIGHT = """() => {
  const paragraph = document.querySelector(".prose p");
  const range = document.createRange();
  range.selectNodeContents(paragraph);
  return Math.abs(range.getBoundingClientRect().right - paragraph.getBoundingClientRect().right) < 3;
}"""


def box(found: Locator) -> dict[str, float]:
    """Return the bounding box of an element."""
    lies = found.bounding_box()
    assert lies is not None
    return dict(lies)


def test_large_counts_and_long_tags_fit(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health").page
    page.route("**/entries.facets", lambda route: route.fulfill(json=FACETS))
    page.goto(f"{gateway.address}/#/memories?tag=fern")
    page.reload()
    page.locator(".entries .row").first.click()
    expect(page.locator(".nav-count")).to_contain_text(["678"])
    heights = {round(box(link)["height"]) for link in page.locator("nav [data-view]").all()}
    assert len(heights) == 1
    column = box(page.locator(".split-list"))
    for control in page.locator(".split-list :is(select, input):visible").all():
        assert box(control)["x"] + box(control)["width"] <= column["x"] + column["width"] + 1


@pytest.mark.parametrize("width", [860, 1000, 1180])
def test_every_view_fits_a_window_of_middle_width(width: int, gateway: Served, visit: Visit) -> None:
    tag = "a-tag-without-thinking-of-how-wide-a-column-can-be"
    gateway.ask("entries.add", text="The quay is swept on Mondays", type="user_preference", tags=[tag])
    page = visit(gateway, "#/search?q=server", viewport={"width": width, "height": 700}).page
    for view in ("memories", "notes/memory/projects/fern.md", "recalls", "health", "search"):
        page.evaluate("place => { location.hash = place; }", f"#/{view}")
        expect(page.locator("main .loading")).to_have_count(0)
        expect(page.locator("main :is(.row, .card, .holdings):visible").first).to_be_visible()
        assert page.evaluate("() => document.scrollingElement.scrollWidth") <= width


def test_a_phone_shows_memories_that_wait_for_approval(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health", **PHONE).page
    page.route("**/entries.facets", lambda route: route.fulfill(json=FACETS))
    page.reload()
    expect(page.locator("[data-view=inbox] .nav-count b")).to_be_visible()
    title = box(page.get_by_role("heading", level=1))
    assert title["height"] < 40  # one line, next to its buttons


def test_print_shows_content_without_controls(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes/memory/projects/launch.md").page
    expect(page.locator(".prose")).to_be_visible()
    page.emulate_media(media="print")
    for gone in (".side", ".tree", ".note-head .segments"):
        expect(page.locator(gone).first).to_be_hidden()
    assert box(page.locator(".prose"))["x"] < 10


def test_right_to_left_text_is_aligned_to_the_right(gateway: Served, visit: Visit) -> None:
    gateway.write("memory/פגישה.md", "# פגישה\n\nהפגישה ביום שלישי\n")
    page = visit(gateway, "#/notes/memory/פגישה.md").page
    expect(page.locator(".prose p")).to_be_visible()
    assert page.evaluate(TEXT_AT_THE_RIGHT)
    expect(page.locator(".note-head h2")).to_have_text("memory/פגישה.md")


def test_a_conversation_is_shown_by_speaker(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes/sessions/2026-02-10-servers.jsonl").page
    first = page.locator(".turn").first
    expect(first).to_have_attribute("data-role", "user")
    expect(first.locator("b")).to_have_text("User")
    expect(first.locator(".said-words")).to_have_text(
        "Remember that the backups of staging go to a second machine in Nuremberg."
    )


def test_recently_changed_notes_are_offered_until_one_is_chosen(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes").page
    page.locator(".note .row", has_text="memory/projects/launch.md").click()
    expect(page.locator(".note-head h2")).to_have_text("memory/projects/launch.md")


EXPLANATIONS = {
    "memories": "Your agent learns from what you tell it",
    "notes": "Write MEMORY.md or memory/*.md",
    "recalls": "memoriter install",
}


def test_every_view_of_an_empty_memory_explains_the_next_step(empty_gateway: Served, visit: Visit) -> None:
    page = visit(empty_gateway, "#/search").page
    expect(page.locator(".steps")).to_contain_text(str(empty_gateway.workspace / "MEMORY.md"))
    for view, words in EXPLANATIONS.items():
        page.locator(f"nav [data-view={view}]").click()
        expect(page.locator("main .nothing")).to_contain_text(words)
