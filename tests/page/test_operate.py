"""Operate: agents and programs, tokens, backups, the way to another machine, settings."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import httpx
import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Visit

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("operate"), {"embedding": {"provider": "none"}}) as running:
        (running.home / "config.yaml").write_text("embedding:\n  provider: none\n", "utf-8")
        running.write("MEMORY.md", "# Facts\n\nThe harbour office opens at eight.\n")
        running.ask("entries.add", text="Tea at four")
        yield running


def test_a_token_is_made_for_one_use_and_revoked(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/operate").page
    card = page.locator("[data-card=tokens]")
    card.get_by_role("button", name="New token …").click()
    page.get_by_label("Name").fill("laptop")
    page.locator("dialog [data-value=read]").click()
    page.locator("dialog").get_by_role("button", name="Create").click()
    secret = page.locator("dialog pre").inner_text()
    headers = {"Authorization": f"Bearer {secret}"}
    place = f"{gateway.address}/v1/agents/main"
    assert httpx.post(f"{place}/entries.list", json={}, headers=headers, trust_env=False).status_code == 200
    forbidden = httpx.post(f"{place}/entries.add", json={"text": "x"}, headers=headers, trust_env=False)
    assert forbidden.status_code == 403
    page.locator("dialog").get_by_role("button", name="Close").last.click()
    row = card.locator("li", has_text="laptop")
    expect(row).to_contain_text("Read")
    row.get_by_role("button", name="Revoke").click()
    page.locator("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_have_count(0)
    assert httpx.post(f"{place}/entries.list", json={}, headers=headers, trust_env=False).status_code == 401


def test_a_backup_is_made_verified_downloaded_and_deleted(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/operate").page
    card = page.locator("[data-card=backups]")
    card.get_by_role("button", name="Back up now").click()
    rows = card.locator(".operate-rows > li")
    expect(rows).to_have_count(1)
    rows.get_by_role("button", name="Verify").click()
    expect(page.locator(".said")).to_contain_text("The backup is intact")
    with page.expect_download() as waiting:
        rows.get_by_role("button", name="Download").click()
    with zipfile.ZipFile(waiting.value.path()) as archive:
        assert any(name.endswith("MEMORY.md") for name in archive.namelist())
    dialog = page.get_by_role("dialog")
    rows.get_by_role("button", name="Delete").click()
    expect(dialog).to_contain_text("This cannot be undone.")
    dialog.get_by_role("button", name="Cancel").click()
    expect(rows).to_have_count(1)
    rows.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(rows).to_have_count(0)


def test_a_backup_is_restored_while_the_gateway_runs(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/operate").page
    card, dialog = page.locator("[data-card=backups]"), page.get_by_role("dialog")
    card.get_by_role("button", name="Back up now").click()
    rows = card.locator(".operate-rows > li")
    expect(rows).to_have_count(1)
    name = rows.get_attribute("data-id")
    gateway.ask("entries.add", text="Coffee at nine")
    rows.get_by_role("button", name="Restore …").click()
    expect(dialog).to_contain_text("1 of them notes")
    dialog.get_by_role("button", name="Restore", exact=True).click()
    expect(page.locator(".said")).to_contain_text("The backup is restored")
    expect(dialog).to_have_count(0)
    assert [one["text"] for one in gateway.ask("entries.list")["entries"]] == ["Tea at four"]
    expect(rows).to_have_count(2)  # and what was there before
    rows.first.get_by_role("button", name="Restore …").click()
    dialog.get_by_role("button", name="Restore", exact=True).click()
    expect(rows).to_have_count(3)
    expect(card.locator(f"[data-id='{name}']")).to_be_visible()
    assert len(gateway.ask("entries.list")["entries"]) == 2


def test_a_setting_is_explained_changed_and_changed_back(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/operate").page
    setting = page.locator("[data-id='entries.approval']")
    expect(setting.locator(".hint")).to_contain_text("What waits is in the inbox")
    setting.get_by_role("combobox").select_option("agent")
    expect(page.locator(".said")).to_contain_text("Saved: What waits for your approval")
    gateway.ask("memory_store", text="The quay is long")
    assert gateway.ask("entries.facets")["states"]["staged"] == 1
    page.locator("h1").click()
    page.keyboard.press("u")
    expect(setting.get_by_role("combobox")).to_have_value("none")
    assert "approval: none" in (gateway.home / "config.yaml").read_text("utf-8")


def test_agents_are_listed_with_their_last_recall_and_health_is_one_click_away(
    gateway: Served, visit: Visit
) -> None:
    gateway.ask("recall", query="when is tea?")
    page = visit(gateway, "#/operate").page
    expect(page.locator("[data-card=hosts] [data-id=main]")).to_contain_text("last recall")
    page.get_by_role("button", name="Health", exact=True).click()
    expect(page.locator(".verdict")).to_be_visible()
    page.get_by_role("button", name="Operate", exact=True).click()
    expect(page.locator("[data-card=tokens]")).to_be_visible()
