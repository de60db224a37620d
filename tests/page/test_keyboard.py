"""The owner works without a mouse: each control is reached by Tab, shows that it has the focus, and works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

    from conftest import Visit

pytestmark = pytest.mark.integration

#: More stops than any view of these tests has.
MAX_STOPS = 120
HAS_RING = """(one) => {
  const style = getComputedStyle(one);
  return style.outlineStyle !== "none" || style.boxShadow !== "none";
}"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("keyboard"), {"embedding": {"provider": "none"}}) as running:
        running.write("memory/cat.md", "# Cat\n\n- Doubao eats at seven\n")
        running.ask("memory.sync")
        running.ask("entries.add", text="Doubao is a grey cat")
        running.ask("recall", query="Doubao is a grey cat", session="cat")
        yield running


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until the element has the focus. It must show that."""
    expect(wanted).to_be_visible()
    for _ in range(MAX_STOPS):
        page.keyboard.press("Tab")
        if wanted.evaluate("(one) => one === document.activeElement"):
            assert wanted.evaluate(HAS_RING)
            return
    raise AssertionError(f"Tab does not reach {wanted}")


def test_a_thing_is_found_and_corrected_everywhere(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search", live=False).page
    dialog = page.get_by_role("dialog")
    tab_to(page, page.locator("nav [data-view=about]"))
    page.keyboard.press("Enter")
    tab_to(page, page.locator(".thing", has_text="Doubao"))
    page.keyboard.press("Enter")
    tab_to(page, page.locator("[data-do=correct]"))
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Right words")).to_be_focused()
    page.keyboard.type("Dudu")
    page.keyboard.press("Control+Enter")
    expect(dialog.locator(".receipt")).to_be_visible()
    expect(dialog.get_by_role("button", name="Close").last).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("u")
    expect(page.locator(".said")).to_contain_text("undone")


def test_a_sentence_of_the_agent_is_explained(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/recalls", live=False).page
    dialog = page.get_by_role("dialog")
    tab_to(page, page.locator("[data-do=why]"))
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("textbox")).to_be_focused()
    page.keyboard.type("Your cat Doubao is grey")
    page.keyboard.press("Control+Enter")
    tab_to(page, dialog.locator("[data-do=correct]").first)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_view_that_loads_after_back_leaves_the_focus_to_the_reader_who_types(
    gateway: Served, visit: Visit
) -> None:
    watched = visit(gateway, "#/recalls", live=False)
    page = watched.page
    page.locator(".recall-line").first.click()
    page.locator(".panel .facts").get_by_role("link", name="cat").click()
    expect(page.locator(".panel .facts")).to_have_count(0)
    held = watched.hold("**/recalls.get")
    page.go_back()
    held.wait_for()
    words = page.locator("[data-filter=q]")
    words.fill("boats")
    held.release()
    expect(page.locator(".panel .facts")).to_be_visible()
    expect(words).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".recall-line")).to_have_count(0)


def test_a_token_is_made_and_a_backup_restored(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/operate", live=False).page
    dialog = page.get_by_role("dialog")
    tab_to(page, page.locator("[data-do=token]"))
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Name")).to_be_focused()
    page.keyboard.type("laptop")
    page.keyboard.press("Control+Enter")
    expect(dialog.locator("pre")).to_be_visible()
    expect(dialog.get_by_role("button", name="Close").last).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("[data-card=tokens] li")).to_contain_text(["laptop"])
    tab_to(page, page.locator("[data-do=backup]"))
    page.keyboard.press("Enter")
    tab_to(page, page.locator("[data-do=restore]").first)
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Restore", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_contain_text("The backup is restored")


def test_a_line_that_is_gone_leaves_the_focus_at_the_next_one(gateway: Served, visit: Visit) -> None:
    gateway.write("memory/ana.md", "# Ana\n")
    version = gateway.ask("notes.text", path="memory/ana.md")["version"]
    gateway.ask("notes.remove", path="memory/ana.md", version=version)
    entry = gateway.ask("entries.add", text="Tea at four")["entry"]["id"]
    gateway.ask("entries.edit", id=entry, text="Tea at five")
    page = visit(gateway, "#/changes", live=False).page
    undo = page.locator(".history [data-do=undo]").first
    tab_to(page, page.locator("[data-do=restore]"))
    page.keyboard.press("Enter")
    expect(page.locator("[data-section=deleted]")).to_have_count(0)
    expect(undo).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".history li").first).to_contain_text("Undone")
    expect(page.locator(".history :focus")).to_have_count(1)


def test_one_of_two_contradicting_memories_is_kept(gateway: Served, visit: Visit) -> None:
    gateway.ask("entries.import", data='["Jonas is allergic to nuts", "Jonas is not allergic to nuts"]')
    page = visit(gateway, "#/about/Jonas", live=False).page
    tab_to(page, page.locator("[data-do=keep]").first)
    page.keyboard.press("Enter")
    expect(page.locator("[data-do=keep]")).to_have_count(0)
    expect(page.locator("main")).to_be_focused()


def test_a_dialog_returns_the_focus_to_its_button_and_a_deleted_row_to_the_next(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, "#/operate", live=False).page
    dialog = page.get_by_role("dialog")
    for name in ("desk", "shelf"):
        tab_to(page, page.locator("[data-do=token]"))
        page.keyboard.press("Enter")
        page.keyboard.type(name)
        page.keyboard.press("Control+Enter")
        expect(dialog.locator("pre")).to_be_visible()
        page.keyboard.press("Enter")
        expect(page.locator("[data-do=token]")).to_be_focused()
    tokens = page.locator("[data-card=tokens]")
    desk = tokens.locator("li", has_text="desk")
    tab_to(page, desk.locator("[data-do=revoke]"))
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Revoke")).to_be_focused()
    page.keyboard.press("Enter")
    expect(desk).to_have_count(0)
    expect(tokens.locator(":focus")).to_have_count(1)


def test_a_ticked_task_keeps_the_focus(gateway: Served, visit: Visit) -> None:
    gateway.write("memory/tasks.md", "# Tasks\n\n- [ ] Oil the pump\n- [ ] Call the plumber\n")
    page = visit(gateway, "#/notes/memory/tasks.md", live=False).page
    task = page.get_by_role("checkbox", name="Call the plumber")
    tab_to(page, task)
    page.keyboard.press("Space")
    expect(page.locator(".said")).to_contain_text("Task done")
    expect(task).to_be_checked()
    expect(task).to_be_focused()
    page.keyboard.press("u")
    expect(task).not_to_be_checked()
    expect(task).to_be_focused()
