"""A film of a search, a correction and a receipt. `make screenshots` writes it into docs/images/."""

from __future__ import annotations

import argparse
import io
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import sample
from browsing import browser, come_in, expect
from PIL import Image
from screenshots import FONTS, changed
from serving import served

if TYPE_CHECKING:
    from playwright.sync_api import Page

SIZE = {"width": 1140, "height": 700}


class Film:
    """Pictures of a page, each with the time for which it is shown."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[Image.Image] = []
        self.times: list[int] = []

    def show(self, milliseconds: int) -> None:
        """Take a picture that is shown for this long."""
        self.frames.append(Image.open(io.BytesIO(self.page.screenshot())).convert("RGB"))
        self.times.append(milliseconds)

    def type(self, text: str) -> None:
        """Type a text, with a picture after every third letter."""
        for start in range(0, len(text), 3):
            self.page.keyboard.type(text[start : start + 3])
            self.show(140)

    def save(self, file: Path) -> None:
        """Write an animated picture that repeats."""
        first, *others = self.frames
        first.save(
            file, save_all=True, append_images=others, duration=self.times, loop=0, quality=80, method=4
        )


def play(film: Film) -> None:
    """Search, correct what was found, and forget a thing everywhere."""
    page = film.page
    page.locator(".today").wait_for()
    film.show(1200)
    film.type("what does fern cost?")
    page.locator(".hit", has_text="4 euros").first.wait_for()
    film.show(2200)
    page.locator(".hit .place").first.click()
    page.locator(".panel .statement").wait_for()
    film.show(1500)
    page.keyboard.press("e")
    statement = page.get_by_role("dialog").get_by_label("Statement")
    statement.wait_for()
    film.show(900)
    statement.fill("Fern costs 5 euros a month, or 50 a year")
    film.show(1300)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".panel .statement")).to_contain_text("5 euros")
    film.show(2400)
    page.evaluate("() => { location.hash = '#/about/Porto'; }")
    page.locator(".about [data-section]").first.wait_for()
    film.show(1600)
    page.locator("[data-do=forget]").click()
    page.locator("dialog .places li").first.wait_for()
    film.show(2400)
    page.get_by_role("dialog").get_by_role("button", name="Forget everywhere").click()
    page.locator(".receipt").wait_for()
    film.show(5500)


def main() -> None:
    """Serve the sample and make the film."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("file", type=Path)
    chosen = reader.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fonts = Path(folder) / "fonts.conf"
        fonts.write_text(FONTS, "utf-8")
        os.environ["FONTCONFIG_FILE"] = str(fonts)
        with served(Path(folder)) as gateway, browser() as running:
            sample.fill(gateway)
            changed(gateway)
            context = running.new_context(viewport=SIZE, locale="en-GB", reduced_motion="reduce")
            context.set_default_timeout(120_000)
            expect.set_options(timeout=120_000)
            page = context.new_page()
            come_in(page, gateway, "#/search")
            film = Film(page)
            play(film)
            film.save(chosen.file)
            context.close()


if __name__ == "__main__":
    main()
