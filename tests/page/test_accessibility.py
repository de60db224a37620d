"""Every view, in both themes, judged by axe: nothing serious may be found."""

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
    "map",
    "health",
)


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: `make integration` fetches it")
    return AXE.read_text("utf-8")


def serious(page: Page, axe: str) -> list[tuple[str, str]]:
    """What axe finds grave, and where."""
    page.evaluate(axe)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    grave = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [(one["id"], node["html"][:160]) for one in grave for node in one["nodes"]]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_nothing_serious_is_found_in_a_view(
    view: str, theme: str, axe: str, gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, f"#/{view}", color_scheme=theme, reduced_motion="reduce").page
    expect(page.locator("main .loading")).to_have_count(0)
    assert serious(page, axe) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_is_found_in_panels_and_dialogs(
    theme: str, axe: str, gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, "#/memories", color_scheme=theme, reduced_motion="reduce").page
    page.locator(".entries .row").first.click()
    expect(page.locator(".panel .history")).to_be_visible()
    assert serious(page, axe) == []
    page.locator("[data-do=edit]").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert serious(page, axe) == []
    page.keyboard.press("Escape")
    page.locator("[data-do=forget]").click()
    expect(page.get_by_role("button", name="Erase it for good")).to_be_visible()
    assert serious(page, axe) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Forget …").click()
    page.get_by_label("What should be forgotten?").fill("the server")
    page.get_by_role("button", name="Show what would go").click()
    expect(page.get_by_role("dialog").get_by_role("checkbox").first).to_be_visible()
    assert serious(page, axe) == []
    page.keyboard.press("Escape")
    page.goto(f"{gateway.address}/#/recalls")
    page.locator(".recall-line").first.click()
    expect(page.locator(".considered").first).to_be_visible()
    assert serious(page, axe) == []


def test_nothing_serious_is_found_on_the_first_visit(axe: str, empty_gateway: Served, visit: Visit) -> None:
    page = visit(empty_gateway, reduced_motion="reduce").page
    expect(page.locator(".steps")).to_be_visible()
    assert serious(page, axe) == []
