"""What changed, by day, with undo; and the weekly letter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Visit

pytestmark = pytest.mark.integration


@pytest.fixture
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without vectors on which something has changed."""
    with served(tmp_path_factory.mktemp("gateway"), {"embedding": {"provider": "none"}}) as running:
        entry = running.ask("entries.add", text="Tea at four")["entry"]["id"]
        running.ask("entries.edit", id=entry, text="Tea at five")
        yield running


def test_a_change_is_found_by_day_and_undone_and_the_letter_tells_the_week(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway).page
    page.get_by_role("link", name="What changed").click()
    items = page.locator(".history li")
    expect(items).to_have_count(2)
    expect(items.first).to_contain_text("Edited by you")
    expect(items.first.locator("del")).to_have_text("four")
    items.first.locator("[data-do=undo]").click()
    expect(items).to_have_count(3)
    expect(page.locator(".said")).to_have_text("Undone: Tea at five")
    assert [one["text"] for one in gateway.ask("entries.list")["entries"]] == ["Tea at four"]
    page.locator("[data-filter=kind]").select_option("update")
    expect(items).to_have_count(1)
    page.locator("[data-filter=by]").select_option("agent")
    expect(page.locator(".about")).to_have_text("Nothing changed in this time.")
    page.goto(f"{gateway.address}/#/changes?until=2026-01-01")
    expect(page.locator(".about")).to_have_text("Nothing changed in this time.")
    page.locator("[data-filter=until]").fill("")
    expect(items).to_have_count(3)
    page.locator("[data-value=letter]").click()
    expect(page.locator("[data-section=learned] li")).to_have_count(1)
    expect(page.locator("[data-section=learned]")).to_contain_text("Tea at four")


def test_the_history_reads_as_chinese(gateway: Served, visit: Visit) -> None:
    entry = gateway.ask("entries.list")["entries"][0]["id"]
    gateway.ask("entries.edit", id=entry, importance=5)
    page = visit(gateway, f"#/memories/{entry}", locale="zh-CN").page
    expect(page.locator(".history li").first).to_contain_text("操作者：本人")


def test_a_session_is_deleted_with_a_receipt_and_restored_from_what_changed(
    gateway: Served, visit: Visit
) -> None:
    words = "Remember that Doubao sleeps on the sill."
    file = gateway.session("cat", ("user", words), ("assistant", "记住了：豆包睡在窗台上。"))
    before = file.read_bytes()
    gateway.ask("capture", messages=[{"role": "user", "content": words}], session="cat")
    gateway.ask("memory.sync")
    page = visit(gateway, "#/notes/sessions/cat.jsonl").page
    dialog = page.get_by_role("dialog")
    page.locator(".note-actions [data-do=remove]").click()
    expect(dialog).to_contain_text("2 lines")
    dialog.get_by_role("button", name="Cancel").click()
    assert file.exists()
    page.locator(".note-actions [data-do=remove]").click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(dialog.locator(".receipt")).to_contain_text("sessions/cat.jsonl")
    expect(dialog.locator(".receipt")).to_contain_text("1 memory was learned from it")
    assert not file.exists()
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.locator(".said")).to_contain_text("sessions/cat.jsonl was deleted")
    assert len(gateway.ask("entries.list", session="cat")["entries"]) == 1
    page.goto(f"{gateway.address}/#/changes")
    deleted = page.locator("[data-section=deleted]")
    expect(deleted).to_contain_text("Session deleted")
    deleted.locator("[data-do=restore]").click()
    expect(deleted).to_have_count(0)
    assert file.read_bytes() == before


def test_a_session_of_another_program_gets_one_sentence(tmp_path: Path, visit: Visit) -> None:
    other = tmp_path / "program"
    other.mkdir()
    line = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Tea at four"}}
    (other / "chat.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    settings = {"embedding": {"provider": "none"}, "sessions": {"paths": [str(other)]}}
    with served(tmp_path / "gateway", settings) as gateway:
        gateway.ask("memory.sync")
        page = visit(gateway, "#/notes/sessions/chat.jsonl", locale="zh-CN").page
        page.locator(".note-actions [data-do=remove]").click()
        expect(page.get_by_role("dialog")).to_contain_text("由另一个程序保存")
        expect(page.get_by_role("dialog").get_by_role("button")).to_have_count(1)  # the cross
        assert (other / "chat.jsonl").exists()
