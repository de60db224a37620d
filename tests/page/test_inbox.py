"""The inbox: everything that waits for the owner, decided one after another by keyboard."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Visit

pytestmark = pytest.mark.integration

INBOX = "#/inbox"
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
    statement = page.locator(".inbox-card .statement")
    expect(page).to_have_title("(4) Inbox · memoriter")
    expect(statement).to_have_text(TEXTS[3])  # the newest first
    expect(page.locator(".summary")).to_have_text("1 of 4")
    page.keyboard.press("l")  # later: it comes again at the end
    expect(statement).to_have_text(TEXTS[2])
    page.keyboard.press("a")
    expect(statement).to_have_text(TEXTS[1])
    page.keyboard.press("e")
    page.get_by_role("dialog").get_by_label("Statement").fill("Prices are in euros")
    page.keyboard.press("Control+Enter")
    expect(statement).to_have_text(TEXTS[0])
    page.keyboard.press("r")
    expect(statement).to_have_text(TEXTS[3])
    expect(page.locator(".summary")).to_have_text("1 of 1")
    page.keyboard.press("a")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    expect(page).to_have_title("Inbox · memoriter")
    assert states(gateway) == {
        TEXTS[0]: "rejected",
        "Prices are in euros": "active",
        TEXTS[2]: "active",
        TEXTS[3]: "active",
    }


def test_undo_takes_back_an_edit_together_with_its_approval_and_opens_the_card_again(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, INBOX).page
    statement = page.locator(".inbox-card .statement")
    expect(statement).to_have_text(TEXTS[3])
    page.keyboard.press("e")
    page.get_by_role("dialog").get_by_label("Statement").fill("Tea at five")
    page.keyboard.press("Control+Enter")
    expect(statement).to_have_text(TEXTS[2])
    expect(page.locator(".said")).to_contain_text("Approved: Tea at five")
    page.keyboard.press("u")
    expect(statement).to_have_text(TEXTS[3])
    expect(page.locator(".said")).to_contain_text("This waits for your approval again: Tea at four")
    page.keyboard.press("r")
    expect(statement).to_have_text(TEXTS[2])
    expect(page.locator(".said")).to_contain_text("Rejected: Tea at four")
    page.keyboard.press("u")
    expect(statement).to_have_text(TEXTS[3])
    assert states(gateway) == dict.fromkeys(TEXTS, "staged")


def test_a_card_says_who_wrote_it_where_and_what_it_would_change(gateway: Served, visit: Visit) -> None:
    gateway.ask("entries.add", text="The ferry leaves at eight on Sundays.")
    turns = [
        ("user", "What did we say about the ferry?"),
        ("assistant", "The ferry leaves at nine on Sundays."),
    ]
    gateway.session("ferry", *turns)
    made = subprocess.run(
        [*gateway.arguments, "token", "create", "--access", "write", "--name", "cursor", "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    gateway.client.post(
        "/v1/agents/main/memory_store",
        json={"text": "The ferry leaves at nine on Sundays."},
        headers={
            "X-Memoriter-Session": "ferry",
            "Authorization": f"Bearer {json.loads(made.stdout)['token']}",
        },
    ).raise_for_status()
    page = visit(gateway, INBOX).page
    card = page.locator(".inbox-card")
    expect(card.locator(".statement")).to_have_text("The ferry leaves at nine on Sundays.")
    expect(card.locator(".facts")).to_contain_text("an agent's tool (cursor), for main")
    expect(card.locator(".why-waits")).to_have_text("An agent wrote it.")
    expect(card.locator(".conversation .turn.lit")).to_contain_text("The ferry leaves at nine on Sundays.")
    expect(card.locator(".conversation .transcript")).to_have_attribute(
        "href", re.compile("#/notes/sessions/ferry")
    )
    # An agent's words do not replace the owner's, so both would stand.
    expect(card.locator("[data-action]")).to_have_attribute("data-action", "add")


def test_a_card_names_the_memory_that_it_replaces(gateway: Served, visit: Visit) -> None:
    gateway.ask("memory_store", text="The deploy branch is called main")
    (first,) = gateway.ask("entries.list", states=["staged"], query="deploy branch")["entries"]
    gateway.ask("entries.approve", ids=[first["id"]])
    gateway.ask("memory_store", text="The deploy branch is no longer called main")
    page = visit(gateway, INBOX).page
    change = page.locator(".inbox-change")
    expect(change.locator("[data-action=supersede]")).to_contain_text("Replaces:")
    expect(change.locator("ins")).to_contain_text("no longer")


def test_what_tidying_proposes_is_decided_in_the_inbox(gateway: Served, visit: Visit) -> None:
    for entry in gateway.ask("entries.list", states=["staged"])["entries"]:
        gateway.ask("entries.reject", ids=[entry["id"]])
    data = [{"text": "Jonas is allergic to nuts"}, {"text": "Jonas is not allergic to nuts"}]
    gateway.ask("entries.import", data=json.dumps(data))
    page = visit(gateway, INBOX).page
    card = page.locator(".inbox-card")
    expect(card).to_contain_text("These two contradict each other")
    page.keyboard.press("a")
    expect(page.locator(".said")).to_contain_text("Forgotten: Jonas is allergic to nuts")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert [one["text"] for one in gateway.ask("entries.list")["entries"]] == [data[1]["text"]]
    page.keyboard.press("u")
    expect(card).to_contain_text("These two contradict each other")
    expect(page.locator(".said")).to_contain_text("This waits again: Jonas is allergic to nuts")
    page.keyboard.press("l")  # the only card stays
    expect(card).to_contain_text("These two contradict each other")
    page.keyboard.press("r")
    expect(page.locator(".said")).to_contain_text("Kept, with the tag “keep”: Jonas is allergic to nuts")
    expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert sorted((one["text"], one["tags"]) for one in gateway.ask("entries.list")["entries"]) == [
        (one["text"], ["keep"]) for one in data
    ]


def test_what_an_agent_wrote_after_it_read_text_from_outside_is_decided_and_undone_by_name(
    gateway: Served, visit: Visit
) -> None:
    text = "The Heron Inn is paid to account 7712"
    result = gateway.ask("memory_store", text=text)
    used = [("c1", "WebFetch", text), ("c2", "mcp__memoriter__memory_store", json.dumps(result))]
    messages: list[dict[str, object]] = [{"role": "user", "content": "Which account does the Heron Inn use?"}]
    for number, name, answer in used:
        call = {"type": "tool_use", "id": number, "name": name, "input": {}}
        answered = {
            "type": "tool_result",
            "tool_use_id": number,
            "content": [{"type": "text", "text": answer}],
        }
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answered]}]
    gateway.ask("capture", messages=messages, session="heron")
    page = visit(gateway, INBOX).page
    statement = page.locator(".inbox-card .statement")
    expect(statement).to_have_text(text)
    expect(page.locator(".why-waits")).to_have_text("The agent had read text from outside.")
    page.keyboard.press("e")
    page.get_by_role("dialog").get_by_label("Statement").press("Escape")  # decides nothing
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(statement).to_have_text(text)
    page.keyboard.press("r")
    expect(page.locator(".said")).to_contain_text(f"Rejected: {text}")
    page.keyboard.press("u")
    expect(page.locator(".said")).to_contain_text(f"approval again: {text}")
    expect(statement).to_have_text(text)
    page.keyboard.press("l")
    expect(statement).to_have_text(TEXTS[3])
    page.keyboard.press("k")  # the first card has none before it
    expect(statement).to_have_text(TEXTS[3])
    assert states(gateway) == dict.fromkeys((*TEXTS, text), "staged")


def test_rows_are_selected_with_x_and_sorted_by_their_headings(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories?state=staged").page
    rows = page.locator(".entries tbody tr")
    expect(rows).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator(".several")).to_contain_text("1 selected")
    page.get_by_role("button", name="Importance").click()
    expect(page.locator("th.col-importance")).to_have_attribute("aria-sort", "descending")
    assert "sort=importance" in page.url


def test_a_waiting_note_names_its_writer(gateway: Served, visit: Visit) -> None:
    for entry in gateway.ask("entries.list", states=["staged"])["entries"]:
        gateway.ask("entries.reject", ids=[entry["id"]])
    made = gateway.ask("tokens.create", access="write", name="Cursor")
    headers = {"Authorization": f"Bearer {made['token']}"}
    gateway.client.post(
        "/v1/agents/main/memory_save", json={"content": "The mill is closed"}, headers=headers
    )
    card = visit(gateway, INBOX).page.locator(".inbox-card")
    expect(card).to_contain_text("The mill is closed")
    expect(card).to_contain_text("(Cursor)")


def test_waiting_notes_are_approved_edited_and_rejected(gateway: Served, visit: Visit) -> None:
    for title in ("Ferry", "Prices", "Door"):
        gateway.ask("memory_save", content=f"{title} notes of the agent", title=title, category="town")
    paths = [one["path"] for one in gateway.ask("notes.waiting")["notes"]]
    assert paths == ["memory/town/door.md", "memory/town/ferry.md", "memory/town/prices.md"]
    for entry in gateway.ask("entries.list", states=["staged"])["entries"]:
        gateway.ask("entries.reject", ids=[entry["id"]])
    page = visit(gateway, INBOX).page
    expect(page).to_have_title("(3) Inbox · memoriter")
    card = page.locator(".inbox-card")
    expect(card).to_contain_text("Door notes of the agent")
    expect(card.locator(".note-words :is(h1, h2, h3)").first).to_be_visible()
    expect(card.locator(".note-words")).not_to_contain_text("#")
    page.keyboard.press("a")
    expect(card).to_contain_text("Ferry notes of the agent")
    expect(page).to_have_title("(2) Inbox · memoriter")
    assert "pending" not in (gateway.workspace / paths[0]).read_text()
    page.keyboard.press("r")
    expect(card).to_contain_text("Prices notes of the agent")
    expect(page.locator(".said")).to_contain_text(f"Rejected and removed: {paths[1]}")
    assert not (gateway.workspace / paths[1]).exists()
    page.keyboard.press("u")
    expect(card).to_contain_text("Ferry notes of the agent")
    expect(page.locator(".said")).to_contain_text(f"This waits again: {paths[1]}")
    assert "Ferry notes" in (gateway.workspace / paths[1]).read_text()
    page.keyboard.press("e")
    text = page.get_by_role("dialog").get_by_label("Text")
    text.fill(text.input_value().replace("of the agent", "of the harbour"))
    page.keyboard.press("Control+Enter")
    expect(card).to_contain_text("Prices notes of the agent")
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
    expect(page.locator(".note .waiting")).to_contain_text("Until you approve it")
    page.locator(".note .waiting [data-do=approve]").click()
    expect(page.locator(".note .waiting")).to_have_count(0)
    assert [one["path"] for one in gateway.ask("notes.waiting")["notes"]] == [waiting["The mill is closed"]]
