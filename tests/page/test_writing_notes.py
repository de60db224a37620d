"""Notes are written on the page: edited, created, moved, deleted, ticked; every change can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Visit

pytestmark = pytest.mark.integration

PATH = "memory/launch.md"
NOTE = "# Launch\n\n- [x] Price\n- [ ] Screenshots\n\nSee [the pier](pier.md).\n"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without vectors."""
    with served(tmp_path_factory.mktemp("gateway"), {"embedding": {"provider": "none"}}) as running:
        yield running


@pytest.fixture(autouse=True)
def notes(gateway: Served) -> None:
    gateway.write(PATH, NOTE)
    gateway.write("memory/pier.md", "# Pier\n")


def text_of(gateway: Served, path: str = PATH) -> str:
    return (gateway.workspace / path).read_text()


def test_a_note_is_edited_with_a_preview_and_undone(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, f"#/notes/{PATH}").page
    page.locator("[data-do=edit]").click()
    source = page.get_by_label("Source", exact=True)
    expect(source).to_be_focused()
    source.fill("# Launch\n\nIt was **postponed**.\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".note-preview strong")).to_have_text("postponed")
    page.get_by_role("button", name="Write").click()
    source.press("Control+s")
    expect(page.locator(".said")).to_contain_text("Saved")
    expect(page.locator(".prose strong")).to_have_text("postponed")
    assert text_of(gateway) == "# Launch\n\nIt was **postponed**.\n"
    page.locator(".said").get_by_role("button", name="Undo").click()
    expect(page.locator(".prose")).to_contain_text("Screenshots")
    assert text_of(gateway) == NOTE


def test_a_draft_of_a_note_survives_and_a_conflict_shows_both(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, f"#/notes/{PATH}").page
    page.locator("[data-do=edit]").click()
    source = page.get_by_label("Source", exact=True)
    source.fill("# Launch\n\nMine\n")
    page.reload()
    gateway.write(PATH, "# Launch\n\nTheirs\n")
    page.get_by_role("button", name="Continue draft").click()
    expect(source).to_have_value("# Launch\n\nMine\n")
    source.press("Control+Enter")
    expect(page.locator("[data-version=theirs] ins")).to_contain_text("Theirs")
    expect(page.locator("[data-version=mine] ins")).to_contain_text("Mine")
    assert text_of(gateway) == "# Launch\n\nTheirs\n"
    page.get_by_role("button", name="Edit both").click()
    expect(source).to_have_value("# Launch\n\nTheirs\n\n# Launch\n\nMine\n")
    source.fill("# Launch\n\nTheirs and mine\n")
    page.locator(".note-bar").get_by_role("button", name="Save").click()
    expect(page.locator(".prose")).to_contain_text("Theirs and mine")
    assert text_of(gateway) == "# Launch\n\nTheirs and mine\n"


def test_a_task_is_ticked_in_place(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, f"#/notes/{PATH}").page
    page.get_by_role("checkbox", name="Screenshots").check()
    expect(page.locator(".said")).to_contain_text("Task done")
    assert text_of(gateway) == NOTE.replace("[ ]", "[x]")
    page.keyboard.press("u")
    expect(page.get_by_role("checkbox", name="Screenshots")).not_to_be_checked()
    assert text_of(gateway) == NOTE


def test_a_note_is_created_moved_and_deleted(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes").page
    page.get_by_role("button", name="New note").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Path").fill(PATH)
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_contain_text("already exists")
    assert text_of(gateway) == NOTE
    dialog.get_by_label("Path").fill("memory/garden/plan.md")
    dialog.get_by_label("Text").fill("# Plan\n\nPlant quinces.\n")
    dialog.get_by_role("button", name="Create").click()
    expect(page.locator(".prose")).to_contain_text("Plant quinces.")
    page.locator("[data-do=move]").click()
    dialog.get_by_label("Path").fill("memory/orchard.md")
    dialog.get_by_role("button", name="Rename or move").click()
    expect(page.locator(".note-head h2")).to_have_text("memory/orchard.md")
    assert not (gateway.workspace / "memory/garden/plan.md").exists()
    page.locator("[data-do=remove]").click()
    expect(page.locator(".said")).to_contain_text("memory/orchard.md was deleted")
    assert not (gateway.workspace / "memory/orchard.md").exists()
    page.locator(".said").get_by_role("button", name="Undo").click()
    expect(page.locator(".prose")).to_contain_text("Plant quinces.")
    assert text_of(gateway, "memory/orchard.md") == "# Plan\n\nPlant quinces.\n"


def test_links_to_other_notes_work_on_a_direct_visit(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, f"#/notes/{PATH}").page
    page.locator(".prose").get_by_role("link", name="the pier").click()
    expect(page.locator(".note-head h2")).to_have_text("memory/pier.md")
