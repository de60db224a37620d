"""The home view: the numbers of today, charts that can be read as tables, and memories by use."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Visit

pytestmark = pytest.mark.integration

DAY_S = 86_400.0
#: Hours from UTC to a zone in which it is noon, so that the day does not end during the tests.
NOON = 12 - time.gmtime().tm_hour
TODAY = {"timezone_id": f"Etc/GMT{-NOON:+d}"}  # the names of these zones have the opposite sign


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = {"entries": {"approval": "agent"}, "embedding": {"provider": "none"}}
    with served(tmp_path_factory.mktemp("home"), settings) as running:
        running.write("MEMORY.md", "# Facts\n\nThe harbour office opens at eight.\n")
        now = time.time()
        old = [
            {"text": f"House {number} has a blue door", "created_at": now - (3 + number) * DAY_S}
            for number in range(4)
        ]
        running.ask("entries.import", data=json.dumps(old))
        tea = running.ask("entries.add", text="I drink green tea", importance=5)["entry"]["id"]
        running.ask("entries.supersede", id=tea, text="I drink black tea")
        running.ask("memory_store", text="The agent says that the quay is long")
        running.ask("memory.sync")
        for question in ("Which tea do I drink?", "black tea?"):
            running.ask("recall", query=question)
        yield running


@pytest.mark.requirement("E7")
def test_the_day_is_summed_up_and_each_number_links_to_what_it_counts(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search", **TODAY).page
    tiles = page.locator(".tile")
    expect(tiles).to_have_count(5)
    counts = {one.get_attribute("data-name"): one.locator("b").inner_text() for one in tiles.all()}
    ahead = NOON * 3600
    day = gateway.ask("overview.get", until=((time.time() + ahead) // DAY_S + 1) * DAY_S - ahead)
    assert counts == {
        "learned": str(day["days"][-1]["captured"]),
        "recalled": "2",
        "superseded": "1",
        "waiting": "1",
        "errors": str(day["errors"]),
    }
    page.locator(".tile[data-name=recalled]").click()
    expect(page.locator(".recall-line")).to_have_count(2)
    page.go_back()
    page.locator(".tile[data-name=waiting]").click()
    expect(page.get_by_text("The agent says that the quay is long").first).to_be_visible()


def test_every_chart_can_be_read_as_a_table(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search", **TODAY).page
    charts = page.locator(".chart")
    expect(charts).to_have_count(3)
    growth, recalls, tokens = (charts.nth(number) for number in range(3))
    for one in (growth, recalls, tokens):
        one.locator("summary").click()
        expect(one.locator("tbody tr")).to_have_count(30)
    assert growth.locator("tbody tr td").all_inner_texts()[:5] == ["5", "4", "4", "4", "3"]
    row = recalls.locator("tbody tr").first.locator("td").all_inner_texts()
    assert row == ["2", "2"]
    spent = sum(one["tokens"] for one in gateway.ask("recalls.list")["recalls"])
    assert tokens.locator("tbody tr").first.locator("td").inner_text() == f"{spent:,}"
    expect(growth.locator("svg")).to_have_attribute("role", "img")


def test_memories_are_listed_by_use(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search", **TODAY).page
    recent = page.locator(".home-lists .recent")
    expect(recent.locator("h2")).to_have_text(["Since yesterday", "Most used", "Never used"])
    expect(recent.nth(1).locator(".entry-line")).to_have_count(1)
    expect(recent.nth(1).locator(".uses")).to_have_text("2 times")
    expect(recent.nth(2).locator(".entry-line")).to_have_count(4)


def test_the_home_view_begins_with_the_day_and_says_each_change_once(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search", **TODAY).page
    expect(page.locator(".results > *").first).to_have_class("today")
    expect(page.locator(".results > *").last).to_have_class("holdings")
    happened = page.locator(".home-lists .recent").first
    expect(happened).to_contain_text("The agent says that the quay is long")
    expect(happened.locator(".entry-line").first).to_contain_text("by an agent")
    told = happened.locator("a.entry-line").evaluate_all("all => all.map((one) => one.hash)")
    recent = page.locator(".recent", has_text="Recently learned").locator("a.entry-line")
    assert not set(told) & set(recent.evaluate_all("all => all.map((one) => one.hash)"))


def test_a_note_that_was_deleted_yesterday_is_restored_from_the_home_view(
    gateway: Served, visit: Visit
) -> None:
    gateway.write("memory/people/ana.md", "# Ana\n\nLikes rain.\n")
    version = gateway.ask("notes.text", path="memory/people/ana.md")["version"]
    gateway.ask("notes.remove", path="memory/people/ana.md", version=version)
    (stamp,) = (gateway.home / "agents/main/deleted").iterdir()
    stamp.rename(stamp.with_name(str(int(stamp.name) - int(DAY_S * 1000))))
    page = visit(gateway, "#/search", **TODAY).page
    deleted = page.locator(".entry-line", has_text="memory/people/ana.md")
    expect(deleted).to_contain_text("Note deleted")
    deleted.locator("[data-do=restore]").click()
    expect(page.locator(".said").get_by_role("link")).to_have_text("memory/people/ana.md")
    expect(deleted).to_have_count(0)
    assert (gateway.workspace / "memory/people/ana.md").read_text("utf-8") == "# Ana\n\nLikes rain.\n"


def test_the_day_follows_what_happens(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search", **TODAY).page
    recalled = page.locator(".tile[data-name=recalled] b")
    before = int(recalled.inner_text())
    gateway.ask("recall", query="Which door is blue?")
    expect(recalled).to_have_text(str(before + 1))


SCALES = """async (values) => {
  const { topOf } = await import("/static/draw/scale.js");
  return values.map(topOf);
}"""


def test_one_busy_day_does_not_flatten_the_others(gateway: Served, visit: Visit) -> None:
    page = visit(gateway).page
    values = [[], [4, 5, 6], [1, 2, 3, 2, 1, 2, 3, 2, 1, 5000], [2, 900]]
    assert page.evaluate(SCALES, values) == [1, 6, 4.5, 3]
