"""Debian's chromium, driven by playwright: one browser for all, and a page that notes whatever should not happen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Cookie, Page, Request, expect, sync_playwright
from serving import Served

#: As root there is no sandbox; the rest keeps chromium from calling home.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)


def chromium() -> str | None:
    """Where the program is."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser, closed at the end."""
    program = chromium()
    assert program, "chromium is not installed: run `make chromium`"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, headless=True, args=list(FLAGS))
        try:
            yield running
        finally:
            running.close()


@dataclass
class Watched:
    """A page with what it did."""

    page: Page
    address: str
    requests: list[Request] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)  #: requests to anybody else
    wrong: list[str] = field(default_factory=list)  #: errors of scripts, refusals of the policy, dialogs

    def data_requests(self) -> list[str]:
        """What was asked of the gateway, without the stream of events."""
        paths = [urlsplit(request.url).path for request in self.requests]
        return [path for path in paths if path.startswith("/v1/") and path != "/v1/events"]


def watch(page: Page, address: str) -> Watched:
    """Note from now on what the page does."""
    watched = Watched(page, address)

    def requested(request: Request) -> None:
        watched.requests.append(request)
        if not request.url.startswith((f"{address}/", "data:", "blob:")):
            watched.foreign.append(request.url)

    def said(kind: str, text: str) -> None:
        if kind == "error" and "Failed to load resource" not in text:
            watched.wrong.append(text)

    page.on("request", requested)
    page.on("console", lambda message: said(message.type, message.text))
    page.on("pageerror", lambda error: watched.wrong.append(str(error)))
    page.on("dialog", lambda dialog: (watched.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    return watched


_cookies: dict[str, list[Cookie]] = {}  # a link works once; whoever came in by it may come again


def come_in(page: Page, gateway: Served, place: str = "") -> None:
    """Open the page at a place, such as ``#/notes``, and wait until it shows something."""
    known = _cookies.get(gateway.address)
    if known is None:
        page.goto(gateway.link)
        page.wait_for_url(lambda url: "/open?" not in url)  # it goes there by itself
        _cookies[gateway.address] = page.context.cookies()
        if not place:
            return
    else:
        page.context.add_cookies(known)  # type: ignore[arg-type]  what was given out is taken in
    page.goto(f"{gateway.address}/{place}")
    expect(page.locator("main")).to_be_visible()


def go(page: Page, place: str) -> None:
    """Go to a place of the page that is open."""
    page.evaluate("place => { location.hash = place; }", place)
