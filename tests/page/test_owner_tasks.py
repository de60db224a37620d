"""Twenty tasks of an owner, each with a limit: clicks and shortcuts count, typing does not."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from playwright.sync_api import Locator, Page

    from conftest import Visit

pytestmark = pytest.mark.integration

DAY_MS = 86_400_000


class Owner:
    """Someone who starts at Home and may click and press keys a few times."""

    def __init__(self, page: Page, limit: int) -> None:
        self.page = page
        self._left = limit

    def click(self, what: Locator | str) -> None:
        """Click once: an element, or a button or link by its name."""
        self._spend()
        if not isinstance(what, str):
            what.first.click()
            return
        named = self.page.get_by_role("button", name=what, exact=True)
        (named.or_(self.page.get_by_role("link", name=what, exact=True))).last.click()

    def press(self, key: str) -> None:
        """Press a shortcut."""
        self._spend()
        self.page.keyboard.press(key)

    def _spend(self) -> None:
        self._left -= 1
        assert self._left >= 0, "this takes more steps than allowed"


@contextmanager
def known(folder: Path, more: Sequence[Mapping[str, object]] = ()) -> Iterator[Served]:
    """Serve two agents without vectors. They know a cat, a house and a colleague, and further statements."""
    (folder / "studio").mkdir(parents=True)
    settings = {
        "embedding": {"provider": "none"},
        "entries": {"approval": "agent"},
        "gateway": {"agents": {"studio": str(folder / "studio")}, "limits": {"timeout_s": 1800}},
    }
    with served(folder, settings) as running:
        running.client.timeout = 1800
        for start in range(0, len(more), 5_000):
            running.ask("entries.import", data=json.dumps(more[start : start + 5_000]))
        running.write("memory/cat.md", "# Cat\n\n- Doubao eats at seven\n")
        running.write("memory/house.md", "# House\n\nThe boiler is in the celar.\n\n- [ ] Call the plumber\n")
        running.session("talk", ("user", "Doubao sleeps on the desk"), ("assistant", "Good to know."))
        for text in ("Doubao is a grey cat", "The office opens at nine", "Ana paints boats"):
            running.ask("entries.add", text=text)
        data = '["Jonas is allergic to nuts", "Jonas is not allergic to nuts", "The attic is dry"]'
        running.ask("entries.import", data=data)
        running.ask("entries.add", "studio", text="The press needs new rollers")
        running.ask("memory.sync")
        running.ask("recall", query="When does the office open?")
        yield running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with known(tmp_path_factory.mktemp("tasks")) as running:
        yield running


def at_home(page: Page, limit: int) -> Owner:
    """Return an owner at Home with this many steps."""
    expect(page.locator(".today")).to_be_visible()
    page.locator("h2").first.click()  # the focus leaves the search
    return Owner(page, limit)


@pytest.fixture
def owner(gateway: Served, visit: Visit) -> Callable[[int], Owner]:
    """Return a function that opens Home for an owner with this many steps."""

    return lambda limit: at_home(visit(gateway, "#/search").page, limit)


def states(gateway: Served) -> dict[str, str]:
    return {one["text"]: one["state"] for one in gateway.ask("entries.list", states=[])["entries"]}


def test_why_did_the_agent_say_that(owner: Callable[[int], Owner]) -> None:
    me = owner(3)
    me.click(me.page.get_by_role("link", name="Recalls"))
    me.click("Why did you say that?")
    me.page.get_by_label("What the agent said").fill("The office opens at nine.")
    me.press("Control+Enter")
    expect(me.page.locator("dialog .then").first).to_have_text("The office opens at nine")


def test_it_remembers_something_wrong_and_is_corrected(
    gateway: Served, owner: Callable[[int], Owner]
) -> None:
    me = owner(4)
    me.press("/")
    me.page.keyboard.type("boats")
    me.click(me.page.locator(".hit .place"))
    expect(me.page.locator(".panel .statement")).to_have_text("Ana paints boats")
    me.press("e")
    me.page.get_by_label("Statement").fill("Ana paints bridges")
    me.press("Control+Enter")
    expect(me.page.locator(".panel .statement")).to_have_text("Ana paints bridges")
    assert states(gateway)["Ana paints bridges"] == "active"


def test_everything_about_one_thing_is_forgotten_and_proven(
    gateway: Served, owner: Callable[[int], Owner]
) -> None:
    me = owner(4)
    me.click(me.page.get_by_role("link", name="Things"))
    me.click(me.page.locator(".thing", has_text="Doubao"))
    me.click(me.page.locator("[data-do=forget]"))
    me.click(me.page.locator("dialog").get_by_role("button", name="Forget everywhere"))
    expect(me.page.locator(".receipt")).to_contain_text(
        "No memory, note or conversation mentions it any more."
    )
    assert "Doubao" not in (gateway.workspace / "memory/cat.md").read_text("utf-8")
    me.page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    me.page.keyboard.press("u")  # the next task finds it as it was
    expect(me.page.locator(".said")).to_contain_text("undone")


def test_what_waits_is_approved(gateway: Served, owner: Callable[[int], Owner]) -> None:
    gateway.ask("memory_store", text="The gate squeaks")
    me = owner(2)
    me.click(me.page.locator(".tile[data-name=waiting]"))
    expect(me.page.locator(".inbox-card .statement")).to_have_text("The gate squeaks")
    me.press("a")
    expect(me.page.locator(".said")).to_contain_text("Approved: The gate squeaks")
    assert states(gateway)["The gate squeaks"] == "active"


def test_what_waits_is_edited_and_approved_and_all_of_it_undone(
    gateway: Served, owner: Callable[[int], Owner]
) -> None:
    gateway.ask("memory_store", text="The fence is red")
    me = owner(4)
    me.click(me.page.locator(".tile[data-name=waiting]"))
    expect(me.page.locator(".inbox-card .statement")).to_have_text("The fence is red")
    me.press("e")
    me.page.get_by_role("dialog").get_by_label("Statement").fill("The fence is green")
    me.press("Control+Enter")
    expect(me.page.locator(".said")).to_contain_text("Approved: The fence is green")
    me.press("u")
    expect(me.page.locator(".said")).to_contain_text("approval again: The fence is red")
    expect(me.page.locator(".inbox-card .statement")).to_have_text("The fence is red")
    assert states(gateway)["The fence is red"] == "staged"
    me.page.keyboard.press("r")
    expect(me.page.locator(".said")).to_contain_text("Rejected: The fence is red")


def test_a_typo_in_a_note_is_found_and_fixed(gateway: Served, owner: Callable[[int], Owner]) -> None:
    me = owner(4)
    me.press("/")
    me.page.keyboard.type("boiler")
    me.click(me.page.locator(".hit .place", has_text="house.md"))
    expect(me.page.locator(".prose")).to_contain_text("celar")
    me.press("e")
    source = me.page.locator(".note-source")
    source.fill(source.input_value().replace("celar", "cellar"))
    me.press("Control+s")
    expect(me.page.locator(".prose")).to_contain_text("cellar")
    assert "cellar" in (gateway.workspace / "memory/house.md").read_text("utf-8")


def test_a_task_is_ticked(gateway: Served, owner: Callable[[int], Owner]) -> None:
    me = owner(3)
    me.press("/")
    me.page.keyboard.type("plumber")
    me.click(me.page.locator(".hit .place", has_text="house.md"))
    me.click(me.page.locator("input.task"))
    expect(me.page.locator(".said")).to_be_visible()
    assert "- [x] Call the plumber" in (gateway.workspace / "memory/house.md").read_text("utf-8")


CHATGPT = [
    {
        "id": "c1",
        "title": "Kiln",
        "create_time": 1_760_000_000,
        "mapping": {
            "n1": {
                "message": {
                    "id": "a1",
                    "author": {"role": "user"},
                    "create_time": 1_760_000_000,
                    "content": {"content_type": "text", "parts": ["My kiln fires on Mondays"]},
                }
            }
        },
    }
]


def test_conversations_of_chatgpt_are_imported_and_opened(
    owner: Callable[[int], Owner], tmp_path: Path
) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(CHATGPT), "utf-8")
    me = owner(4)
    me.click(me.page.get_by_role("link", name="Memories"))
    me.click("Import …")
    me.page.get_by_label("Choose files").set_input_files(file)
    me.click(me.page.locator("dialog button.primary"))
    me.click(me.page.locator(".said").get_by_role("link"))
    expect(me.page.locator(".turn")).to_contain_text("My kiln fires on Mondays")


def test_memories_of_mem0_are_imported(
    gateway: Served, owner: Callable[[int], Owner], tmp_path: Path
) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps({"results": [{"id": "m1", "memory": "The ladder is in the shed"}]}), "utf-8")
    me = owner(3)
    me.click(me.page.get_by_role("link", name="Memories"))
    me.click("Import …")
    me.page.get_by_label("Choose files").set_input_files(file)
    me.click(me.page.locator("dialog button.primary"))
    expect(me.page.locator(".said")).to_contain_text("Imported")
    assert states(gateway)["The ladder is in the shed"] == "active"


def test_memories_that_were_never_used_are_listed(owner: Callable[[int], Owner]) -> None:
    me = owner(1)
    me.click(me.page.locator(".recent", has_text="Never used").locator(".all"))
    expect(me.page.locator(".entries")).to_contain_text("The attic is dry")
    expect(me.page.locator(".entries")).not_to_contain_text("The office opens at nine")


def test_memories_that_are_used_most_come_first(owner: Callable[[int], Owner]) -> None:
    me = owner(1)
    expect(me.page.locator(".recent", has_text="Most used").locator(".uses").first).to_be_visible()
    me.click(me.page.locator(".recent", has_text="Most used").locator(".all"))
    expect(me.page.locator(".entries .row").first).to_have_text("The office opens at nine")


def test_what_changed_this_week_is_told(owner: Callable[[int], Owner]) -> None:
    me = owner(1)
    me.click("Weekly letter")
    expect(me.page.locator("[data-section=learned]")).to_contain_text("The attic is dry")


def test_of_two_contradicting_memories_one_is_kept(gateway: Served, owner: Callable[[int], Owner]) -> None:
    me = owner(3)
    me.click(me.page.get_by_role("link", name="Things"))
    me.click(me.page.locator(".thing", has_text="Jonas"))
    kept = me.page.locator(".side-by-side", has_text="is not allergic")
    me.click(kept.get_by_role("button", name="Keep this one"))
    expect(me.page.locator(".said")).to_contain_text("Jonas is not allergic to nuts")
    assert states(gateway)["Jonas is allergic to nuts"] == "rejected"


def test_whether_anything_is_broken_is_one_click_away(owner: Callable[[int], Owner]) -> None:
    me = owner(1)
    me.click(me.page.get_by_role("link", name="Health"))
    expect(me.page.locator(".verdict")).to_be_visible()


def test_a_new_agent_gets_a_token(owner: Callable[[int], Owner]) -> None:
    me = owner(4)
    me.click(me.page.get_by_role("link", name="Health"))
    me.click("Operate")
    me.click("New token …")
    me.page.get_by_label("Name").fill("Cursor")
    me.click("Create")
    expect(me.page.locator("dialog pre")).to_contain_text("mmr_")


def test_the_memories_of_two_agents_are_apart(owner: Callable[[int], Owner]) -> None:
    me = owner(1)
    me.press("Control+k")
    me.page.keyboard.type("studio")
    me.page.get_by_role("option", name="Switch to the agent studio").wait_for()
    me.page.keyboard.press("Enter")
    expect(me.page.get_by_text("The press needs new rollers").first).to_be_visible()
    expect(me.page.get_by_text("The attic is dry")).to_have_count(0)


def test_what_was_rejected_is_restored(gateway: Served, owner: Callable[[int], Owner]) -> None:
    gateway.ask("memory_store", text="The well is deep")
    listed = gateway.ask("entries.list", states=["staged"])["entries"]
    (entry,) = (one for one in listed if one["text"] == "The well is deep")
    gateway.ask("entries.reject", ids=[entry["id"]])
    me = owner(2)
    me.click("What changed")
    item = me.page.locator(".history li", has_text="The well is deep").first
    me.click(item.locator("[data-do=undo]"))
    expect(me.page.locator(".said")).to_contain_text("Undone")
    assert states(gateway)["The well is deep"] == "staged"
    gateway.ask("entries.approve", ids=[entry["id"]])


def test_a_note_that_was_deleted_yesterday_is_restored(
    gateway: Served, owner: Callable[[int], Owner]
) -> None:
    gateway.write("memory/people/ana.md", "# Ana\n")
    version = gateway.ask("notes.text", path="memory/people/ana.md")["version"]
    gateway.ask("notes.remove", path="memory/people/ana.md", version=version)
    (stamp,) = (gateway.home / "agents/main/deleted").iterdir()
    stamp.rename(stamp.with_name(str(int(stamp.name) - DAY_MS)))
    me = owner(1)
    me.click(me.page.locator("[data-do=restore]"))
    expect(me.page.locator(".said")).to_contain_text("Restored.")
    assert (gateway.workspace / "memory/people/ana.md").is_file()


def test_what_was_forgotten_is_restored(gateway: Served, owner: Callable[[int], Owner]) -> None:
    entry = gateway.ask("entries.add", text="The pond freezes in March")["entry"]
    gateway.ask("entries.forget", id=entry["id"])
    me = owner(2)
    me.click("What changed")
    item = me.page.locator(".history li", has_text="The pond freezes in March").first
    me.click(item.locator("[data-do=undo]"))
    expect(me.page.locator(".said")).to_contain_text("Undone")
    assert states(gateway)["The pond freezes in March"] == "active"


def test_the_memory_moves_to_another_machine(owner: Callable[[int], Owner]) -> None:
    me = owner(4)
    me.click(me.page.get_by_role("link", name="Health"))
    me.click("Operate")
    expect(me.page.locator("[data-card=move]")).to_contain_text("memoriter restore")
    me.click("Back up now")
    with me.page.expect_download() as waiting:
        me.click(me.page.locator("[data-card=backups]").get_by_role("button", name="Download"))
    assert waiting.value.suggested_filename.endswith(".zip")
