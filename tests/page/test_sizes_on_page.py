"""Dimensions of the page: six sizes of type, one family in lists, targets of 24 pixels, narrow and wide screens."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from serving import Served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from conftest import Visit

pytestmark = pytest.mark.integration

SIZES = {"12px", "13px", "15px", "17px", "20px", "26px"}
#: Returns the font sizes of visible texts, with an example of each.
FONT_SIZES = """() => {
  const found = {};
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].filter((one) => one.nodeType === 3 && one.data.trim())[0];
    if (!text || !node.checkVisibility()) continue;
    found[getComputedStyle(node).fontSize] ??= `${node.tagName}.${node.className} ${text.data.slice(0, 40)}`;
  }
  return found;
}"""
#: Returns the families of the texts in lists.
FAMILIES = """() => {
  const lists = document.querySelectorAll(":is(.hits, .lines, .entries, .tree, .recalls) *:not(code, kbd)");
  const holds = (one) => [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const texts = [...lists].filter(holds);
  return [...new Set(texts.filter((one) => one.checkVisibility()).map((one) => getComputedStyle(one).fontFamily))];
}"""
#: Returns the targets that are smaller than 24 pixels. Links in running text may be smaller.
SMALL_TARGETS = """() => {
  const wanted = "a[href], button, input, select, textarea, summary, [role=button]";
  return [...document.querySelectorAll(wanted)].filter((one) => {
    if (!one.checkVisibility() || one.matches(".skip, :disabled")) return false;
    if (one.closest("tr[data-id] a")) return false; // the whole row is the target
    if (getComputedStyle(one).display === "inline" && one.closest("p, .prose, dd, .summary, .reason")) return false;
    const { width, height } = one.getBoundingClientRect();
    return width > 0 && (width < 23.9 || height < 23.9);
  }).map((one) => {
    const { width, height } = one.getBoundingClientRect();
    return `${one.outerHTML.slice(0, 90)} ${Math.round(width)}×${Math.round(height)}`;
  });
}"""
#: Returns the width of the content, and which elements are wider than the window.
OVERFLOW = """() => {
  const page = document.scrollingElement;
  if (page.scrollWidth <= innerWidth) return [];
  return [...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .slice(0, 5).map((one) => one.outerHTML.slice(0, 100));
}"""


def views(page: Page, gateway: Served) -> Iterator[str]:
    """Open every view of the page, one after the other."""
    entry = gateway.ask("entries.list", limit=1)["entries"][0]["id"]
    recall = gateway.ask("recalls.list", limit=1)["recalls"][0]["id"]
    for place in (
        "search",
        "search?q=server",
        "memories",
        f"memories/{entry}",
        "notes",
        "notes/memory/projects/launch.md",
        "notes/sessions/2026-02-10-servers.jsonl",
        "recalls",
        f"recalls/{recall}",
        "health",
    ):
        page.evaluate("place => { location.hash = place; }", f"#/{place}")
        expect(page.locator("main .loading")).to_have_count(0)
        has_panel = "/" in place and "notes" not in place
        ready = ".panel .statement" if has_panel else "main :is(.row, .card, .note-body > *)"
        expect(page.locator(f":is({ready}):visible").first).to_be_visible()
        yield place
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    yield "help"


@pytest.mark.parametrize("width", [1280, 390])
def test_type_has_six_sizes_and_lists_one_family_and_targets_24_pixels(
    width: int, gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, "#/health", viewport={"width": width, "height": 860}).page
    wrong: dict[str, Any] = {}
    for place in views(page, gateway):
        sizes = {size: text for size, text in page.evaluate(FONT_SIZES).items() if size not in SIZES}
        families, small = page.evaluate(FAMILIES), page.evaluate(SMALL_TARGETS)
        if sizes or len(families) > 1 or small:
            wrong[place] = (sizes, families if len(families) > 1 else [], small)
    assert wrong == {}


def test_nothing_is_wider_than_a_screen_of_320_pixels(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health", viewport={"width": 320, "height": 640}).page
    wrong = {place: found for place in views(page, gateway) if (found := page.evaluate(OVERFLOW))}
    assert wrong == {}


LINES_OF_TEXT = """(all) => all.map((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
})"""


def test_words_of_dialogs_and_messages_stay_whole_on_a_screen_of_320_pixels(
    gateway: Served, visit: Visit
) -> None:
    path = "memory/projects/garden-of-the-house.md"
    gateway.write(path, "# Garden\n")
    version = gateway.ask("notes.text", path=path)["version"]
    gateway.ask("notes.remove", path=path, version=version)
    page = visit(gateway, "#/about/Fern", live=False, viewport={"width": 320, "height": 700}).page
    dialog = page.get_by_role("dialog")
    page.locator("[data-do=forget]").click()
    names = dialog.locator(".places .faint").filter(has_text=re.compile(r"^Memory$"))
    expect(names.first).to_be_visible()
    assert set(names.evaluate_all(LINES_OF_TEXT)) == {1}
    page.keyboard.press("Escape")
    page.goto(f"{gateway.address}/#/memories")
    page.get_by_role("button", name="Import …").click()
    expect(dialog.get_by_text("Choose files")).to_be_visible()
    assert dialog.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    page.keyboard.press("Escape")
    page.goto(f"{gateway.address}/#/changes")
    page.locator("[data-do=restore]").click()
    said = page.locator(".said-text > span")
    expect(said).to_have_text("Restored.")
    assert said.evaluate_all(LINES_OF_TEXT) == [1]


def columns(page: Page, selector: str) -> int:
    """Return the number of columns in which the visible elements are."""
    found = [one.bounding_box() for one in page.locator(selector).all() if one.is_visible()]
    return len({round(one["x"]) for one in found if one})


WIDE = {"width": 1800, "height": 900}


def right_of(page: Page, selector: str) -> float:
    """Return where an element ends."""
    found = page.locator(selector).first.bounding_box()
    assert found
    return found["x"] + found["width"]


def test_home_and_notes_have_three_columns_on_a_wide_screen(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search", viewport=WIDE).page
    expect(page.locator(".home-lists .recent")).to_have_count(4)
    expect(page.locator(".charts .chart").nth(2)).to_be_visible()
    assert (columns(page, ".home-lists .recent"), columns(page, ".charts .chart")) == (3, 3)
    page.evaluate("() => { location.hash = '#/notes/memory/projects/fern.md'; }")
    expect(page.locator(".prose")).to_be_visible()
    outline = page.locator(".outline")
    expect(outline.get_by_role("button").first).to_be_visible()
    assert columns(page, ".notes > *, .outline") == 3
    outline.get_by_role("button").last.click()
    last = page.locator(".prose :is(h2, h3, h4)").last
    expect(last).to_be_in_viewport()
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(outline).to_be_hidden()


@pytest.mark.parametrize("width", [390, 1200, 1440, 1800])
def test_the_search_box_ends_where_the_content_ends(width: int, gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search", viewport={"width": width, "height": 900}).page
    expect(page.locator(".tile").last).to_be_visible()
    assert right_of(page, ".query-box") == pytest.approx(right_of(page, ".tiles"), abs=1)
    page.locator(".query").fill("server")
    expect(page.locator(".hit").first).to_be_visible()
    assert right_of(page, ".query-box") == pytest.approx(right_of(page, ".hit"), abs=1)


def test_a_conversation_lists_the_words_of_the_user_on_a_wide_screen(gateway: Served, visit: Visit) -> None:
    said = [("user", f"Question {number}?") for number in range(30)]
    gateway.session("2026-02-12-questions", *said)
    gateway.ask("memory.sync")
    page = visit(gateway, "#/notes/sessions/2026-02-12-questions.jsonl", viewport=WIDE).page
    page.locator(".outline").get_by_role("button", name="Question 29?").click()
    expect(page.locator(".turn", has_text="Question 29?")).to_be_in_viewport()


def test_a_wide_screen_has_room_for_an_answer_and_a_memory_but_lines_stay_short(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, "#/search?q=server", viewport=WIDE).page
    expect(page.locator(".hit").first).to_be_visible()
    assert right_of(page, ".hit") > 1600
    assert right_of(page, ".hit .snippet") < 1200
    page.locator(".hit[data-source=entries] .row").first.click()
    expect(page.locator(".peek .statement")).to_be_visible()
    assert columns(page, ".hit, .peek") == 2


def test_the_newest_recall_is_beside_the_list_on_a_wide_screen(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/recalls", viewport=WIDE).page
    query = gateway.ask("recalls.list", limit=1)["recalls"][0]["query"]
    statement = page.locator(".panel .statement").first
    expect(statement).to_have_text(query)
    assert page.url.endswith("#/recalls")
    expect(page.locator(".pulse")).to_have_text("Live")
    gateway.ask("recall", query="where does leaf diagnosis run today?")
    expect(page.locator(".recall-line").first).to_contain_text("run today?")
    expect(statement).to_have_text(query)  # what is read stays
    page.locator(".recall-line").nth(2).click()
    expect(page.locator(".panel .statement").first).not_to_have_text(query)
    page.keyboard.press("Escape")
    expect(statement).to_have_text(query)
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.locator(".panel")).to_be_hidden()


@pytest.mark.parametrize("width", [1800, 1200])
def test_the_table_fills_its_column_beside_a_panel(width: int, gateway: Served, visit: Visit) -> None:
    data = [{"text": f"Shelf {number} has room", "tags": ["shelf"]} for number in range(200)]
    gateway.ask("entries.import", data=json.dumps(data))
    page = visit(gateway, "#/memories?tag=shelf", viewport={"width": width, "height": 700}).page
    expect(page.locator(".entries tr.space")).to_have_count(1)
    page.locator(".entries .row").first.click()
    expect(page.locator(".panel .statement")).to_be_visible()
    table = page.locator(".entries").bounding_box()
    assert table
    cells = [one.bounding_box() for one in page.locator("thead th").all() if one.is_visible()]
    used = sum(one["width"] for one in cells if one)
    assert used == pytest.approx(table["width"], abs=2)


def test_tags_take_no_room_from_a_statement(gateway: Served, visit: Visit) -> None:
    tags = [f"a-long-name-of-a-tag-{number}" for number in range(5)]
    text = "The spare key of the summer house hangs behind the meter"
    gateway.ask("entries.add", text=text, tags=tags)
    page = visit(gateway, "#/memories?tag=a-long-name-of-a-tag-0").page
    row = page.locator(".entries .row").first
    expect(row).to_have_text(text)
    assert row.evaluate("(one) => one.scrollHeight <= one.clientHeight + 1")
    assert right_of(page, ".entries .row") == pytest.approx(right_of(page, ".statement-line"), abs=1)
