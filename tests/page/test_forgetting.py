"""Forgetting on the page: by content, conversation, date or selection, with a preview and a receipt."""

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


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("gateway"), {"embedding": {"provider": "none"}}) as running:
        yield running


def learned(gateway: Served, *texts: str, session: str = "") -> list[str]:
    """Add statements, in a conversation or without, and return their ids."""
    headers = {"X-Memoriter-Session": session} if session else {}
    ids = []
    for text in texts:
        answer = gateway.client.post("/v1/agents/main/entries.add", json={"text": text}, headers=headers)
        answer.raise_for_status()
        ids.append(str(answer.json()["entry"]["id"]))
    return ids


def kept(gateway: Served, *words: str) -> list[str]:
    """Return the texts of all entries that contain one of the words, in any state."""
    entries = gateway.ask("entries.list", states=[], limit=500)["entries"]
    return sorted(entry["text"] for entry in entries if any(word in entry["text"] for word in words))


def opened(page: Page, way: str) -> Locator:
    page.get_by_role("button", name="Forget …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=way).click()
    return dialog


def look(dialog: Locator) -> None:
    dialog.get_by_role("button", name="Show what would be forgotten").click()


def test_a_query_offers_candidates_and_only_selected_ones_are_erased(gateway: Served, visit: Visit) -> None:
    learned(gateway, "The canoe hangs in the boathouse", "The canoe needs new varnish")
    page = visit(gateway, "#/memories").page
    dialog = opened(page, "By content")
    dialog.get_by_label("What should be forgotten?").fill("the canoe")
    look(dialog)
    expect(dialog.get_by_role("checkbox")).to_have_count(2)
    expect(dialog.get_by_role("checkbox", checked=True)).to_have_count(0)
    look(dialog)
    expect(dialog.get_by_role("alert")).to_have_text("Nothing is selected.")
    dialog.get_by_label("needs new varnish").check()
    look(dialog)
    expect(dialog.locator(".to-erase")).to_contain_text("needs new varnish")
    expect(dialog.locator(".to-erase")).not_to_contain_text("boathouse")
    assert len(kept(gateway, "canoe")) == 2
    dialog.get_by_role("button", name="Erase now …").click()
    dialog.get_by_role("button", name="Erase permanently").click()
    expect(dialog.locator(".receipt")).to_contain_text("Receipt: 1 memory erased")
    dialog.locator(".receipt").get_by_role("button", name="Close").click()
    expect(page.locator(".entries")).not_to_contain_text("varnish")
    assert kept(gateway, "canoe") == ["The canoe hangs in the boathouse"]


def test_forgetting_hides_memories_and_can_be_undone(gateway: Served, visit: Visit) -> None:
    (rudder,) = learned(gateway, "The rudder is made of oak")
    page = visit(gateway, f"#/memories/{rudder}").page
    page.get_by_role("button", name="Forget", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("These are hidden at once.")
    dialog.get_by_role("button", name="Forget", exact=True).click()
    expect(dialog.locator(".receipt")).to_contain_text("1 memory forgotten")
    assert gateway.ask("entries.get", id=rudder)["entry"]["state"] == "rejected"
    gateway.ask("entries.undo", id=rudder)
    assert gateway.ask("entries.get", id=rudder)["entry"]["state"] == "active"


def test_a_query_without_matches_says_so(gateway: Served, visit: Visit) -> None:
    dialog = opened(visit(gateway, "#/memories").page, "By content")
    dialog.get_by_label("What should be forgotten?").fill("qwertz uiop")
    look(dialog)
    expect(dialog.get_by_role("alert")).to_have_text("No memories match. Nothing would be forgotten.")


def test_a_whole_conversation_is_forgotten_after_a_preview(gateway: Served, visit: Visit) -> None:
    old, _ = learned(
        gateway, "Anchors weigh thirty kilos", "Anchors rust at the ring", session="harbour talk"
    )
    gateway.ask("entries.supersede", id=old, text="Anchors weigh forty kilos")
    learned(gateway, "Anchors are painted black", session="another talk")
    page = visit(gateway, "#/memories?session=harbour talk").page
    page.get_by_role("button", name="Forget …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Conversation")).to_have_value("harbour talk")
    look(dialog)
    listed = dialog.locator(".to-erase li")
    expect(listed).to_contain_text(["Anchors rust at the ring", "Anchors weigh thirty kilos"])
    dialog.get_by_role("button", name="Cancel").click()
    assert len(kept(gateway, "Anchors")) == 4
    page.get_by_role("button", name="Forget …").click()
    look(dialog)
    count = len(gateway.ask("entries.forget", session="harbour talk", dryRun=True)["forgotten"])
    dialog.get_by_role("button", name="Erase now …").click()
    dialog.get_by_role("button", name=f"Erase {count} memories permanently").click()
    receipt = dialog.locator(".receipt")
    expect(receipt).to_contain_text(f"Receipt: {count} memories erased")
    expect(receipt.get_by_role("heading", name="Not erased")).to_be_visible()
    receipt.locator("summary").click()
    expect(receipt.locator(".ids li")).to_have_count(count)
    assert kept(gateway, "rust", "thirty", "black") == ["Anchors are painted black"]


def test_memories_added_after_the_preview_are_not_erased_unseen(gateway: Served, visit: Visit) -> None:
    learned(gateway, "Oars are counted on Fridays", session="oars")
    page = visit(gateway, "#/memories").page
    dialog = opened(page, "By conversation")
    dialog.get_by_label("Conversation").fill("oars")
    look(dialog)
    expect(dialog.locator(".to-erase li")).to_have_count(1)
    dialog.get_by_role("button", name="Erase now …").click()
    expect(dialog.get_by_role("button", name="Erase permanently")).to_be_visible()
    learned(gateway, "Two oars are broken", session="oars")
    dialog.get_by_role("button", name="Erase permanently").click()
    expect(dialog.get_by_role("alert")).to_contain_text("in the meantime")
    assert kept(gateway, "ars are") == ["Oars are counted on Fridays", "Two oars are broken"]


def test_memories_merged_after_the_preview_are_not_erased_unseen(gateway: Served, visit: Visit) -> None:
    rope, knot = learned(gateway, "Ropes are coiled clockwise", "Knots are tied twice")
    page = visit(gateway, f"#/memories/{rope}").page
    page.get_by_role("button", name="Forget", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".to-erase li")).to_have_count(1)
    dialog.get_by_role("button", name="Erase now …").click()
    expect(dialog.get_by_role("button", name="Erase permanently")).to_be_visible()
    gateway.ask("entries.merge", ids=[rope, knot], text="Ropes and knots are done with care")
    dialog.get_by_role("button", name="Erase permanently").click()
    expect(dialog.get_by_role("alert")).to_contain_text("in the meantime")
    assert kept(gateway, "with care") == ["Ropes and knots are done with care"]


def test_the_preview_shows_older_versions_from_other_conversations(gateway: Served, visit: Visit) -> None:
    (bell,) = learned(gateway, "Bells ring at eight", session="bells")
    (horn,) = learned(gateway, "Horns sound in fog", session="horns")
    gateway.ask("entries.merge", ids=[bell, horn], text="Bells ring at eight and horns sound in fog")
    page = visit(gateway, "#/memories").page
    dialog = opened(page, "By conversation")
    dialog.get_by_label("Conversation").fill("horns")
    look(dialog)
    shown = dialog.locator(".to-erase .entry-text")
    expect(shown.filter(has_text="Bells ring at eight").first).to_be_visible()
    expect(shown).to_have_count(len(gateway.ask("entries.forget", session="horns", dryRun=True)["forgotten"]))


def test_memories_are_chosen_by_date(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    dialog = opened(page, "By date")
    look(dialog)
    expect(dialog.get_by_role("alert")).to_have_text("Choose at least one date.")
    dialog.get_by_label("To", exact=True).fill("2020-01-01")
    look(dialog)
    expect(dialog.get_by_role("alert")).to_have_text("No memories match. Nothing would be forgotten.")


def test_selected_memories_are_forgotten_with_their_versions(gateway: Served, visit: Visit) -> None:
    sail, mast, flag = learned(
        gateway, "Sails are kept dry", "Masts are kept upright", "Flags are kept folded"
    )
    gateway.ask("entries.merge", ids=[sail, mast], text="Sails and masts are kept well")
    page = visit(gateway, "#/memories").page
    rows = page.locator(".entries tbody tr")
    rows.filter(has_text="Sails and masts").get_by_role("checkbox").check()
    page.locator(f"tr[data-id='{flag}'] input").check()
    page.locator(".several").get_by_role("button", name="Forget").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".to-erase li")).to_have_count(4)
    dialog.get_by_role("button", name="Erase now …").click()
    dialog.get_by_role("button", name="Erase 4 memories permanently").click()
    expect(dialog.locator(".receipt")).to_contain_text("Receipt: 4 memories erased")
    assert kept(gateway, "are kept") == []


def test_all_shown_memories_can_be_selected_together(gateway: Served, visit: Visit) -> None:
    learned(gateway, "Buoys are checked after a storm", "The painter of the buoys is called Rui")
    page = visit(gateway, "#/memories?q=buoys").page
    expect(page.locator(".entries tbody tr")).to_have_count(2)
    page.get_by_label("Select all in this list").check()
    expect(page.locator(".several")).to_contain_text("2 selected")
    expect(page.get_by_label("Select all in this list")).to_be_focused()
    page.get_by_label("Select all in this list").uncheck()
    expect(page.locator(".entries input:checked")).to_have_count(0)
