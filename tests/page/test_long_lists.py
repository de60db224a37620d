"""A long list of memories: only rows in sight exist, changes elsewhere move nothing, and a reload keeps the place."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from conftest import Visit

pytestmark = pytest.mark.integration

COUNT = 2_000
#: The text of the first row in sight and its distance from the top of the window.
READ = """() => {
  const rows = [...document.querySelectorAll(".entries tr[data-id]")];
  const row = rows.find((one) => one.getBoundingClientRect().top > 60);
  return row && [row.querySelector(".row").textContent, Math.round(row.getBoundingClientRect().top)];
}"""
#: Scrolls by distances, one in each frame of 16 ms, and returns the number of rows that each frame created.
FRAMES = """(distances) => {
  const waiting = [];
  window.requestAnimationFrame = (act) => waiting.push(act);
  let time = performance.now();
  const isRow = (node) => node.matches("tr[data-id]");
  const watch = new MutationObserver(() => {});
  watch.observe(document.querySelector(".entries tbody"), { childList: true });
  return distances.map((pixels) => {
    scrollBy(0, pixels);
    dispatchEvent(new Event("scroll"));
    time += 16;
    for (const act of waiting.splice(0)) act(time);
    return watch.takeRecords().flatMap((one) => [...one.addedNodes]).filter(isRow).length;
  });
}"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with a long list of memories, without vectors."""
    with served(tmp_path_factory.mktemp("gateway"), {"embedding": {"provider": "none"}}) as running:
        now = time.time()
        learned = [
            {
                "text": f"Statement {number} on house {number // 10}",
                "importance": 1 + number % 5,
                "tags": ["even"] if number % 2 == 0 else ["odd", "rare"] if number == 7 else ["odd"],
                "source": "mem0" if number % 4 == 0 else "",
                "created_at": now - 1000 - number * 600,
            }
            for number in range(COUNT)
        ]
        running.ask("entries.import", data=json.dumps(learned))
        yield running


def scrolled_to(page: Page, number: int) -> None:
    """Scroll until a row in the middle of the list is in sight."""
    expect(page.locator(".entries tr[data-id]").first).to_be_attached()
    page.evaluate(f"() => scrollTo(0, document.querySelector('.entries').offsetTop + {number} * 54)")
    expect(page.get_by_role("link", name=f"Statement {number + 3} on", exact=False)).to_be_in_viewport()


def wait_for_place(page: Page, place: list[object]) -> None:
    """Wait until the list shows a place. It draws its rows in several frames."""
    page.wait_for_function(f"(place) => JSON.stringify(({READ})()) === JSON.stringify(place)", arg=place)


def test_only_rows_in_sight_exist_and_a_reload_keeps_the_place(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".summary")).to_contain_text("2,000 memories")
    expect(page.locator("table.entries")).to_have_attribute("aria-rowcount", "2001")
    for number in (100, 1500, 900):
        scrolled_to(page, number)
        assert page.locator(".entries tr[data-id]").count() < 80
    expect(page.locator(".entries tr.blank")).to_have_count(0)
    before = page.evaluate(READ)
    while page.evaluate("() => Math.abs((history.state.anchor?.index ?? 0) - 900) > 20"):
        page.wait_for_timeout(20)  # let the page continue
    gateway.ask("entries.add", text="A statement that came while the page was closed")
    page.reload()
    expect(page.get_by_role("link", name=before[0])).to_be_in_viewport()
    wait_for_place(page, before)


def test_rows_that_fly_by_are_not_drawn_and_those_in_sight_come_in_several_frames(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".entries tr[data-id]").nth(20)).to_be_attached()
    came = page.evaluate(FRAMES, [0] * 5 + [800] * 10 + [-500] * 10 + [0] * 10)
    assert came[5:25] == [0] * 20
    assert max(came) == 8
    assert sum(came[25:]) > 20


def test_the_list_behind_an_open_memory_is_complete_on_a_phone(gateway: Served, visit: Visit) -> None:
    opened = gateway.ask("entries.list", limit=1)["entries"][0]["id"]
    page = visit(gateway, f"#/memories/{opened}", viewport={"width": 390, "height": 800}).page
    expect(page.locator(".panel .statement")).to_be_visible()
    expect(page.locator(".entries tr[data-id]").first).to_be_attached()
    expect(page.locator(".entries tr[data-id]").first).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator(".entries tr[data-id]").nth(12)).to_be_visible()


def test_a_change_elsewhere_does_not_move_what_is_read(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".pulse")).to_have_text("Live")
    scrolled_to(page, 700)
    before = page.evaluate(READ)
    total = page.locator(".summary").inner_text()
    gateway.ask("entries.add", text="The harbour is closed in winter")
    expect(page.locator(".summary")).not_to_have_text(total)
    expect(page.locator(".entries tr.blank")).to_have_count(0)
    wait_for_place(page, before)


def test_a_change_while_rows_are_loading_does_not_move_what_is_read(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/memories")
    page = watched.page
    expect(page.locator(".pulse")).to_have_text("Live")
    expect(page.locator(".entries tr[data-id]").first).to_be_attached()
    held = watched.hold("**/entries.list")
    page.evaluate("() => scrollTo(0, document.querySelector('.entries').offsetTop + 700 * 54)")
    held.wait_for()
    gateway.ask("entries.add", text="The harbour is open in spring")
    renewal = held.wait_for(2)[1].request.post_data_json
    assert renewal["around"]  # a row that keeps its place
    held.release()
    expect(page.get_by_role("link", name="Statement 702 on", exact=False)).to_be_in_viewport()


def test_the_open_memory_moves_with_j_beyond_what_is_loaded(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    scrolled_to(page, 60)
    page.get_by_role("link", name="Statement 70 on", exact=False).click()
    statement = page.locator(".panel .statement")
    expect(statement).to_have_text("Statement 70 on house 7")
    for number in range(71, 76):
        page.keyboard.press("j")
        expect(statement).to_have_text(f"Statement {number} on house 7")
    expect(page.locator("tr.open")).to_be_in_viewport()


def test_chips_filter_by_what_memories_have_and_headers_sort_both_ways(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    rows = page.locator(".entries tr[data-id]")
    page.get_by_role("button", name="Filters", exact=True).click()
    page.locator("[data-filter=source]").select_option("import:mem0")
    expect(page.locator(".summary")).to_contain_text("500 memories")
    page.get_by_role("button", name="Remove the filter “Source”").click()
    expect(page.locator(".summary")).not_to_contain_text("500 memories")
    page.locator(".tag", has_text="odd").first.click()
    expect(page.locator(".summary")).to_contain_text("1,000 memories")
    assert "tag=odd" in page.url
    page.locator("[data-filter=tag]").select_option("rare")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_role("button", name="Created").click()
    expect(page.locator("th.col-created")).to_have_attribute("aria-sort", "ascending")
    expect(rows.first).to_contain_text(f"Statement {COUNT - 1} on")
    page.get_by_role("button", name="Created").click()
    expect(page.locator("th.col-created")).to_have_attribute("aria-sort", "descending")


def test_all_memories_of_a_filter_are_selected(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories?tag=even").page
    page.get_by_label("Select all in this list").check()
    expect(page.locator(".several")).to_contain_text("500 selected (the most for one action)")
    page.locator(".entries tr[data-id] input").first.uncheck()
    expect(page.locator(".several")).to_contain_text("499 selected")


def test_selected_memories_get_a_tag_and_lose_it_by_undo(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories?tag=rare").page
    page.locator(".entries tr[data-id] input").check()
    page.locator(".several").get_by_role("button", name="Add tags").click()
    page.get_by_role("dialog").get_by_label("Tags").fill("shelf, window")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".said")).to_contain_text("Added the tags to 1 memory.")
    tagged = gateway.ask("entries.list", tags=["shelf"])["entries"]
    assert [one["tags"] for one in tagged] == [["odd", "rare", "shelf", "window"]]
    page.keyboard.press("u")
    expect(page.locator(".said")).to_contain_text("undone")
    assert gateway.ask("entries.list", tags=["shelf"])["total"] == 0
