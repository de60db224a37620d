"""A page for a thing: gathered, corrected and forgotten in all its places; and where a sentence came from."""

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
    """A gateway without vectors that knows a cat."""
    with served(tmp_path_factory.mktemp("gateway"), {"embedding": {"provider": "none"}}) as running:
        running.write("memory/cat.md", "# Cat\n\n- Doubao eats at seven\n- The vet is in Porto\n")
        running.session("talk", ("user", "Doubao sleeps on the desk"), ("assistant", "Good to know."))
        running.ask("memory.sync")
        running.ask("entries.add", text="Doubao (豆包) is a grey cat")
        running.ask("entries.add", text="豆包不吃鸡肉")
        running.ask("recall", query="豆包不吃鸡肉")
        yield running


def test_a_thing_has_a_page_and_is_corrected_and_forgotten_everywhere(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/about").page
    page.locator(".thing", has_text="Doubao").click()
    parts = page.locator(".about [data-section]")
    expect(page.locator(".about h2")).to_have_text("Doubao / 豆包")
    expect(parts.locator("h3")).to_have_text(
        ["2 memories", "1 line of a note", "1 line of a conversation", "1 recall", "2 changes"]
    )
    page.locator("[data-do=correct]").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".places li")).to_have_count(4)
    dialog.get_by_label("Right words").fill("Dudu")
    expect(dialog.locator(".places textarea").nth(2)).to_have_value("- Dudu eats at seven")
    page.keyboard.press("Control+Enter")
    expect(dialog.locator(".receipt")).to_contain_text("3 places were corrected.")
    dialog.get_by_role("button", name="Close").last.click()
    assert "Dudu eats at seven" in (gateway.workspace / "memory/cat.md").read_text("utf-8")
    page.keyboard.press("u")
    expect(page.locator(".said")).to_contain_text("All of it was undone.")
    assert "Doubao eats at seven" in (gateway.workspace / "memory/cat.md").read_text("utf-8")
    page.locator("[data-do=forget]").click()
    expect(dialog.locator(".places li")).to_have_count(4)
    dialog.get_by_role("button", name="Forget everywhere").click()
    expect(dialog.locator(".receipt")).to_contain_text("4 places were forgotten.")
    expect(dialog.locator(".receipt")).to_contain_text(
        "No memory, note or conversation mentions it any more."
    )
    dialog.get_by_role("button", name="Close").last.click()
    assert "Doubao" not in (gateway.workspace / "memory/cat.md").read_text("utf-8")
    page.keyboard.press("u")
    expect(parts.locator("h3").first).to_have_text("2 memories")


def test_contradictions_are_on_top_and_one_of_them_is_kept(gateway: Served, visit: Visit) -> None:
    data = '["Jonas is allergic to nuts", "Jonas is not allergic to nuts"]'
    gateway.ask("entries.import", data=data)
    page = visit(gateway, "#/about/Jonas").page
    first = page.locator(".about [data-section]").first
    expect(first.locator("h3")).to_have_text("1 contradiction")
    first.locator(".side-by-side", has_text="is not allergic").get_by_role(
        "button", name="Keep this one"
    ).click()
    expect(page.locator(".about [data-section] h3").first).to_have_text("1 memory")
    states = {one["text"]: one["state"] for one in gateway.ask("entries.list", states=[])["entries"]}
    assert (states["Jonas is allergic to nuts"], states["Jonas is not allergic to nuts"]) == (
        "rejected",
        "active",
    )


def test_a_sentence_of_the_agent_leads_to_its_source_and_is_corrected(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/recalls").page
    page.locator("[data-do=why]").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What the agent said").fill("豆包不能吃鸡肉")
    page.keyboard.press("Control+Enter")
    expect(dialog.locator(".then").first).to_have_text("豆包不吃鸡肉")
    dialog.locator("[data-do=correct]").first.click()
    dialog.get_by_label("Statement").fill("豆包可以吃鸡肉")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".said")).to_contain_text("Saved.")
    assert "豆包可以吃鸡肉" in [one["text"] for one in gateway.ask("entries.list")["entries"]]


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_the_owner_joins_two_names_of_one_thing_and_undoes_it(
    gateway: Served, visit: Visit, locale: str
) -> None:
    gateway.ask("entries.add", text="My cat Pico sleeps at noon")
    gateway.ask("entries.add", text="皮可不喜欢下雨")
    page = visit(gateway, "#/about/Pico", locale=locale).page
    title = page.locator(".about h2")
    expect(title).to_have_text("Pico")
    page.locator("[data-do=join]").click()
    page.get_by_role("dialog").get_by_role("combobox").fill("皮可")
    page.keyboard.press("Control+Enter")
    expect(title).to_have_text("Pico / 皮可")
    expect(page.locator("[data-section='about.entries']")).to_contain_text("皮可不喜欢下雨")
    page.keyboard.press("u")
    expect(title).to_have_text("Pico")
    expect(page.locator("[data-section='about.entries']")).not_to_contain_text("皮可不喜欢下雨")
