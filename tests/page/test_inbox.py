"""Memories that wait for approval: decided one after another by keyboard, with the conversation beside them."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Visit

pytestmark = pytest.mark.integration

INBOX = "#/memories?state=staged"
TEXTS = ("The dog is called Bolacha", "Prices are in dollars", "The office has a green door", "Tea at four")


@pytest.fixture
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without vectors, where memories of agents wait for approval."""
    settings = {"embedding": {"provider": "none"}, "entries": {"approval": "agent"}}
    with served(tmp_path_factory.mktemp("gateway"), settings) as running:
        for text in TEXTS:
            running.ask("memory_store", text=text)
        yield running


def states(gateway: Served) -> dict[str, str]:
    return {one["text"]: one["state"] for one in gateway.ask("entries.list", states=[])["entries"]}


def test_waiting_memories_are_decided_by_keyboard_one_after_another(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, INBOX).page
    rows = page.locator(".entries tbody tr")
    expect(rows).to_have_count(4)
    expect(page).to_have_title("(4) Memories · memoriter")
    statement = page.locator(".panel .statement")
    rows.first.locator(".col-type").click()  # anywhere in the row
    expect(statement).to_have_text(TEXTS[3])  # the newest first
    page.keyboard.press("j")
    expect(statement).to_have_text(TEXTS[2])
    page.keyboard.press("k")
    expect(statement).to_have_text(TEXTS[3])
    page.keyboard.press("a")
    expect(statement).to_have_text(TEXTS[2])
    expect(rows).to_have_count(3)
    page.keyboard.press("r")
    expect(statement).to_have_text(TEXTS[1])
    page.keyboard.press("e")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Statement").fill("Prices are in euros")
    page.keyboard.press("Control+Enter")
    expect(statement).to_have_text(TEXTS[0])
    page.keyboard.press("a")
    expect(page.get_by_text("No memories match these filters.")).to_be_visible()
    expect(page).to_have_title("Memories · memoriter")
    assert states(gateway) == {
        TEXTS[0]: "active",
        "Prices are in euros": "active",
        TEXTS[2]: "rejected",
        TEXTS[3]: "active",
    }


def test_undo_takes_back_an_edit_together_with_its_approval_and_opens_the_memory_again(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, INBOX).page
    statement = page.locator(".panel .statement")
    page.locator(".entries tbody tr").first.locator(".col-type").click()
    expect(statement).to_have_text(TEXTS[3])
    page.keyboard.press("e")
    page.get_by_role("dialog").get_by_label("Statement").fill("Tea at five")
    page.keyboard.press("Control+Enter")
    expect(statement).to_have_text(TEXTS[2])
    expect(page.locator(".said")).to_contain_text("Approved: Tea at five")
    page.keyboard.press("u")
    expect(statement).to_have_text(TEXTS[3])
    expect(page.locator(".said")).to_contain_text("This waits for your approval again: Tea at four")
    page.keyboard.press("a")
    expect(statement).to_have_text(TEXTS[2])
    page.keyboard.press("u")
    expect(statement).to_have_text(TEXTS[3])
    assert states(gateway) == dict.fromkeys(TEXTS, "staged")


def test_the_conversation_is_shown_beside_a_waiting_memory(gateway: Served, visit: Visit) -> None:
    turns = [
        ("user", "What did we say about the ferry?"),
        ("assistant", "The ferry leaves at nine on Sundays."),
    ]
    gateway.session("ferry", *turns)
    stored = gateway.client.post(
        "/v1/agents/main/memory_store",
        json={"text": "The ferry leaves at nine on Sundays."},
        headers={"X-Memoriter-Session": "ferry"},
    ).json()
    assert "error" not in stored, stored
    entry = gateway.ask("entries.list", states=["staged"], limit=1)["entries"][0]
    assert (entry["text"], entry["session"]) == ("The ferry leaves at nine on Sundays.", "ferry")
    page = visit(gateway, f"#/memories/{entry['id']}?state=staged").page
    expect(page.locator(".conversation .turn")).to_have_count(2)
    expect(page.locator(".conversation .turn.lit")).to_contain_text("The ferry leaves at nine on Sundays.")


def test_rows_are_selected_with_x_and_sorted_by_their_headings(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, INBOX).page
    rows = page.locator(".entries tbody tr")
    expect(rows).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator(".several")).to_contain_text("1 selected")
    page.get_by_role("button", name="Importance").click()
    expect(page.locator("th.col-importance")).to_have_attribute("aria-sort", "descending")
    assert "sort=importance" in page.url


def test_waiting_notes_are_approved_edited_and_rejected(gateway: Served, visit: Visit) -> None:
    for title in ("Ferry", "Prices", "Door"):
        gateway.ask("memory_save", content=f"{title} notes of the agent", title=title, category="town")
    paths = [one["path"] for one in gateway.ask("notes.waiting")["notes"]]
    assert paths == ["memory/town/door.md", "memory/town/ferry.md", "memory/town/prices.md"]
    page = visit(gateway, INBOX).page
    expect(page).to_have_title("(7) Memories · memoriter")
    cards = page.locator(".waiting-note")
    expect(cards).to_have_count(3)
    expect(cards.first).to_contain_text("Door notes of the agent")
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(cards).to_have_count(2)
    expect(cards.first.locator(".row")).to_be_focused()
    expect(page).to_have_title("(6) Memories · memoriter")
    assert "pending" not in (gateway.workspace / paths[0]).read_text()
    page.keyboard.press("r")
    expect(cards).to_have_count(1)
    assert not (gateway.workspace / paths[1]).exists()
    page.keyboard.press("u")
    expect(cards).to_have_count(2)
    assert "Ferry notes" in (gateway.workspace / paths[1]).read_text()
    cards.first.get_by_role("button", name="Edit and approve").click()
    text = page.get_by_role("dialog").get_by_label("Text")
    text.fill(text.input_value().replace("of the agent", "of the harbour"))
    page.keyboard.press("Control+Enter")
    expect(cards).to_have_count(1)
    ferry = (gateway.workspace / paths[1]).read_text()
    assert ("pending" in ferry, "Ferry notes of the harbour" in ferry) == (False, True)
    assert [one["path"] for one in gateway.ask("notes.waiting")["notes"]] == [paths[2]]


def test_each_save_of_a_day_waits_alone_and_its_page_decides_it(gateway: Served, visit: Visit) -> None:
    for text in ("The bakery opens at six", "The mill is closed"):
        gateway.ask("memory_save", content=text)
    waiting = {
        one["text"].strip().splitlines()[-1]: one["path"] for one in gateway.ask("notes.waiting")["notes"]
    }
    assert set(waiting) == {"The bakery opens at six", "The mill is closed"}
    page = visit(gateway, f"#/notes/{waiting['The bakery opens at six']}").page
    expect(page.locator(".note .waiting")).to_contain_text("It waits for your approval")
    page.locator(".note .waiting [data-do=approve]").click()
    expect(page.locator(".note .waiting")).to_have_count(0)
    assert [one["path"] for one in gateway.ask("notes.waiting")["notes"]] == [waiting["The mill is closed"]]


def test_a_waiting_memory_names_the_token_of_its_writer(gateway: Served, visit: Visit) -> None:
    made = subprocess.run(
        [*gateway.arguments, "token", "create", "--access", "write", "--name", "cursor", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    token = json.loads(made.stdout)["token"]
    gateway.client.post(
        "/v1/agents/main/memory_store",
        json={"text": "The lighthouse is blue"},
        headers={"Authorization": f"Bearer {token}"},
    ).raise_for_status()
    (entry,) = gateway.ask("entries.list", states=["staged"], query="lighthouse")["entries"]
    assert entry["source"] == "tool:cursor"
    page = visit(gateway, f"#/memories/{entry['id']}?state=staged").page
    expect(page.locator(".panel .writer")).to_have_text(
        "Written by: an agent's tool (cursor). It waits because an agent wrote it."
    )
