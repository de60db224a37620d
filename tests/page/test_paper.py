"""What is printed: content without empty pages, and a sentence where something is missing."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Visit

pytestmark = pytest.mark.integration

MEMORIES = 600


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("paper"), {"embedding": {"provider": "none"}}) as running:
        lines = [
            {
                "entry": {
                    "id": str(uuid.UUID(int=n + 1)),
                    "text": f"Jar {n} holds honey",
                    "created_at": n + 1.0,
                }
            }
            for n in range(MEMORIES)
        ]
        running.ask("entries.import", data="\n".join(map(json.dumps, lines)))
        running.write("memory/long.md", "\n\n".join(f"Line {n} of the log." for n in range(2_000)))
        yield running


def test_printed_memories_have_no_empty_pages_and_say_which_ones_they_are(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, "#/memories", live=False).page
    expect(page.locator(".entries tbody tr[data-id]").first).to_be_visible()
    pages = page.pdf().count(b"/Type /Page\n")
    assert 1 <= pages <= 20  # empty space for 600 rows would need more
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    expect(page.locator(".on-paper")).to_have_text("Memories 1 to 100 of 600. Download saves all of them.")
    expect(page.locator(".entries tbody tr")).to_have_count(100)
    page.emulate_media(media="screen")
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    expect(page.locator(".entries tr.space")).to_have_count(1)
    assert page.locator(".entries tbody tr[data-id]").count() < 100


def test_a_printed_note_says_which_lines_it_has(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/notes/memory/long.md", live=False).page
    expect(page.get_by_role("button", name="Show more")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator(".rest")).to_have_text(
        "Show moreLines 1 to 1,500 of 3,999. Press “Show more” on the page to print the others too."
    )
    expect(page.locator(".rest .on-paper")).to_be_visible()
    page.emulate_media(media="screen")
    expect(page.locator(".rest .on-paper")).not_to_be_visible()


#: Views, and what a reader of the paper looks for there.
PRINTED = {
    "search": "honey",
    "about/Doubao": "Doubao eats at seven",
    "about": "Doubao",
    "changes": "Doubao is a grey cat",
    "changes/letter": "Doubao is a grey cat",
    "inbox": "The jar is blue",
    "recalls": "what does Doubao eat",
    "operate": "Tokens",
    "health": "memories",
}


def test_every_view_is_printed_with_its_content_and_without_controls(gateway: Served, visit: Visit) -> None:
    gateway.write("memory/cat.md", "# Cat\n\n- Doubao eats at seven\n")
    gateway.ask("memory.sync")
    gateway.ask("entries.add", text="Doubao is a grey cat")
    approval = {"embedding": {"provider": "none"}, "entries": {"approval": "agent"}}
    (gateway.home / "config.yaml").write_text(json.dumps(approval), "utf-8")
    gateway.ask("memory_store", text="The jar is blue")
    gateway.ask("recall", query="what does Doubao eat")
    page = visit(gateway, "#/health", live=False).page
    controls = "main :is(button, textarea, input:placeholder-shown)"
    wrong = {}
    for view, text in PRINTED.items():
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": 1280, "height": 860})
        page.goto(f"{gateway.address}/#/{view}")
        expect(page.locator("main .loading, main[aria-busy=true]")).to_have_count(0)
        expect(page.locator("main")).to_contain_text(text)
        page.set_viewport_size({"width": 700, "height": 1000})  # a sheet of A4
        page.emulate_media(media="print")
        found = {
            "controls": page.locator(controls).locator("visible=true").all_inner_texts(),
            "text": text in page.locator("main").inner_text(),
            "fits": page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"),
        }
        if found != {"controls": [], "text": True, "fits": True}:
            wrong[view] = found
    assert wrong == {}


@pytest.mark.parametrize("width", [375, 1280])
def test_a_table_scrolls_and_its_words_stay_whole(width: int, gateway: Served, visit: Visit) -> None:
    words = ["Responsible", "September", "Infrastructure", "Documentation", "Availability", "Measurements"]
    columns = words * (1 if width == 375 else 3)
    table = [f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), columns)]
    gateway.write(f"memory/table-{width}.md", "\n".join(table))
    size = {"width": width, "height": 800}
    page = visit(gateway, f"#/notes/memory/table-{width}.md", live=False, viewport=size).page
    cells = page.locator(".prose td")
    expect(cells).to_have_count(len(columns))
    # A word that breaks is as high as two lines.
    assert cells.evaluate_all("(all) => all.map((one) => one.getClientRects()[0].height < 45)") == [
        True
    ] * len(columns)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".prose .wide").evaluate("(one) => one.scrollWidth > one.clientWidth")


def test_unknown_views_and_filters_are_named(gateway: Served, visit: Visit) -> None:
    page = visit(gateway, "#/nowhere", live=False).page
    expect(page.locator(".said")).to_have_text("There is no view “nowhere”. This is Search.")
    page.goto(f"{gateway.address}/#/memories?type=bogus")
    expect(page.locator(".said")).to_have_text("Unknown filter, ignored: bogus")
    expect(page.locator(".entries tbody tr[data-id]").first).to_be_visible()
