"""axe finds no problem in any view, panel or dialog: both themes, both languages, phones and wide screens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from conftest import Visit

pytestmark = pytest.mark.integration

AXE = Path(__file__).parents[2] / ".tools/axe/node_modules/axe-core/axe.min.js"
#: Places, and what is there when the view is complete.
VIEWS = {
    "search": ".today",
    "search?q=server": ".hit",
    "memories": ".entries tr[data-id]",
    "notes/memory/projects/launch.md": ".prose p",
    "recalls": ".recall-line",
    "notes": ".tree .row",
    "notes/sessions/2026-02-10-servers.jsonl": ".turn",
    "health": ".verdict",
    "inbox": ".inbox, .nothing",
    "operate": "[data-card=settings]",
    "about": ".thing",
    "about/Fern": ".about [data-section]",
    "changes": ".history li",
    "changes/letter": "[data-section=learned]",
}
#: The rules that depend on the theme.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
RUN = """(rules) =>
  axe.run(document, { resultTypes: ["violations"], elementRef: false, ...(rules && { runOnly: rules }) })"""
SIZES = {
    "phone": (320, "en-GB"),
    "tablet": (768, "zh-CN"),
    "desk": (1280, "en-GB"),
    "wide": (1920, "en-GB"),
}


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: `make integration` fetches it")
    return AXE.read_text("utf-8")


def problems(page: Page, axe: str) -> list[tuple[str, str, str]]:
    """Return the problems that axe finds in each theme, and where. Best practices count."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe)
    wrong = []
    for theme, rules in (("light", None), ("dark", COLOUR_RULES)):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        found = page.evaluate(RUN, rules)
        wrong += [
            (theme, one["id"], node["html"][:160]) for one in found["violations"] for node in one["nodes"]
        ]
    return wrong


@pytest.mark.parametrize(("width", "language"), SIZES.values(), ids=SIZES)
def test_views_have_no_problems(width: int, language: str, axe: str, gateway: Served, visit: Visit) -> None:
    size = {"width": width, "height": 860}
    page = visit(gateway, "#/health", viewport=size, locale=language, reduced_motion="reduce").page
    wrong = {}
    for view, shown in VIEWS.items():
        page.goto(f"{gateway.address}/#/{view}")
        expect(page.locator(shown).first).to_be_attached()
        expect(page.locator("main .loading, main[aria-busy=true]")).to_have_count(0)
        if found := problems(page, axe):
            wrong[view] = found
    assert wrong == {}


@pytest.mark.parametrize("width", [320, 1280], ids=["phone", "desk"])
def test_panels_and_dialogs_have_no_problems(width: int, axe: str, gateway: Served, visit: Visit) -> None:
    size = {"width": width, "height": 860}
    page = visit(gateway, "#/memories", viewport=size, reduced_motion="reduce").page
    page.keyboard.press("f")
    expect(page.locator("[data-filter]").first).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("f")
    page.locator(".entries .row").first.click()
    expect(page.locator(".panel .history")).to_be_visible()
    assert problems(page, axe) == []
    for action in ("edit", "supersede"):
        page.locator(f"[data-do={action}]").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert problems(page, axe) == []
        page.keyboard.press("Escape")
    page.locator("[data-do=forget]").click()
    expect(page.get_by_role("button", name="Erase now …")).to_be_visible()
    assert problems(page, axe) == []
    page.get_by_role("button", name="Erase now …").click()
    expect(page.get_by_role("button", name="Erase permanently")).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Forget …").click()
    page.get_by_label("What should be forgotten?").fill("the server")
    page.get_by_role("button", name="Show what would be forgotten").click()
    expect(page.get_by_role("dialog").get_by_role("checkbox").first).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New memory").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog").get_by_role("option").first).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    page.goto(f"{gateway.address}/#/recalls")
    page.locator(".recall-line").first.click()
    expect(page.locator(".considered").first).to_be_visible()
    assert problems(page, axe) == []


@pytest.mark.parametrize("width", [320, 1280], ids=["phone", "desk"])
def test_the_dialogs_that_delete_a_session_have_no_problems(
    width: int, axe: str, gateway: Served, visit: Visit
) -> None:
    name = f"axe-{width}"
    gateway.session(name, ("user", "The boat is in the harbour"), ("assistant", "Noted."))
    size = {"width": width, "height": 860}
    page = visit(gateway, f"#/notes/sessions/{name}.jsonl", viewport=size, reduced_motion="reduce").page
    page.locator(".note-actions [data-do=remove]").click()
    delete = page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True)
    expect(delete).to_be_visible()
    assert problems(page, axe) == []
    delete.click()
    expect(page.get_by_role("dialog").locator(".receipt")).to_be_visible()
    assert problems(page, axe) == []


@pytest.mark.parametrize("width", [320, 1920], ids=["phone", "wide"])
def test_dialogs_of_several_memories_and_files_have_no_problems(
    width: int, axe: str, gateway: Served, visit: Visit
) -> None:
    size = {"width": width, "height": 860}
    page = visit(gateway, "#/memories", viewport=size, reduced_motion="reduce").page
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Import …").click()
    assert problems(page, axe) == []
    broken = {
        "name": "list.json",
        "mimeType": "application/json",
        "buffer": b'[{"text": "Tea at four"}, "broken',
    }
    good = {**broken, "name": "good.json", "buffer": b'[{"text": "Tea at four"}]'}
    dialog.get_by_label("Choose files").set_input_files([broken, good])
    expect(dialog.get_by_role("button", name="Import", exact=True)).to_be_visible()
    assert problems(page, axe) == []
    page.keyboard.press("Escape")
    for number in (0, 1):
        page.locator(".entries tr[data-state=active] input").nth(number).check()
    assert problems(page, axe) == []
    for name in ("Merge", "Add tags"):
        page.locator(".several").get_by_role("button", name=name).click()
        expect(dialog.get_by_role("button", name=name)).to_be_visible()
        assert problems(page, axe) == []
        page.keyboard.press("Escape")


@pytest.mark.parametrize("width", [320, 1280], ids=["phone", "desk"])
def test_dialogs_of_things_and_of_operate_have_no_problems(
    width: int, axe: str, gateway: Served, visit: Visit
) -> None:
    page = visit(
        gateway, "#/about/Fern", viewport={"width": width, "height": 860}, reduced_motion="reduce"
    ).page
    dialog, wrong = page.get_by_role("dialog"), {}

    def look(name: str, *, leave: bool = True) -> None:
        if found := problems(page, axe):
            wrong[name] = found
        if leave:
            page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)

    for action in ("join", "correct", "forget"):
        page.locator(f"[data-do={action}]").first.click()
        expect(dialog.get_by_role("button").last).to_be_visible()
        look(action)
    page.keyboard.press("Control+k")
    page.keyboard.type("Why did you")
    page.keyboard.press("Enter")
    dialog.get_by_role("textbox").fill("The launch is in March")
    page.keyboard.press("Control+Enter")
    expect(dialog.locator(".considered, .nothing").first).to_be_visible()
    look("why")
    page.goto(f"{gateway.address}/#/operate")
    page.locator("[data-do=token]").click()
    look("new token", leave=False)
    dialog.get_by_label("Name").fill(f"phone {width}")
    page.keyboard.press("Control+Enter")
    expect(dialog.locator("pre")).to_be_visible()
    look("token")
    page.locator("[data-card=tokens] li", has_text=f"phone {width}").locator("[data-do=revoke]").click()
    look("revoke")
    page.locator("[data-do=backup]").click()
    page.locator("[data-do=restore]").first.click()
    expect(dialog.get_by_role("button", name="Restore", exact=True)).to_be_visible()
    look("restore")
    assert wrong == {}


@pytest.mark.parametrize("width", [320, 1280], ids=["phone", "desk"])
def test_cards_of_the_inbox_and_receipts_have_no_problems(
    width: int, axe: str, tmp_path: Path, visit: Visit
) -> None:
    size = {"width": width, "height": 860}
    with served(tmp_path, {"embedding": {"provider": "none"}, "entries": {"approval": "agent"}}) as gateway:
        gateway.ask("entries.import", data='["Jonas is allergic to nuts", "Jonas is not allergic to nuts"]')
        gateway.ask("memory_save", content="The mill is closed", title="Mill", category="town")
        gateway.ask("memory_store", text="The gate squeaks")
        gateway.write("memory/boat.md", "# Boat\n")
        version = gateway.ask("notes.text", path="memory/boat.md")["version"]
        gateway.ask("notes.remove", path="memory/boat.md", version=version)
        page = visit(gateway, "#/inbox", viewport=size, reduced_motion="reduce").page
        dialog, wrong = page.get_by_role("dialog"), {}
        for kind in ("entry", "note", "proposal"):
            expect(page.locator(f".inbox-card[data-kind={kind}] [data-do=edit]")).to_be_visible()
            wrong[kind] = problems(page, axe)
            page.keyboard.press("e")
            expect(dialog.get_by_role("textbox").first).to_be_visible()
            wrong[f"edit {kind}"] = problems(page, axe)
            page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)
            page.keyboard.press("l")
        for view, shown in (("changes", "[data-do=restore]"), ("about/Jonas", "[data-do=keep]")):
            page.goto(f"{gateway.address}/#/{view}")
            expect(page.locator(shown).first).to_be_visible()
            wrong[view] = problems(page, axe)
        page.locator("[data-do=forget]").click()
        dialog.get_by_role("button", name="Forget everywhere").click()
        expect(page.locator(".receipt")).to_be_visible()
        wrong["receipt"] = problems(page, axe)
    assert {name: found for name, found in wrong.items() if found} == {}


def test_a_conflict_about_a_memory_has_no_problems(axe: str, gateway: Served, visit: Visit) -> None:
    entry = gateway.ask("entries.add", text="The ferry leaves at eight")["entry"]["id"]
    page = visit(gateway, f"#/memories/{entry}", reduced_motion="reduce").page
    page.locator("[data-do=edit]").click()
    page.locator("dialog textarea").fill("The ferry leaves at nine")
    gateway.ask("entries.edit", id=entry, text="The ferry leaves at ten")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".conflict")).to_contain_text("Their version")
    assert problems(page, axe) == []


def test_writing_a_note_and_its_conflict_have_no_problems(axe: str, gateway: Served, visit: Visit) -> None:
    note = gateway.write("memory/quay.md", "# Quay\n\nSwept on Mondays.\n")
    gateway.ask("memory.sync")
    page = visit(gateway, "#/notes/memory/quay.md", reduced_motion="reduce").page
    dialog = page.get_by_role("dialog")
    for name in ("Rename or move", "New note"):
        page.get_by_role("button", name=name).click()
        expect(dialog).to_be_visible()
        assert problems(page, axe) == []
        page.keyboard.press("Escape")
    page.locator("[data-do=edit]").click()
    page.locator(".note-source").fill("# Quay\n\nSwept on Tuesdays.\n")
    assert problems(page, axe) == []
    note.write_text("# Quay\n\nSwept on Sundays.\n", "utf-8")
    page.keyboard.press("Control+s")
    expect(page.locator(".conflict")).to_contain_text("Sundays")
    assert problems(page, axe) == []


def test_the_first_visit_and_the_end_of_a_session_have_no_problems(
    axe: str, empty_gateway: Served, visit: Visit
) -> None:
    page = visit(empty_gateway, reduced_motion="reduce").page
    expect(page.locator(".steps")).to_be_visible()
    assert problems(page, axe) == []
    page.context.clear_cookies()
    page.evaluate("location.hash = '#/memories'")  # a request of the page itself may end the session before
    expect(page.locator(".ended")).to_be_visible()
    assert problems(page, axe) == []
