"""The tree of notes: the open note is visible, days are newest first, and conversations have names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Visit

pytestmark = pytest.mark.integration

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
MONTHS = ("2025-12", "2026-01", "2026-02")
DAYS = tuple(f"{month}-{day:02}" for month in MONTHS for day in range(1, 29))
TALKS = (("b3d1", "Which ferry runs on Sundays?", "2026-02-09"), ("a7f0", "把定投改到每月五号", "2026-02-11"))
#: Returns whether the open note is inside the visible part of the tree.
REVEALED = """() => {
  const box = (one) => document.querySelector(one).getBoundingClientRect();
  const [open, tree] = [box(".tree [aria-current]"), box(".tree")];
  return open.top >= tree.top && open.bottom <= tree.bottom && scrollY === 0;
}"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("tree"), {"embedding": {"provider": "none"}}) as running:
        for day in DAYS:
            running.write(f"memory/{day}.md", f"# {day}\n\nThe harbour was calm.\n")
        for number in range(80):
            running.write(f"memory/projects/{number:02}.md", f"# Project {number}\n")
        running.write("MEMORY.md", "# Facts\n")
        for name, first, day in TALKS:
            running.session(name, ("user", first), ("assistant", "One moment."), at=f"{day}T12:00:00Z")
        running.ask("memory.sync")
        yield running


def test_days_are_grouped_by_month_and_sorted_newest_first(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes").page
    rows = page.locator(".tree .row:visible")
    expect(page.locator(".tree summary")).to_have_text(
        ["memory164", "projects80", "February 202628", "January 202628", "December 202528", "sessions2"]
    )
    shown = [text.strip() for text in rows.all_inner_texts()]
    days = [text for text in shown if text.endswith(".md") and text != "MEMORY.md"]
    assert days == [f"2026-02-{day:02}.md" for day in range(28, 0, -1)]


def test_conversations_are_named_by_their_first_words_and_the_day(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes").page
    expect(page.locator(".tree .talk b")).to_have_text(["把定投改到每月五号", "Which ferry runs on Sundays?"])
    expect(page.locator(".tree .talk small")).to_have_text(["11 Feb 2026", "9 Feb 2026"])
    page.get_by_role("searchbox").fill("ferry")
    expect(page.locator(".tree .talk")).to_have_count(1)


def test_the_open_note_is_visible_in_the_tree(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes/memory/2025-12-03.md").page
    expect(page.locator(".tree [aria-current]")).to_have_text("2025-12-03.md")
    expect(page.locator(".note-body h2")).to_have_text("2025-12-03")
    page.wait_for_function(REVEALED)
    page.evaluate("() => { location.hash = '#/notes/memory/projects/77.md'; }")
    expect(page.locator(".tree [aria-current]")).to_have_text("77.md")
    page.wait_for_function(REVEALED)


def test_a_folder_that_the_reader_closed_stays_closed(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes").page
    page.locator(".tree summary", has_text="February").click()
    page.locator(".tree summary", has_text="January").click()
    page.locator(".tree a", has_text="2026-01-28").click()
    expect(page.locator(".note-body h2")).to_have_text("2026-01-28")
    expect(page.locator(".tree a", has_text="2026-02-28")).to_be_hidden()


def test_a_phone_shows_recent_notes_then_the_tree_then_the_note(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes", **PHONE).page
    recent, tree = page.locator(".recent"), page.locator(".tree")
    expect(recent.locator("a").first).to_be_visible()
    tops = page.evaluate(
        "() => ['.recent', '.tree'].map((one) => document.querySelector(one).getBoundingClientRect().top)"
    )
    assert tops == sorted(tops)
    page.locator(".tree .talk", has_text="ferry").tap()
    expect(page.locator(".turn").first).to_be_visible()
    expect(tree).to_be_hidden()
    page.get_by_role("link", name="Back to the list").tap()
    expect(tree).to_be_visible()
    assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 390
