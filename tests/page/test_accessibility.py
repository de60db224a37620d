"""axe finds no problem in any view, panel or dialog, in both themes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import Served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from conftest import Visit
    from playwright.sync_api import Page

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

AXE = Path(__file__).parents[2] / ".tools/axe/node_modules/axe-core/axe.min.js"
VIEWS = (
    "search",
    "search?q=server",
    "memories",
    "notes/memory/projects/launch.md",
    "recalls",
    "notes",
    "notes/sessions/2026-02-10-servers.jsonl",
    "map?colour=use",
    "health",
)


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: `make integration` fetches it")
    return AXE.read_text("utf-8")


def problems(page: Page, axe: str) -> list[tuple[str, str]]:
    """Return the problems that axe finds, and where. Best practices count."""
    page.evaluate(axe)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [(one["id"], node["html"][:160]) for one in found["violations"] for node in one["nodes"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_views_have_no_problems(view: str, theme: str, axe: str, gateway: Served, visit: Visit) -> None:
    page = visit(gateway, f"#/{view}", color_scheme=theme, reduced_motion="reduce").page
    expect(page.locator("main .loading")).to_have_count(0)
    assert problems(page, axe) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_panels_and_dialogs_have_no_problems(theme: str, axe: str, gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories", color_scheme=theme, reduced_motion="reduce").page
    page.locator(".entries .row").first.click()
    expect(page.locator(".panel .history")).to_be_visible()
    assert problems(page, axe) == []
    page.locator("[data-do=edit]").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.locator("[data-do=forget]").click()
    expect(page.get_by_role("button", name="Erase permanently")).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Forget …").click()
    page.get_by_label("What should be forgotten?").fill("the server")
    page.get_by_role("button", name="Show what would be erased").click()
    expect(page.get_by_role("dialog").get_by_role("checkbox").first).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New memory").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog").get_by_role("option").first).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Import …").click()
    expect(page.get_by_role("dialog").get_by_label("Choose files")).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.goto(f"{gateway.address}/#/recalls")
    page.locator(".recall-line").first.click()
    expect(page.locator(".considered").first).to_be_visible()
    assert problems(page, axe) == []


def test_the_first_visit_has_no_problems(axe: str, empty_gateway: Served, visit: Visit) -> None:
    page = visit(empty_gateway, reduced_motion="reduce").page
    expect(page.locator(".steps")).to_be_visible()
    assert problems(page, axe) == []
