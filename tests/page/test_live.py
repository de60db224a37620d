"""The page shows changes live: a changed file, a new memory, a recall, a sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from conftest import Visit

pytestmark = pytest.mark.integration

#: The watcher waits until a note stops changing, and a busy machine takes longer.
UPDATE_TIMEOUT_MS = 60_000


#: Counts the bars that appear.
BARS_SEEN = """() => {
  window.barsSeen = 0;
  const isBar = (node) => node.classList?.contains("work-bar");
  const seen = (records) => records.flatMap((one) => [...one.addedNodes]).filter(isBar).length;
  new MutationObserver((records) => (window.barsSeen += seen(records))).observe(document.querySelector(".sync-work"), {
    childList: true,
  });
}"""


def test_a_note_that_changes_on_disk_is_shown_and_found(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes/memory/projects/launch.md").page
    expect(page.locator(".pulse")).to_have_text("Live")
    gateway.write("memory/projects/launch.md", "# Launch list\n\nPostponed to the ides of March.\n")
    expect(page.locator(".prose")).to_contain_text("ides of March", timeout=UPDATE_TIMEOUT_MS)
    gateway.write("memory/projects/harvest.md", "# Harvest\n\nQuinces are ripe in October.\n")
    expect(page.locator(".tree")).to_contain_text("harvest.md", timeout=UPDATE_TIMEOUT_MS)


def test_open_search_results_include_a_new_note(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search?q=zeppelin mooring mast").page
    expect(page.locator(".pulse")).to_have_text("Live")
    expect(page.locator("mark", has_text="zeppelin")).to_have_count(0)
    gateway.write("memory/2026-03-01.md", "# 2026-03-01\n\n- The zeppelin mooring mast was painted red.\n")
    expect(page.locator("mark", has_text="zeppelin").first).to_be_visible(timeout=UPDATE_TIMEOUT_MS)


def test_memories_and_recalls_of_other_clients_appear_in_the_lists(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".pulse")).to_have_text("Live")
    count = page.locator("[data-view=memories] .nav-count")
    expect(count).not_to_be_empty()
    before = int(count.inner_text())
    gateway.ask("entries.add", text="The greenhouse is heated from November on")
    expect(page.locator(".entries")).to_contain_text("greenhouse is heated", timeout=UPDATE_TIMEOUT_MS)
    expect(count).to_have_text(str(before + 1))
    page.locator("nav [data-view=recalls]").click()
    expect(page.locator(".recall-line").first).to_be_visible()
    gateway.ask("recall", query="since when is the greenhouse heated?")
    expect(page.locator(".recall-line").first).to_contain_text(
        "since when is the greenhouse", timeout=UPDATE_TIMEOUT_MS
    )


def test_a_change_between_the_first_list_and_the_live_connection_is_shown(
    gateway: Served, visit: Visit
) -> None:
    watched = visit(gateway, "#/health")
    page = watched.page
    expect(page.locator(".pulse")).to_have_text("Live")
    held = watched.hold("**/v1/events?**")
    page.goto("about:blank")
    page.goto(f"{gateway.address}/#/memories")
    expect(page.locator(".entries tr[data-id]").first).to_be_visible()
    held.wait_for()
    gateway.ask("entries.add", text="The sundial of the garden is ten minutes slow")
    held.release()
    expect(page.locator(".pulse")).to_have_text("Live")
    expect(page.locator(".entries")).to_contain_text("sundial", timeout=UPDATE_TIMEOUT_MS)


def test_the_progress_of_a_sync_is_shown(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health").page
    expect(page.locator(".pulse")).to_have_text("Live")
    page.evaluate(BARS_SEEN)  # a bar may be gone before the next look at the page
    for number in range(120):  # the watcher may sync first; its progress is shown as well
        text = "\n\n".join(f"Paragraph {number}.{part} about jars, lids and labels." for part in range(40))
        gateway.write(f"memory/stock/{number:03}.md", f"# Stock {number}\n\n{text}\n")
    page.get_by_role("button", name="Sync now").click()
    page.wait_for_function("() => window.barsSeen > 0", timeout=300_000)
    expect(page.locator(".said")).to_contain_text("Synced", timeout=500_000)
    expect(page.locator(".sync-work")).to_be_empty()


def test_a_sync_that_takes_longer_than_a_request_continues(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/memories")
    page = watched.page
    expect(page.locator(".pulse")).to_have_text("Live")
    held = watched.hold("**/v1/events?**")  # the end of another sync would remove the message
    page.goto("about:blank")
    page.goto(f"{gateway.address}/#/health")
    late = {"error": "This took longer than 60 s.", "code": "timeout"}
    page.route("**/memory.sync", lambda route: route.fulfill(status=504, json=late))
    page.get_by_role("button", name="Sync now").click()
    expect(page.locator(".sync-work")).to_contain_text("continues in the background")
    held.release()
    expect(page.locator(".pulse")).to_have_text("Live")
    gateway.ask("memory.sync")
    expect(page.locator(".said")).to_contain_text("Synced")
    expect(page.locator(".sync-work")).to_be_empty()
