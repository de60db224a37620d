"""The map: names of regions, colours, a selection in the address, and little work for each move of the pointer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from large import map_of
from measuring import cpu_seconds
from serving import Served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from conftest import Visit

pytestmark = pytest.mark.integration

POINTS = 50_000
#: CPU time of one move of the pointer, and of one step of zooming, over 50,000 points.
MAX_MOVE_S, MAX_ZOOM_S = 0.012, 0.100
#: Returns the colours on the canvas.
COLOURS = """() => {
  const canvas = document.querySelector("canvas.map");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""
#: Moves the pointer over the map and waits for a frame after each move.
MOVES = """async (count) => {
  const canvas = document.querySelector("canvas.map");
  const { left, top, width, height } = canvas.getBoundingClientRect();
  for (let step = 0; step < count; step++) {
    const at = { clientX: left + (width * step) / count, clientY: top + (height * step) / count, bubbles: true };
    canvas.dispatchEvent(new PointerEvent("pointermove", { ...at, pointerId: 1 }));
    await new Promise(requestAnimationFrame);
  }
}"""
ZOOMS = """async (count) => {
  for (let step = 0; step < count; step++) {
    document.querySelector("[aria-label='Zoom in']").click();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  }
}"""
#: Zooms once, and returns the transforms of the picture in the frames until it is drawn again.
ZOOM_ONCE = """async () => {
  const canvas = document.querySelector("canvas.map");
  const seen = [];
  document.querySelector("[aria-label='Zoom in']").click();
  do {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    seen.push(canvas.style.transform);
  } while (seen.at(-1));
  return seen;
}"""


def show_many(page: Page, count: int) -> None:
    """Show a map of many points."""
    answer = map_of(count)
    page.route("**/map.get", lambda route: route.fulfill(body=answer, content_type="application/json"))
    page.locator("nav [data-view=map]").click()
    expect(page.locator(".map-list .summary")).to_have_text(f"{count:,} memories")


def cost(page: Page, script: str, count: int) -> float:
    """Return the CPU seconds of one step of a script."""
    with cpu_seconds(page) as worked:
        page.evaluate(script, count)
        return worked() / count


def test_fifty_thousand_points_stay_smooth(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health").page
    show_many(page, POINTS)
    page.wait_for_function(f"() => ({COLOURS})() > 5")
    page.evaluate(MOVES, 10)  # compiles the scripts
    # The best of several rounds, since other programs on the same core slow down the others.
    assert min(cost(page, MOVES, 20) for _ in range(5)) < MAX_MOVE_S
    assert min(cost(page, ZOOMS, 2) for _ in range(3)) < MAX_ZOOM_S


def test_the_picture_is_scaled_until_the_points_are_drawn_again(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health").page
    show_many(page, POINTS)
    page.wait_for_function(f"() => ({COLOURS})() > 5")
    first, *_, last = page.evaluate(ZOOM_ONCE)
    assert first.endswith("scale(1.4)")
    assert last == ""


def test_regions_have_names_from_their_texts(gateway: Served, visit: Visit) -> None:
    for number in range(8):
        gateway.ask(
            "entries.add", text=f"The ferry number {number} to the islands leaves the harbour at dawn"
        )
        gateway.ask("entries.add", text=f"每个月定投第{number}只指数基金，金额固定")
    known = [one["name"] for one in gateway.complete_map()["regions"]]
    page = visit(gateway, "#/map").page
    names = page.locator(".map-names span:not([hidden])")
    expect(names.first).to_be_visible()
    assert set(names.all_inner_texts()) <= set(known)
    assert any("ferry" in name or "harbour" in name or "islands" in name for name in known)


def test_colours_show_the_type_the_age_or_the_use(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/map", viewport={"width": 1280, "height": 900}).page
    legend = page.locator(".map-legend")
    expect(legend.get_by_role("button").first).to_be_in_viewport()
    page.get_by_label("Colour by").select_option("use")
    expect(legend).to_contain_text("never used")
    page.wait_for_url("**/#/map?colour=use")
    page.get_by_label("Colour by").select_option("age")
    expect(legend).to_contain_text("this month")
    page.reload()
    expect(page.get_by_label("Colour by")).to_have_value("age")
    expect(legend).to_contain_text("this month")


def test_the_selection_is_in_the_address(gateway: Served, visit: Visit) -> None:
    everything = len(gateway.complete_map()["points"])
    page = visit(gateway, "#/map").page
    lines = page.locator(".map-list .entry-line")
    expect(lines).to_have_count(everything)
    page.locator(".map-legend button[data-type=relationship]").click()
    page.get_by_role("button", name="Select").click()
    box = page.locator("canvas.map").bounding_box()
    assert box
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2, steps=4)
    page.mouse.up()
    page.wait_for_url("**/#/map?off=relationship&box=*")
    expect(lines).not_to_have_count(everything)
    selected = lines.count()
    lines.first.click()
    page.go_back()
    expect(lines).to_have_count(selected)
    page.reload()
    expect(lines).to_have_count(selected)
    expect(page.locator(".map-legend button[data-type=relationship]")).to_have_attribute(
        "aria-pressed", "false"
    )
    page.get_by_role("button", name="Clear").click()
    expect(lines).to_have_count(everything)
    assert page.url.endswith("#/map")
