"""Pictures of every view of the page, light, dark and on a phone: `make screenshots` writes them into docs/images/.

A folder name as argument says where; `--only search-light` makes one of them.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import sample
from browsing import browser, come_in, expect
from serving import Served, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

VIEWS = {
    "search": "#/search?q=where does leaf diagnosis run",
    "home": "#/search",
    "memories": "#/memories",
    "memory": "#/memories/{entry}",
    "notes": "#/notes/memory/projects/fern.md?from=14&to=16",
    "recalls": "#/recalls/{recall}",
    "map": "#/map",
    "health": "#/health",
}
FORMS = {
    "light": {"viewport": {"width": 1200, "height": 740}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1200, "height": 740}, "color_scheme": "dark"},
    "phone": {
        "viewport": {"width": 390, "height": 780},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
        "color_scheme": "light",
    },
}

#: The page asks for the system's fonts; where these are installed, they stand for them.
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
    """Give one memory a past, leave one to approve, and say which memory and which recall are shown."""
    found = gateway.ask("entries.list", query="staging server Frankfurt")["entries"][0]
    new = "The staging server is a rented machine in Helsinki"
    made = gateway.ask("entries.supersede", id=found["id"], text=new)["entry"]
    better = "The staging server is a rented machine in Helsinki, with four cores"
    gateway.ask("entries.edit", id=made["id"], text=better, importance=4, tags=["fern", "servers"])
    gateway.ask("recall", query="where is the staging server?", session="2026-02-10-servers")
    recall = gateway.ask("recalls.list", limit=1)["recalls"][0]
    return {"entry": str(made["id"]), "recall": str(recall["id"])}


def pictures(running: Browser, gateway: Served, places: dict[str, str], folder: Path, only: str) -> None:
    """Each view in each form."""
    for form, options in FORMS.items():
        context = running.new_context(locale="en-GB", reduced_motion="reduce", **options)  # type: ignore[arg-type]
        page = context.new_page()
        come_in(page, gateway, "#/health")
        for view, place in VIEWS.items():
            name = f"{view}-{form}"
            if only in ("", name):
                picture(page, place.format(**places), folder / f"{name}.png")
        context.close()


def picture(page: Page, place: str, file: Path) -> None:
    """One view, once nothing in it is still to come."""
    page.evaluate("place => { location.hash = place; }", place)
    expect(page.locator("main .loading")).to_have_count(0)
    page.locator("main :is(.row, .card, .statement, .note-body > *):visible").first.wait_for()
    page.evaluate("() => document.activeElement?.blur()")
    page.evaluate("() => new Promise((done) => setTimeout(done, 400))")
    page.screenshot(path=str(file))


def main() -> None:
    """Serve the sample and take the pictures."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("folder", type=Path)
    reader.add_argument("--only", default="", metavar="VIEW-FORM")
    chosen = reader.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        fonts = Path(folder) / "fonts.conf"
        fonts.write_text(FONTS, "utf-8")
        os.environ["FONTCONFIG_FILE"] = str(fonts)
        with served(Path(folder), {"entries": {"approval": "agent"}}) as gateway:
            sample.fill(gateway)
            gateway.ask("memory_store", text="The user wants release notes in both languages")
            places = changed(gateway)
            with browser() as running:
                pictures(running, gateway, places, chosen.folder, chosen.only)


if __name__ == "__main__":
    main()
