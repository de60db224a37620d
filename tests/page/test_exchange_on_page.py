"""Import and export on the page: a preview, the import, a report, an undo, and a download of what is filtered."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Visit

pytestmark = pytest.mark.integration

MEM0 = {
    "results": [
        {"id": "m1", "memory": "The kiln fires on Mondays", "user_id": "rui"},
        {"memory": "Tea at four"},
    ]
}
CHATGPT = [
    {
        "id": "c1",
        "mapping": {
            "n1": {
                "message": {"id": "b1", "recipient": "bio", "content": {"parts": ["Has a cat called Pico"]}}
            }
        },
    }
]


@pytest.fixture
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without vectors and with one memory."""
    with served(tmp_path_factory.mktemp("gateway"), {"embedding": {"provider": "none"}}) as running:
        running.ask("entries.add", text="Tea at four", tags=["tea"])
        yield running


def texts(gateway: Served) -> list[str]:
    return sorted(one["text"] for one in gateway.ask("entries.list")["entries"])


def test_files_are_previewed_imported_and_undone(gateway: Served, visit: Visit, tmp_path: Path) -> None:
    mem0, chatgpt, note = tmp_path / "mem0.json", tmp_path / "conversations.json", tmp_path / "kiln.md"
    mem0.write_text(json.dumps(MEM0))
    chatgpt.write_text(json.dumps(CHATGPT))
    note.write_text("# Kiln\n\nFired at 1200 degrees.\n")
    broken = tmp_path / "broken.json"
    broken.write_text("[{]")
    page = visit(gateway, "#/memories").page
    page.get_by_role("button", name="Import …").click()
    expect(page.get_by_role("dialog")).to_contain_text("Recognised exports: ChatGPT, Claude")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Choose files").set_input_files([mem0, chatgpt, note, broken])
    expect(dialog.locator(".import-file", has_text="mem0.json")).to_contain_text(
        "1 new memory. 1 already exists."
    )
    expect(dialog.locator(".import-file", has_text="mem0.json")).to_contain_text("The kiln fires on Mondays")
    expect(dialog.locator(".import-file", has_text="conversations.json")).to_contain_text(
        "Has a cat called Pico"
    )
    expect(dialog.locator(".import-file", has_text="kiln.md")).to_contain_text("memory/imported/kiln.md")
    expect(dialog.locator(".import-file", has_text="broken.json").get_by_role("alert")).to_be_visible()
    assert texts(gateway) == ["Tea at four"]
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator(".said")).to_contain_text("Imported. 2 new memories. 1 already exists. 1 note.")
    expect(page.locator(".entries")).to_contain_text("Has a cat called Pico")
    assert texts(gateway) == ["Has a cat called Pico", "Tea at four", "The kiln fires on Mondays"]
    page.keyboard.press("u")
    expect(page.locator(".said")).to_contain_text("The import was undone.")
    expect(page.locator(".entries tr[data-id]")).to_have_count(1)
    assert texts(gateway) == ["Tea at four"]
    assert not (gateway.workspace / "memory/imported/kiln.md").exists()


def conversation(number: int, text: str, question: str = "Where is the jar?") -> dict[str, Any]:
    """A conversation as ChatGPT exports it."""
    said = {
        "q": ("user", question, None, ["a"]),
        "a": ("assistant", text, "q", []),
    }
    nodes = {
        key: {
            "id": key,
            "parent": parent,
            "children": children,
            "message": {
                "id": key,
                "author": {"role": role},
                "create_time": 1_700_000_000 + number,
                "content": {"content_type": "text", "parts": [words]},
                "recipient": "all",
            },
        }
        for key, (role, words, parent, children) in said.items()
    }
    return {"id": f"talk-{number}", "title": f"Jar {number}", "mapping": nodes, "current_node": "a"}


#: Drops files on an element as a person does: over it, and then down.
DROPPED = """async ([selector, files]) => {
  const data = new DataTransfer();
  for (const [name, bytes] of files) data.items.add(new File([new Uint8Array(bytes)], name));
  const target = document.querySelector(selector);
  const at = { bubbles: true, cancelable: true, dataTransfer: data };
  target.dispatchEvent(new DragEvent("dragenter", at));
  const taken = !target.dispatchEvent(new DragEvent("dragover", at));
  const shown = document.querySelector(".dropping") !== null;
  target.dispatchEvent(new DragEvent("drop", at));
  return [taken, shown, document.querySelector(".dropping") !== null];
}"""


def archive(files: dict[str, str], method: int = zipfile.ZIP_DEFLATED) -> list[int]:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return list(stream.getvalue())


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_dropped_archive_becomes_sessions_and_memories_and_is_undone(
    method: int, gateway: Served, visit: Visit
) -> None:
    pasted = "Fwd: the jars\n> I prefer blue jars."
    talks = [conversation(1, "On the shelf beside the quinces."), conversation(2, "在窗边的架子上。", pasted)]
    files = {"chat.html": "<p>", "export/conversations.json": json.dumps([*talks, *CHATGPT])}
    page = visit(gateway, "#/memories").page
    expect(page.locator(".entries")).to_be_visible()
    dropped = page.evaluate(DROPPED, ["h1", [["chatgpt.zip", archive(files, method)]]])
    assert dropped == [True, True, False]
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".import-file")).to_contain_text("1 new memory. 2 new conversations.")
    expect(dialog.locator(".import-file")).to_contain_text("Jar 2")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator(".said")).to_contain_text(
        "Imported. 1 new memory. 2 new conversations. 2 messages in them are never added to a prompt"
    )
    found = gateway.ask("memory.search", query="shelf quinces", source="sessions")["results"]
    assert [hit["path"] for hit in found] == ["sessions/chatgpt/talk-1.jsonl"]
    page.keyboard.press("u")
    expect(page.locator(".said")).to_contain_text("The import was undone.")
    assert texts(gateway) == ["Tea at four"]
    assert list(gateway.home.rglob("talk-*.jsonl")) == []


def test_a_file_larger_than_a_request_is_imported_in_parts(gateway: Served, visit: Visit) -> None:
    talks = [conversation(number, '架子["上"] {, \\ ' * 20_000) for number in range(20)]
    page = visit(gateway, "#/memories").page
    expect(page.locator(".entries")).to_be_visible()
    data = json.dumps(talks, ensure_ascii=False).encode()
    assert len(data) > 4 * 1024 * 1024  # more than the gateway accepts at once
    page.get_by_role("button", name="Import …").click()
    dialog = page.get_by_role("dialog")
    file = {"name": "conversations.json", "mimeType": "application/json", "buffer": data}
    dialog.get_by_label("Choose files").set_input_files([file])
    expect(dialog.locator(".import-file")).to_contain_text("20 new conversations.")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator(".said")).to_contain_text("Imported. 20 new conversations.")
    assert len(list(gateway.home.rglob("talk-*.jsonl"))) == 20


def test_an_archive_without_conversations_and_a_damaged_one_are_explained(
    gateway: Served, visit: Visit
) -> None:
    page = visit(gateway, "#/memories").page
    expect(page.locator(".entries")).to_be_visible()
    photos = archive({"photos/cat.txt": "cat"})
    damaged = archive({"conversations.json": json.dumps(CHATGPT)})[:-30]
    page.evaluate(DROPPED, ["main", [["photos.zip", photos], ["damaged.zip", damaged]]])
    files = page.get_by_role("dialog").locator(".import-file")
    expect(files.nth(0).get_by_role("alert")).to_have_text("The archive contains no conversations.json.")
    expect(files.nth(1).get_by_role("alert")).to_contain_text("The archive cannot be read.")


def test_what_is_filtered_or_selected_is_downloaded_and_can_be_imported(
    gateway: Served, visit: Visit
) -> None:
    gateway.ask("entries.add", text="The harbour master is called Ana", tags=["people"])
    page = visit(gateway, "#/memories?tag=people").page
    expect(page.locator(".entries tr[data-id]")).to_have_count(1)
    with page.expect_download() as loaded:
        page.get_by_role("button", name="Download").click()
    lines = [json.loads(line) for line in loaded.value.path().read_text("utf-8").splitlines()]
    assert [one["entry"]["text"] for one in lines[1:]] == ["The harbour master is called Ana"]
    expect(page.locator(".said")).to_contain_text("1 memory was downloaded.")
    page.get_by_role("button", name="Clear filters").click()
    page.locator(".entries tr[data-id]", has_text="Tea at four").locator("input").check()
    with page.expect_download() as loaded:
        page.locator(".several").get_by_role("button", name="Download").click()
    data = loaded.value.path().read_text("utf-8")
    assert gateway.ask("entries.import", data=data, dryRun=True)["already"] == 1


def test_entries_that_cannot_be_imported_are_named_and_left_out(
    gateway: Served, visit: Visit, tmp_path: Path
) -> None:
    file = tmp_path / "list.json"
    file.write_text(json.dumps(["The kiln is hot", "x" * 2_499, "🙂", "The well is deep"]))
    page = visit(gateway, "#/memories").page
    page.get_by_role("button", name="Import …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Choose files").set_input_files(file)
    expect(dialog.get_by_role("alert").first).to_have_text("2 cannot be imported and are left out:")
    expect(dialog.locator(".import-preview").last.locator("li")).to_have_text(
        [re.compile("^Entry 2: .*2,?499"), re.compile("^Entry 3: .*word")]
    )
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator(".said")).to_contain_text("Imported. 2 new memories.")
    assert texts(gateway) == ["Tea at four", "The kiln is hot", "The well is deep"]
