"""What changed, by day, with undo; and the letter of the week."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Visit

pytestmark = pytest.mark.integration


@pytest.fixture
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without vectors on which something has changed."""
    with served(tmp_path_factory.mktemp("gateway"), {"embedding": {"provider": "none"}}) as running:
        entry = running.ask("entries.add", text="Tea at four")["entry"]["id"]
        running.ask("entries.edit", id=entry, text="Tea at five")
        yield running


def test_a_change_is_found_by_day_and_undone_and_the_letter_tells_the_week(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway).page
    page.get_by_role("link", name="What changed").click()
    items = page.locator(".history li")
    expect(items).to_have_count(2)
    expect(items.first).to_contain_text("Edited by you")
    expect(items.first.locator("del")).to_have_text("four")
    items.first.locator("[data-do=undo]").click()
    expect(items).to_have_count(3)
    expect(page.locator(".said")).to_have_text("Undone: Edited")
    assert [one["text"] for one in gateway.ask("entries.list")["entries"]] == ["Tea at four"]
    page.locator("[data-filter=kind]").select_option("update")
    expect(items).to_have_count(1)
    page.locator("[data-value=letter]").click()
    expect(page.locator("[data-section=learned] li")).to_have_count(1)
    expect(page.locator("[data-section=learned]")).to_contain_text("Tea at four")
