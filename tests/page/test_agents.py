"""Several agents on one page: each has its own memory, and a list switches between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Visit

pytestmark = pytest.mark.integration


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Served]:
    """A gateway with two agents; the first is not called `main`."""
    (tmp_path / "studio").mkdir()
    agents = {"studio": str(tmp_path / "studio")}
    settings = {"agent": "home", "embedding": {"provider": "none"}, "gateway": {"agents": agents}}
    with served(tmp_path, settings) as running:
        running.ask("entries.add", "home", text="The cat is called Figo")
        running.ask("entries.add", "studio", text="The press needs new rollers")
        yield running


def test_the_list_switches_to_the_memory_of_another_agent_and_remembers_it(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway).page
    expect(page.get_by_text("The cat is called Figo").first).to_be_visible()
    page.get_by_label("Agent").select_option("studio")
    expect(page.get_by_text("The press needs new rollers").first).to_be_visible()
    expect(page.get_by_text("The cat is called Figo")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("The press needs new rollers").first).to_be_visible()
    expect(page.get_by_label("Agent")).to_have_value("studio")


def test_the_page_follows_only_the_events_of_the_shown_agent(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".pulse")).to_have_text("Live")
    expect(page.locator(".entries tbody tr")).to_have_count(1)
    gateway.ask("entries.add", "studio", text="Ink is ordered in the spring")
    gateway.ask("entries.add", "home", text="The cat sees the vet in May")
    expect(page.locator(".entries tbody tr")).to_have_count(2)
    expect(page.locator(".entries")).not_to_contain_text("Ink is ordered")


def test_the_agent_is_in_the_address_so_that_reloads_and_links_show_its_memory(
    gateway: Served, visit: Visit
) -> None:
    first = visit(gateway, "#/memories").page
    expect(first.locator(".entries tbody tr")).to_contain_text("Figo")
    second = first.context.new_page()
    second.goto(f"{gateway.address}/#/memories")
    second.get_by_label("Agent").select_option("studio")
    expect(second.locator(".entries tbody tr")).to_contain_text("rollers")
    assert second.url.endswith("#/memories?agent=studio")
    first.reload()
    expect(first.locator(".entries tbody tr")).to_contain_text("Figo")
    expect(first.get_by_label("Agent")).to_have_value("home")
    second.locator(".entries a.row").click()
    expect(second.locator(".panel .statement")).to_have_text("The press needs new rollers")
    first.goto(second.url)  # a link, in a tab with another agent
    expect(first.locator(".panel .statement")).to_have_text("The press needs new rollers")
    expect(first.get_by_label("Agent")).to_have_value("studio")
    first.go_back()
    expect(first.locator(".entries tbody tr")).to_contain_text("Figo")
    third = first.context.new_page()
    third.goto(f"{gateway.address}/#/memories?agent=nowhere")
    expect(third.locator(".said")).to_contain_text("There is no agent “nowhere” here.")
    expect(third.locator(".entries tbody tr")).to_contain_text("Figo")
    assert third.url.endswith("#/memories")
