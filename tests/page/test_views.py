"""Each view in a real browser: its content, the switches, the keyboard, a phone."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from serving import Served

from memoriter.server.http.pages import FOLDER, PageFiles

sync_api = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it")
expect = sync_api.expect

if TYPE_CHECKING:
    from playwright.sync_api import Route

    from conftest import Visit

pytestmark = pytest.mark.integration


def test_a_search_shows_hits_with_matches_place_trust_and_parts_of_the_score(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway).page
    page.get_by_role("searchbox").fill("leaf diagnosis phone")
    hit = page.locator(".hit", has_text="Leaf diagnosis").first
    expect(hit.locator("mark").first).to_be_visible()
    note = page.locator(".hit[data-source=memory]").first
    expect(note.locator(".place")).to_have_text(re.compile(r"memory/projects/fern\.md:\d+"))
    expect(note.locator(".label[data-kind=trust]")).to_have_text("yours")
    assert not re.search(r"0\.\d", note.inner_text())  # one mark; the numbers are shown on demand
    expect(note.locator("summary")).to_have_text("high confidence")
    note.locator("summary").click()
    parts = [float(text) for text in note.locator(".score-legend b").all_inner_texts()]
    assert len(parts) >= 2
    score = note.locator(".score-sum").inner_text().removeprefix("Score ")
    assert sum(parts) == pytest.approx(float(score), abs=0.02)
    expect(note.locator("code")).to_have_text(re.compile(r"memory/projects/fern\.md#L\d+-L\d+"))


def test_a_hit_shows_marks_of_markdown_as_a_reader_would(gateway: Served, visit: Visit) -> None:
    gateway.write(
        "memory/pantry.md",
        "## Pantry\n\n- [x] Label the **quince** jars\n- [ ] Ask [Ana](../people/ana.md) about `lids`\n"
        "- Vinegar - white\n",
    )
    gateway.ask("memory.sync")
    page = visit(gateway, "#/search?q=quince jars lids vinegar&in=memory").page
    snippet = page.locator(".hit", has_text="memory/pantry.md").locator(".snippet")
    expect(snippet).to_have_text("Pantry\n☑ Label the quince jars\n☐ Ask Ana about lids\n• Vinegar - white")


def test_a_hit_opens_its_note_at_those_lines(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search?q=rolling back production&in=memory").page
    page.locator(".hit .place").first.click()
    expect(page.locator(".note-head h2")).to_have_text("memory/projects/fern.md")
    expect(page.locator(".prose .lit").first).to_be_in_viewport()


def test_a_search_is_filtered_by_source(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search?q=server").page
    expect(page.locator(".hit").first).to_be_visible()
    page.get_by_role("button", name="Memories", exact=True).click()
    expect(page.locator(".hit:not([data-source=entries])")).to_have_count(0)
    expect(page.locator(".hit[data-source=entries]").first).to_be_visible()


def test_memories_are_filtered_by_type_tag_and_stars(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    rows = page.locator(".entries tbody tr")
    expect(rows.filter(has_text="Nothing is deployed")).to_have_count(1)
    expect(page.locator("[data-filter=type]")).to_have_count(0)
    page.keyboard.press("f")
    expect(page.locator("[data-filter=type]")).to_be_focused()
    page.locator("[data-filter=type]").select_option("relationship")
    expect(rows).to_have_count(3)
    page.locator("[data-filter=stars]").select_option("4")
    expect(rows).to_have_count(2)
    page.locator("[data-filter=type]").select_option("")
    page.locator("[data-filter=tag]").select_option("money")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Filters", exact=True).click()
    expect(page.locator(".chip select")).to_have_count(2)  # those in use stay
    assert "tag=money" in page.url


def test_a_memory_shows_its_transcript_line_history_and_prompts(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories?session=2026-02-10-servers&state=all").page
    page.locator(".entries .row", has_text="Caddy").click()
    panel = page.locator(".panel")
    expect(panel.locator(".statement")).to_contain_text("Caddy")
    expect(panel.locator(".history")).to_contain_text("Learned")
    panel.locator("a.transcript").click()
    expect(page.locator(".turn.lit")).to_contain_text("Caddy as the reverse proxy")


def test_a_recalled_memory_links_to_the_recall_and_back(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories?q=prefers short answers command first").page
    page.locator(".entries .row").first.click()
    page.locator(".panel a", has_text="does she prefer short answers?").click()
    panel = page.locator(".panel")
    expect(panel.locator(".statement")).to_have_text("does she prefer short answers?")
    expect(panel.locator(".considered").first).to_contain_text("Prefers short answers")


def test_a_note_is_shown_as_text_as_source_and_as_passages(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes/memory/projects/launch.md").page
    prose = page.locator(".prose")
    expect(prose.locator("h2")).to_have_text("Launch list")
    expect(prose.locator("li.has-task")).to_have_count(2)
    expect(prose.locator("td").first).to_have_text("Store page")
    expect(prose.locator("blockquote")).to_have_text("Nothing is deployed on a Friday after lunch.")
    outside = prose.get_by_role("link", name="https://fern.garden")
    expect(outside).to_have_attribute("rel", "noopener noreferrer")
    page.get_by_role("button", name="Passages").click()
    expect(page.locator(".chunk").first).to_contain_text("Lines 1–")
    page.get_by_role("button", name="Source").click()
    expect(page.locator(".source-lines li").first).to_have_text("# Launch list")
    page.get_by_role("button", name="Read").click()
    prose.get_by_role("link", name="the app").click()
    expect(page.locator(".note-head h2")).to_have_text("memory/projects/fern.md")


def test_recalls_show_what_was_added_what_was_left_out_and_why(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/recalls").page
    expect(page.locator(".recall-line")).to_have_count(5)
    page.locator(".recall-line", has_text="can we deploy on a Friday").click()
    panel = page.locator(".panel")
    expect(panel.get_by_role("heading", name=re.compile("Added to the prompt: [1-9]"))).to_be_visible()
    expect(panel.locator(".reason").first).not_to_be_empty()
    expect(panel.locator(".facts")).to_contain_text("tokens")


def test_health_shows_the_state_and_syncs(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health").page
    expect(page.locator(".verdict")).not_to_be_empty()
    expect(page.get_by_role("heading", name="Embedder")).to_be_visible()
    expect(page.locator(".findings li").first).to_be_visible()
    page.get_by_role("button", name="Sync now").click()
    expect(page.locator(".said")).to_contain_text("Synced")


def test_sentences_of_the_gateway_are_shown_in_chinese(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/recalls", locale="zh-CN").page
    page.locator(".recall-line").first.click()
    reasons = page.locator(".considered .reason")
    expect(reasons.first).to_have_text(re.compile(r"^相关，得分 0\.\d+$"))
    assert [text for text in reasons.all_inner_texts() if not re.search("[\u4e00-\u9fff]", text)] == []
    page.locator("nav [data-view=memories]").click()
    page.locator(".entries .row").first.click()
    page.locator(".panel [data-do=forget]").click()
    copies = page.get_by_role("dialog").locator(":is(.covered, .not-covered) li")
    expect(copies.first).to_have_text("搜索、召回和列表：不再出现，也不会再次记录")
    assert [text for text in copies.all_inner_texts() if not re.search("[\u4e00-\u9fff]", text)] == []
    page.keyboard.press("Escape")
    page.locator("nav [data-view=health]").click()
    expect(page.locator("ul.findings")).to_contain_text(f"设置 有效；主目录 {gateway.home}")
    expect(page.locator("ul.findings")).to_contain_text("向量模型 memoriter 自带的模型")
    unknown = page.evaluate(
        "async (text) => (await import('/static/i18n.js')).translated(text)", "a sentence without a code"
    )
    assert unknown == "a sentence without a code"


def test_the_language_is_switched_in_place_and_remembered(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    page.locator("[data-language=zh]").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("记忆")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("记忆")
    page.locator("[data-language=en]").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Memories")


def test_one_file_adds_a_language(gateway: Served, visit: Visit, tmp_path: Path) -> None:
    web = shutil.copytree(FOLDER, tmp_path / "web")
    (web / "static/languages").mkdir(exist_ok=True)
    texts = {
        "view.memories": "Erinnerungen",
        "view.operate": "Verwalten",
        "count.files": "{n} Dateien",
        "count.files.one": "eine Datei",
    }
    (web / "static/languages/de.json").write_text(json.dumps(texts), "utf-8")
    files = PageFiles(web)

    def serve(route: Route) -> None:
        name = urlsplit(route.request.url).path.removeprefix("/") or "index.html"
        route.fulfill(body=files[name].body, content_type=files[name].media_type)

    page = visit(gateway, "#/memories").page
    page.route(f"{gateway.address}/", serve)
    page.route("**/static/**", serve)
    page.reload()
    page.locator("[data-language=zh]").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("记忆")
    switch = page.locator("[data-language=de]")
    expect(switch).to_have_text("Deutsch")
    switch.click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Erinnerungen")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator("nav [data-view=notes]")).to_contain_text(
        "Notes"
    )  # what the file leaves out is English
    page.reload()
    expect(heading).to_have_text("Erinnerungen")
    counts = """async () => {
      const { tn, useLanguage } = await import("/static/i18n.js");
      await useLanguage("de");
      return [tn("count.files", 1), tn("count.files", 2000), tn("count.lines", 1)];
    }"""
    assert page.evaluate(counts) == ["eine Datei", "2.000 Dateien", "1 line"]
    german = visit(gateway, "#/memories", locale="de-AT").page
    german.route(f"{gateway.address}/", serve)
    german.route("**/static/**", serve)
    german.reload()
    expect(german.get_by_role("heading", level=1)).to_have_text("Erinnerungen")


def test_the_theme_follows_the_system_until_it_is_switched(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/health", color_scheme="dark").page
    background = "() => getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(20, 24, 21)"
    page.get_by_role("button", name="Theme: System").click()
    assert page.evaluate(background) == "rgb(250, 249, 245)"
    page.reload()
    expect(page.get_by_role("button", name="Theme: Light")).to_be_visible()
    assert page.evaluate(background) == "rgb(250, 249, 245)"


def test_everything_is_reachable_by_keyboard(gateway: Served, visit: Visit) -> None:
    page = visit(gateway).page
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    search.fill("deploy")
    expect(page.locator(".hit").first).to_be_visible()
    search.evaluate("field => field.blur()")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator(".hit .row").first).to_be_focused()
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.press("Escape")
    expect(search).to_have_value("")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for letter, name in zip("mnrhs", ("Memories", "Notes", "Recalls", "Health", "Search"), strict=True):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        expect(page.locator("nav [data-view][aria-current=page] .nav-name")).to_have_text(name)
        page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("g")
    page.keyboard.press("m")
    expect(page.locator(".entries .row").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".panel .statement")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".panel .statement")).to_have_count(0)


PLACES = ("search?q=server", "memories", "notes/memory/projects/fern.md", "recalls", "health")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize(
    "view", ["search?q=server", "memories", "notes/memory/projects/fern.md", "recalls", "health"]
)
def test_a_view_fits_a_phone(view: str, gateway: Served, visit: Visit) -> None:
    page = visit(gateway, f"#/{view}", **PHONE).page
    page.wait_for_load_state("load")
    expect(page.locator("main .loading")).to_have_count(0)
    assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 390
    expect(page.locator("nav [data-view][aria-current=page]")).to_be_in_viewport()
    page.locator("nav [data-view=memories]").tap()
    page.locator(".entries .row").first.tap()
    expect(page.locator(".panel .statement")).to_be_in_viewport()
    assert page.evaluate("() => document.scrollingElement.scrollWidth") <= 390


def test_an_ended_session_explains_how_to_get_a_new_link(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".entries .row").first).to_be_visible()
    page.context.clear_cookies()
    # By address: a request in the background may already have replaced the page, with its navigation.
    page.evaluate("location.hash = '#/notes'")
    expect(page.get_by_text("memoriter open", exact=True)).to_be_visible()


def test_a_link_works_once_and_open_makes_another(gateway: Served, visit: Visit) -> None:
    visited = visit(gateway)
    page = visited.page
    link = gateway.new_link()
    page.context.clear_cookies()
    # From a page of another site, such as a chat. The browser does not send strict cookies at first.
    chat = "http://elsewhere.example/"
    page.route(chat, lambda route: route.fulfill(content_type="text/html", body=f'<a href="{link}">page</a>'))
    page.goto(chat)
    page.locator("a").click()
    expect(page.locator("nav [data-view=notes]")).to_be_visible()
    assert page.url.split("#")[0].rstrip("/") == gateway.address
    assert visited.foreign == [chat]
    visited.foreign.clear()
    answer = page.goto(link)
    assert answer
    assert answer.status == 403


def test_every_view_works_under_the_content_security_policy(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/search").page  # the end of the visit checks for policy violations
    for view in PLACES:
        page.evaluate("place => { location.hash = place; }", f"#/{view}")
        expect(page.locator("main .loading")).to_have_count(0)
        expect(page.locator("main :is(.row, .card):visible").first).to_be_visible()
    expect(page.locator(".pulse")).to_have_text("Live")


def test_an_error_is_shown_with_a_retry_button(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, live=False).page  # an event would load the list again
    failing = "**/entries.list"
    page.route(failing, lambda route: route.fulfill(status=503, json={"error": "The memory is busy."}))
    page.locator("nav [data-view=memories]").click()
    alert = page.locator(".table-place [role=alert]")
    expect(alert).to_contain_text("The memory is busy.")
    page.unroute(failing)
    alert.get_by_role("button", name="Try again").click()
    expect(page.locator(".entries .row").first).to_be_visible()


def test_a_recall_shows_what_entered_the_prompt_then(gateway: Served, visit: Visit) -> None:
    entry = gateway.ask("entries.add", text="The lighthouse keeper is called Amália", importance=5)["entry"][
        "id"
    ]
    gateway.write("memory/pier.md", "# Pier\n\nThe pier of the lighthouse is painted white every spring.\n")
    gateway.ask("memory.sync")
    recalled = gateway.ask("recall", query="what is the lighthouse keeper called, and the lighthouse pier?")
    gateway.ask("entries.edit", id=entry, text="The lighthouse keeper is called Benedita")
    gateway.write("memory/pier.md", "# Pier\n\nThe pier was taken down.\n")
    page = visit(gateway, f"#/recalls/{recalled['recallId']}").page
    line = page.locator(".considered li", has_text="The lighthouse keeper is called Amália")
    expect(line.locator(".then")).to_have_text("The lighthouse keeper is called Amália")
    expect(line.locator(".since ins")).to_have_text("Benedita")
    block = page.locator(".panel .block")
    expect(block).to_have_text(recalled["text"])
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy this text").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == recalled["text"]
    gateway.ask("entries.erase", id=entry)
    page.reload()
    expect(page.locator(".panel .statement")).to_have_text("(query erased)")
    expect(page.locator(".panel")).not_to_contain_text("Amália")


@pytest.mark.parametrize("query", ["can we deploy on a Friday after lunch?", "server", "zzzzqqqq xyzzy"])
def test_search_draws_a_line_at_the_threshold_of_recall(query: str, gateway: Served, visit: Visit) -> None:
    asked = gateway.ask("memory.search", query=query, maxResults=20)
    fits = [hit["confidence"] >= asked["threshold"] for hit in asked["results"]]
    page = visit(gateway, f"#/search?q={query}").page
    expect(page.locator(".hit, .nothing").first).to_be_visible()
    expect(page.locator(".hits.fitting .hit")).to_have_count(fits.count(True))
    expect(page.locator(".hits.others .hit")).to_have_count(fits.count(False))
    if not all(fits):
        line = "An agent gets only" if any(fits) else "Nothing is relevant enough"
        expect(page.locator(".threshold")).to_contain_text(line)
