"""Typed text is never lost, and a conflict with another client is resolved by the reader."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

    from conftest import Visit

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without vectors."""
    with served(tmp_path_factory.mktemp("gateway"), {"embedding": {"provider": "none"}}) as running:
        yield running


def learned(gateway: Served, text: str, **more: object) -> str:
    return str(gateway.ask("entries.add", text=text, **more)["entry"]["id"])


def entry_of(gateway: Served, entry: str) -> tuple[str, list[str]]:
    """Return the text and the tags of an entry."""
    found = gateway.ask("entries.get", id=entry)["entry"]
    return found["text"], found["tags"]


def edit(page: Page) -> Locator:
    """Open the dialog that edits the open memory, and return its statement."""
    page.locator(".panel [data-do=edit]").click()
    return page.get_by_role("dialog").get_by_label("Statement")


def test_a_draft_survives_escape_a_click_outside_and_a_reload(gateway: Served, visit: Visit) -> None:
    entry = learned(gateway, "The well has a wooden lid")
    page = visit(gateway, f"#/memories/{entry}").page
    edit(page).fill("The well has an iron lid")
    page.keyboard.press("Escape")
    expect(page.locator(".said")).to_contain_text("What you typed is kept")
    statement = edit(page)
    expect(statement).to_have_value("The well has an iron lid")
    statement.fill("The well has a heavy iron lid")
    page.mouse.click(5, 5)
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.reload()
    statement = edit(page)
    expect(statement).to_have_value("The well has a heavy iron lid")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.locator(".panel .statement")).to_have_text("The well has a heavy iron lid")
    statement = edit(page)
    expect(page.get_by_role("dialog").get_by_role("button", name="Discard")).to_have_count(0)
    statement.fill("The well has no lid")
    page.keyboard.press("Escape")
    edit(page)
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(page.get_by_role("dialog").get_by_label("Statement")).to_have_value(
        "The well has a heavy iron lid"
    )
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("Object.keys(localStorage).filter((name) => name.includes('draft'))") == []


def test_a_draft_survives_an_ended_session_and_the_new_link_opens_the_same_place(
    gateway: Served, visit: Visit
) -> None:
    entry = learned(gateway, "The gate squeaks")
    page = visit(gateway, f"#/memories/{entry}").page
    edit(page).fill("The gate squeaks in the rain")
    page.context.clear_cookies()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".ended")).to_contain_text("What you typed is kept in this browser")
    page.goto(gateway.new_link())
    expect(edit(page)).to_have_value("The gate squeaks in the rain")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".panel .statement")).to_have_text("The gate squeaks in the rain")


def test_a_new_memory_is_a_draft_until_it_is_saved(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    page.get_by_role("button", name="New memory").first.click()
    page.get_by_role("dialog").get_by_label("Statement").fill("Half a sentence about the")
    page.get_by_role("dialog").locator(".star").nth(4).click()
    page.reload()
    page.get_by_role("button", name="New memory").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Statement")).to_have_value("Half a sentence about the")
    expect(dialog.locator(".star input").nth(4)).to_be_checked()


def test_forgetting_a_memory_deletes_its_draft(gateway: Served, visit: Visit) -> None:
    entry = learned(gateway, "The safe opens with the year of the flood")
    page = visit(gateway, f"#/memories/{entry}").page
    edit(page).fill("The safe opens with 1755")
    page.keyboard.press("Escape")
    page.locator(".panel [data-do=forget]").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget", exact=True).click()
    expect(page.locator(".receipt")).to_be_visible()
    assert page.evaluate("JSON.stringify(localStorage)").count("1755") == 0


def test_changes_of_different_fields_are_joined(gateway: Served, visit: Visit) -> None:
    entry = learned(gateway, "The barn has two doors", tags=["barn"])
    page = visit(gateway, f"#/memories/{entry}").page
    edit(page).fill("The barn has three doors")
    gateway.ask("entries.edit", id=entry, tags=["barn", "doors"])
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".panel .statement")).to_have_text("The barn has three doors")
    assert entry_of(gateway, entry) == ("The barn has three doors", ["barn", "doors"])


@pytest.mark.parametrize(
    ("choice", "kept"),
    [
        ("Keep theirs", "The mill stands still"),
        ("Use mine", "The mill turns at night"),
        ("Edit both", "The mill stands still\nThe mill turns at night"),
    ],
)
def test_a_conflict_shows_both_versions_and_the_reader_decides(
    choice: str, kept: str, gateway: Served, visit: Visit
) -> None:
    entry = learned(gateway, f"The mill turns in the wind, {choice}")
    page = visit(gateway, f"#/memories/{entry}").page
    statement = edit(page)
    gateway.ask("entries.edit", id=entry, text="The mill stands still")
    expect(page.locator(".panel .statement")).to_have_text("The mill stands still")  # behind the dialog
    statement.fill("The mill turns at night")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator("[data-version=theirs] ins").first).to_contain_text("stands")
    expect(dialog.locator("[data-version=mine]")).to_contain_text("night")
    expect(dialog).not_to_contain_text(entry)
    dialog.get_by_role("button", name=choice).click()
    if choice == "Edit both":
        expect(statement).to_have_value(kept)
        dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(page.locator(".panel .statement")).to_have_text(kept)
    assert entry_of(gateway, entry)[0] == kept
    page.locator(".panel [data-do=undo]").click()
    before = f"The mill turns in the wind, {choice}" if choice == "Keep theirs" else "The mill stands still"
    expect(page.locator(".panel .statement")).to_have_text(before)
    gateway.ask("entries.erase", id=entry)  # the next version of this test may say the same again


def test_a_joined_version_that_was_saved_by_keyboard_leaves_no_draft_and_can_be_undone(
    gateway: Served, visit: Visit
) -> None:
    entry = learned(gateway, "The bridge is made of wood")
    page = visit(gateway, f"#/memories/{entry}").page
    statement = page.locator(".panel .statement")
    expect(statement).to_be_visible()
    page.keyboard.press("e")
    text = page.get_by_role("dialog").get_by_label("Statement")
    text.fill("The bridge is made of oak")
    gateway.ask("entries.edit", id=entry, text="The bridge is closed")
    expect(statement).to_have_text("The bridge is closed")  # the button that had the focus is another one now
    page.keyboard.press("Control+Enter")
    page.get_by_role("dialog").get_by_role("button", name="Edit both").click()
    page.keyboard.press("End")
    page.keyboard.type(" and iron")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".said")).to_contain_text("Saved.")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("Object.keys(localStorage).filter((name) => name.includes('draft'))") == []
    page.keyboard.press("u")
    expect(statement).to_have_text("The bridge is closed")


def test_a_draft_from_before_a_change_becomes_a_conflict(gateway: Served, visit: Visit) -> None:
    entry = learned(gateway, "The bell rings at noon")
    page = visit(gateway, f"#/memories/{entry}").page
    edit(page).fill("The bell rings at noon and at six")
    page.keyboard.press("Escape")
    gateway.ask("entries.edit", id=entry, text="The bell is silent")
    expect(page.locator(".panel .statement")).to_have_text("The bell is silent")
    expect(edit(page)).to_have_value("The bell rings at noon and at six")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-version=theirs]")).to_contain_text("silent")
    assert entry_of(gateway, entry)[0] == "The bell is silent"


def test_a_memory_that_changed_is_superseded_after_its_new_text_was_shown(
    gateway: Served, visit: Visit
) -> None:
    entry = learned(gateway, "The cart has four wheels")
    page = visit(gateway, f"#/memories/{entry}").page
    page.locator(".panel [data-do=supersede]").click()
    gateway.ask("entries.edit", id=entry, text="The cart has three wheels")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What is true now").fill("The cart was sold")
    dialog.get_by_role("button", name="Supersede").click()
    expect(dialog.get_by_role("alert").first).to_contain_text("The cart has three wheels")
    dialog.get_by_role("button", name="Supersede").click()
    expect(page.locator(".panel .statement")).to_have_text("The cart was sold")


def test_a_draft_and_the_session_survive_a_restarted_gateway(tmp_path: Path, visit: Visit) -> None:
    settings = {"embedding": {"provider": "none"}}
    with served(tmp_path, settings) as first:
        entry = learned(first, "The lamp burns oil")
        page = visit(first, f"#/memories/{entry}").page
        edit(page).fill("The lamp burns gas")
        port = int(first.address.rsplit(":", 1)[1])
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("dialog").get_by_role("alert").first).to_contain_text("does not answer")
    with served(tmp_path, settings, port) as second:
        page.goto(f"{second.address}/#/memories/{entry}")
        page.reload()
        expect(edit(page)).to_have_value("The lamp burns gas")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".panel .statement")).to_have_text("The lamp burns gas")
