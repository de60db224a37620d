"""Changes on the page: each change is in the history and can be undone, except forgetting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from conftest import Visit

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without vectors, where entries of agents wait for approval."""
    settings = {"embedding": {"provider": "none"}, "entries": {"approval": "agent"}}
    with served(tmp_path_factory.mktemp("gateway"), settings) as running:
        yield running


def learned(gateway: Served, text: str, **more: object) -> str:
    """Add a statement and return its id."""
    return str(gateway.ask("entries.add", text=text, **more)["entry"]["id"])


def text_of(gateway: Served, entry: str) -> str:
    return str(gateway.ask("entries.get", id=entry)["entry"]["text"])


def press(page: Page, name: str) -> None:
    page.locator(".panel-bar").get_by_role("button", name=name, exact=True).click()


def test_a_memory_is_added_on_the_page(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    page.get_by_role("button", name="New memory").first.click()  # an empty list offers it a second time
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Statement").fill("The spare key hangs behind the meter")
    dialog.get_by_label("Type").select_option("fact")
    dialog.locator(".star").nth(3).click()
    dialog.get_by_label("Tags").fill("home, keys")
    dialog.get_by_role("button", name="Remember").click()
    expect(page.locator(".panel .statement")).to_have_text("The spare key hangs behind the meter")
    (kept,) = gateway.ask("entries.list", query="spare key meter")["entries"]
    assert (kept["type"], kept["importance"], kept["tags"], kept["trust"]) == (
        "fact",
        4,
        ["home", "keys"],
        "owner",
    )


def test_an_edit_shows_in_the_history_word_by_word_and_can_be_undone(gateway: Served, visit: Visit) -> None:
    entry = learned(gateway, "The workshop opens at nine on weekdays", importance=3.8)
    page = visit(gateway, f"#/memories/{entry}").page
    press(page, "Edit")
    page.get_by_role("dialog").get_by_label("Statement").fill("The workshop opens at ten on weekdays")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.locator(".panel .statement")).to_have_text("The workshop opens at ten on weekdays")
    expect(page.locator(".diff del")).to_have_text("nine")
    expect(page.locator(".diff ins")).to_have_text("ten")
    assert gateway.ask("entries.get", id=entry)["entry"]["importance"] == 3.8
    press(page, "Undo")
    expect(page.locator(".panel .statement")).to_have_text("The workshop opens at nine on weekdays")
    assert text_of(gateway, entry) == "The workshop opens at nine on weekdays"


def test_an_edit_of_a_memory_that_changed_in_the_meantime_is_rejected(gateway: Served, visit: Visit) -> None:
    entry = learned(gateway, "The cellar has a dehumidifier that needs emptying")
    page = visit(gateway, f"#/memories/{entry}").page
    press(page, "Edit")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    gateway.ask("entries.edit", id=entry, text="The cellar has two dehumidifiers that need emptying")
    dialog.get_by_label("Statement").fill("The cellar is dry")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    assert text_of(gateway, entry) == "The cellar has two dehumidifiers that need emptying"


def test_the_offered_undo_does_not_undo_a_change_of_another_client(gateway: Served, visit: Visit) -> None:
    entry = learned(gateway, "The ladder leans on the north wall")
    page = visit(gateway, f"#/memories/{entry}").page
    press(page, "Edit")
    page.get_by_role("dialog").get_by_label("Statement").fill("The ladder leans on the south wall")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    undo = page.locator(".said").get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    gateway.ask("entries.edit", id=entry, text="The ladder lies in the shed")
    undo.click()
    expect(page.locator(".said")).to_contain_text("Something was changed in the meantime")
    assert text_of(gateway, entry) == "The ladder lies in the shed"


def test_the_offered_undo_restores_superseded_and_merged_memories(gateway: Served, visit: Visit) -> None:
    pair = [learned(gateway, "The sledge is in the attic"), learned(gateway, "Skis stand behind the door")]
    page = visit(gateway, f"#/memories/{pair[0]}").page
    press(page, "Supersede")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What is true now").fill("The sledge was given away")
    dialog.get_by_role("button", name="Supersede").click()
    page.locator(".said").get_by_role("button", name="Undo").click()
    expect(page.locator(".said")).to_contain_text("undone")
    for entry in pair:
        page.locator(f"tr[data-id='{entry}'] input[type=checkbox]").check()
    page.locator(".several").get_by_role("button", name="Merge").click()
    dialog.get_by_label("The merged statement").fill("Things for the snow")
    dialog.get_by_role("button", name="Merge").click()
    undo = page.locator(".said").get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    (made,) = gateway.ask("entries.list", query="Things for the snow")["entries"]
    gateway.ask("entries.edit", id=made["id"], text="Things for the snow and the ice")
    undo.click()
    expect(page.locator(".said")).to_contain_text("Something was changed in the meantime")
    assert text_of(gateway, made["id"]) == "Things for the snow and the ice"


@pytest.mark.parametrize("selected", ["before", "after"])
def test_selected_memories_are_used_as_they_are_now(selected: str, gateway: Served, visit: Visit) -> None:
    pair = [learned(gateway, f"The {name} of {selected} is red") for name in ("boat", "cart")]
    page = visit(gateway, "#/memories").page
    expect(page.locator(".pulse")).to_have_text("Live")
    ticks = [page.locator(f"tr[data-id='{entry}'] input[type=checkbox]") for entry in pair]
    for tick in ticks:
        tick.set_checked(selected == "before")
    for colour in ("blue", "red"):  # the same text again, but a newer version
        gateway.ask("entries.edit", id=pair[0], text=f"The boat of {selected} is {colour}")
    last = learned(gateway, f"The list is new, {selected}")
    expect(page.locator(f"tr[data-id='{last}']")).to_be_visible()
    for tick in ticks:
        tick.check()
    page.locator(".several").get_by_role("button", name="Merge").click()
    page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    expect(page.locator(".said")).to_contain_text("Merged")
    assert {gateway.ask("entries.get", id=entry)["entry"]["state"] for entry in pair} == {"superseded"}


def test_a_superseded_memory_links_to_the_new_one_and_back(gateway: Served, visit: Visit) -> None:
    old = learned(gateway, "The car is parked in the garage of Rua Augusta")
    page = visit(gateway, f"#/memories/{old}").page
    press(page, "Supersede")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What is true now").fill("The car is parked at the station")
    dialog.get_by_role("button", name="Supersede").click()
    expect(page.locator(".panel .statement")).to_have_text("The car is parked at the station")
    page.locator(".panel .entry-line", has_text="Rua Augusta").click()
    expect(page.locator(".panel .label[data-kind=state]")).to_have_text("Superseded")
    page.get_by_role("link", name="the newer memory").click()
    expect(page.locator(".panel .statement")).to_have_text("The car is parked at the station")
    press(page, "Undo")
    expect(page.locator(".panel .statement")).to_have_text("The car is parked in the garage of Rua Augusta")
    assert gateway.ask("entries.get", id=old)["entry"]["state"] == "active"


def test_two_memories_are_merged_into_one(gateway: Served, visit: Visit) -> None:
    first = learned(gateway, "Violin lessons are on Monday evenings")
    second = learned(gateway, "The teacher for the violin is called Inês")
    page = visit(gateway, "#/memories?q=violin").page
    for entry in (first, second):
        page.locator(f"tr[data-id='{entry}'] input[type=checkbox]").check()
    page.locator(".several").get_by_role("button", name="Merge").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("The merged statement").fill("Violin lessons with Inês are on Monday evenings")
    dialog.get_by_role("button", name="Merge").click()
    expect(page.locator(".panel .statement")).to_have_text("Violin lessons with Inês are on Monday evenings")
    states = {gateway.ask("entries.get", id=entry)["entry"]["state"] for entry in (first, second)}
    assert states == {"superseded"}


def test_forgetting_shows_a_preview_and_then_a_receipt(gateway: Served, visit: Visit) -> None:
    entry = learned(gateway, "The alarm code is the year of the flood")
    page = visit(gateway, f"#/memories/{entry}").page
    press(page, "Forget")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Erase now …").click()
    expect(dialog).to_contain_text("Nothing has been erased yet")
    expect(dialog.get_by_role("heading", name="Not erased")).to_be_visible()
    assert text_of(gateway, entry) == "The alarm code is the year of the flood"
    dialog.get_by_role("button", name="Erase permanently").click()
    expect(dialog.locator(".receipt")).to_contain_text("Receipt: 1 memory erased")
    expect(dialog.locator(".receipt .covered li").first).to_be_visible()
    dialog.locator(".receipt").get_by_role("button", name="Close").click()
    expect(page.locator(".entries")).not_to_contain_text("alarm code")
    assert gateway.ask("entries.list", query="alarm code flood", states=[])["entries"] == []


def test_forgetting_can_be_cancelled(gateway: Served, visit: Visit) -> None:
    entry = learned(gateway, "The boiler was serviced in September")
    page = visit(gateway, f"#/memories/{entry}").page
    press(page, "Forget")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert text_of(gateway, entry) == "The boiler was serviced in September"


def test_memories_of_an_agent_wait_for_approval(gateway: Served, visit: Visit) -> None:
    for text in ("The user's dog is called Bolacha", "The user wants all prices in dollars"):
        gateway.ask("memory_store", text=text)
    page = visit(gateway, "#/memories?state=staged").page
    rows = page.locator(".entries tbody tr")
    expect(rows).to_have_count(2)
    expect(page.locator(".nav-count b")).to_have_text("2")
    rows.filter(has_text="Bolacha").locator(".row").click()
    press(page, "Approve")
    expect(rows).to_have_count(1)
    rows.filter(has_text="dollars").locator("input[type=checkbox]").check()
    page.locator(".several").get_by_role("button", name="Reject").click()
    expect(page.get_by_text("No memories match these filters.")).to_be_visible()
    states = {
        entry["text"]: entry["state"]
        for entry in gateway.ask("entries.list", states=[], limit=500)["entries"]
    }
    assert states["The user's dog is called Bolacha"] == "active"
    assert states["The user wants all prices in dollars"] == "rejected"
    page.keyboard.press("u")  # runs the offered undo
    expect(rows.filter(has_text="dollars")).to_have_count(1)
    expect(page.locator(".said")).to_contain_text("Undone")
