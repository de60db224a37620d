"""Screenshots of every view, in several forms: `make screenshots` writes them into docs/images/.

A folder name as argument says where; `--only search-light,home-dark` makes some of them.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sample
from browsing import browser, come_in, expect
from serving import Served, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

VIEWS = {
    "search": "#/search?q=where does leaf diagnosis run",
    "home": "#/search",
    "memories": "#/memories",
    "memory": "#/memories/{entry}?sort=updated",
    "notes": "#/notes/memory/projects/fern.md?from=14&to=16",
    "recalls": "#/recalls/{recall}",
    "inbox": "#/inbox",
    "about": "#/about/Fern",
    "operate": "#/operate",
    "health": "#/health",
}
DAY_S = 86_400.0
FORMS = {
    "light": {"viewport": {"width": 1200, "height": 740}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1200, "height": 740}, "color_scheme": "dark"},
    "wide": {"viewport": {"width": 1720, "height": 900}, "color_scheme": "light"},
    "chinese": {"viewport": {"width": 1200, "height": 740}, "color_scheme": "dark", "locale": "zh-CN"},
    "phone": {
        "viewport": {"width": 390, "height": 780},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
        "color_scheme": "light",
    },
}

#: The page uses the fonts of the system. These replace them where they are installed.
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <include>/etc/fonts/fonts.conf</include>
  <match><test name="family"><string>system-ui</string></test>
    <edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit></match>
  <match><test name="family"><string>ui-sans-serif</string></test>
    <edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit></match>
</fontconfig>
"""


def changed(gateway: Served) -> dict[str, str]:
    """Import a memory with a history; return which memory and which recall are shown."""
    lines = past(time.time())
    gateway.ask("entries.import", data="\n".join(json.dumps(line) for line in lines))
    gateway.ask("recall", query="what does Fern cost?", session="2026-02-10-servers")
    recall = gateway.ask("recalls.list", limit=1)["recalls"][0]
    return {"entry": lines[1]["entry"]["id"], "recall": str(recall["id"])}


def waiting(gateway: Served) -> None:
    """Let an agent store something that it said in a conversation and that waits for approval."""
    text = "Release notes are written in English and Chinese"
    talk = (
        ("user", "Who reads our release notes?"),
        ("assistant", f"{text}, as half of the testers are in Chengdu."),
    )
    gateway.session("2026-02-12-release", *talk)
    made = gateway.ask("tokens.create", name="editor", access="write", agents=[])
    headers = {"X-Memoriter-Session": "2026-02-12-release", "Authorization": f"Bearer {made['token']}"}
    gateway.client.post(
        "/v1/agents/main/memory_store", json={"text": text}, headers=headers
    ).raise_for_status()


def past(now: float) -> list[dict[str, Any]]:
    """Return an exported memory that replaced another and was edited since."""
    told, replaced, edited = now - 41 * DAY_S, now - 12 * DAY_S, now - 5 * 3600
    price = {"type": "project_context", "tags": ["fern", "money"], "source": "conversation", "importance": 3}

    def version(text: str, at: float, since: float, **more: object) -> dict[str, Any]:
        entry_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"price {at}"))
        times = {"created_at": at, "updated_at": since, "valid_from": at, "expires_at": now + 300 * DAY_S}
        return {**price, "id": entry_id, "text": text, **times, **more}

    new = version("Fern costs 4 euros a month", replaced, replaced)
    better = version("Fern costs 4 euros a month, or 40 a year", replaced, edited, importance=4)
    first = version("Fern costs 3 euros a month", told, told)
    old = {**first, "updated_at": replaced, "state": "superseded", "superseded_by": new["id"]}

    def event(number: int, at: float, kind: str, after: dict[str, Any], **more: object) -> dict[str, Any]:
        head = {"seq": number, "change": number, "at": at, "kind": kind, "by": "owner", "note": ""}
        return {**head, "entry_id": after["id"], "after": after, **more}

    return [
        {
            "entry": old,
            "history": [
                event(9001, told, "add", first),
                event(9002, replaced, "supersede", old, before=first),
            ],
        },
        {
            "entry": better,
            "history": [event(9003, replaced, "add", new), event(9004, edited, "update", better, before=new)],
        },
    ]


def pictures(running: Browser, gateway: Served, places: dict[str, str], folder: Path, only: str) -> None:
    """Take a screenshot of each view in each format."""
    expect.set_options(timeout=120_000)
    for form, options in FORMS.items():
        context = running.new_context(**{"locale": "en-GB", "reduced_motion": "reduce", **options})  # type: ignore[arg-type]
        context.set_default_timeout(120_000)
        page = context.new_page()
        come_in(page, gateway, "#/health")
        for view, place in VIEWS.items():
            name = f"{view}-{form}"
            if not only or name in only.split(","):
                picture(page, place.format(**places), folder / f"{name}.png")
        context.close()


def picture(page: Page, place: str, file: Path) -> None:
    """Take a screenshot of one view after it has loaded."""
    page.evaluate("place => { location.hash = place; }", place)
    expect(page.locator("main .loading")).to_have_count(0)
    page.locator("main :is(.row, .card, .statement, .note-body > *, .inbox-card):visible").first.wait_for()
    page.evaluate("() => document.activeElement?.blur()")
    page.evaluate("() => new Promise((done) => setTimeout(done, 400))")
    page.screenshot(path=str(file))


def main() -> None:
    """Serve the sample and take the screenshots."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("folder", type=Path)
    reader.add_argument("--only", default="", metavar="VIEW-FORM,…")
    reader.add_argument("--memory", type=Path, help="An empty folder for the sample. Operate shows its path.")
    chosen = reader.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        fonts = Path(folder) / "fonts.conf"
        fonts.write_text(FONTS, "utf-8")
        os.environ["FONTCONFIG_FILE"] = str(fonts)
        with served(chosen.memory or Path(folder), {"entries": {"approval": "agent"}}) as gateway:
            sample.fill(gateway)
            waiting(gateway)
            places = changed(gateway)
            with browser() as running:
                pictures(running, gateway, places, chosen.folder, chosen.only)


if __name__ == "__main__":
    main()
