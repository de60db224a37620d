"""Measure the page in a real browser and print the figures as a table: `make page-figures`.

Times are CPU times of the page's main thread, because a busy machine does not change them much.
``--out lab/web_page.md`` puts the table between its marks.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import test_owner_tasks
from browsing import MESSAGES_STAY, browser, come_in, expect, go
from large import WORDS, statements
from measuring import cpu_seconds
from serving import Served, served

from lab.page import put

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Row = tuple[str, str, str]
LARGE, MEDIUM = 50_000, 5_000
FRAMES = 240
#: Scrolls a number of pixels in each of a number of frames, and returns the milliseconds.
SCROLLED = """async ([frames, pixels]) => {
  const start = performance.now();
  for (let frame = 0; frame < frames; frame++) {
    scrollBy(0, pixels);
    await new Promise(requestAnimationFrame);
  }
  return performance.now() - start;
}"""
#: Runs of a motion. The best counts, because other programs can only make it slower.
MOTIONS = 3
#: Scrolls by a page of rows, and waits until a row that was not loaded is drawn.
NEXT_ROWS = """async ([pixels, row]) => {
  const body = document.querySelector(".entries tbody");
  scrollBy(0, pixels);
  while (!body.querySelector(`tr[aria-rowindex="${row}"][data-id]`))
    await new Promise((done) => {
      new MutationObserver((_, observer) => (observer.disconnect(), done())).observe(body, { childList: true });
    });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
TRACED = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
#: A message of the program that drives the browser, in a trace.
DRIVER = "DevToolsSession"
ROW_PX, PAGE_ROWS, TURNS = 54, 100, 7
SIZES = """() => performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
  .filter((one) => one.name.startsWith("http")).map((one) => [new URL(one.name).pathname, one.transferSize])"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures, or put them into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="A page with marks for the table (default: print it).")
    parser.add_argument(
        "--memories", type=int, default=LARGE, help="Memories in the long list (default: 50,000)."
    )
    options = parser.parse_args(arguments)
    rows = list[Row]()
    with tempfile.TemporaryDirectory(prefix="memoriter-page-") as name, browser() as running:
        with filled(Path(name) / "medium", MEDIUM) as gateway:
            rows += shown(first_load(running, gateway))
            rows += shown(longest_tasks(running, gateway))
        with filled(Path(name) / "large", options.memories) as gateway:
            rows += shown(scrolling(running, gateway, options.memories))
        with test_owner_tasks.known(Path(name) / "tasks", statements(options.memories)) as gateway:
            rows += owner_tasks(running, gateway, Path(name), options.memories)
    lines = ["| figure | measured | goal |", "| --- | ---: | ---: |"]
    table = "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
    if options.out:
        put(options.out, "page", table)
    else:
        sys.stdout.write(table + "\n")


def shown(rows: list[Row]) -> list[Row]:
    """Write rows to the error output as soon as they are measured, because all of it takes minutes."""
    for row in rows:
        sys.stderr.write(f"{': '.join(row[:2])} (goal: {row[2]})\n")
    return rows


class filled:
    """A gateway with this number of memories and some notes, without vectors."""

    def __init__(self, folder: Path, count: int) -> None:
        limits = {"limits": {"timeout_s": 1800}}  # on a busy machine, an import takes minutes
        self._serving = served(folder, {"embedding": {"provider": "none"}, "gateway": limits})
        self._count = count

    def __enter__(self) -> Served:
        gateway = self._serving.__enter__()
        gateway.client.timeout = 1800
        for number in range(200):
            parts = "\n\n".join(
                f"## Part {part}\n\nThe {WORDS[part % 10]} of day {number}." for part in range(20)
            )
            gateway.write(f"memory/{number:03}.md", f"# Note {number}\n\n{parts}\n")
        gateway.write(
            "memory/long.md", "\n\n".join(f"Line {one} of [a list](000.md)." for one in range(4_000))
        )
        for start in range(0, self._count, 5_000):
            learned = statements(min(5_000, self._count - start), start)
            gateway.ask("entries.import", data=json.dumps(learned))
        gateway.ask("memory.sync")
        gateway.ask("memory.search", query="quince")  # the first search indexes the entries
        for word in WORDS:
            gateway.ask("recall", query=f"where is the {word}?")
        return gateway

    def __exit__(self, *error: object) -> None:
        self._serving.__exit__(*error)  # type: ignore[arg-type]


def opened(running: Browser, gateway: Served, place: str) -> Page:
    context = running.new_context(viewport={"width": 1280, "height": 860}, locale="en-GB")
    context.set_default_timeout(120_000)
    expect.set_options(timeout=120_000)
    page = context.new_page()
    come_in(page, gateway, place)
    return page


# ---- the first load -----------------------------------------------------------------------------------------------


def first_load(running: Browser, gateway: Served) -> list[Row]:
    """Measure what the browser loads and how long its main thread works until something is visible."""
    page = opened(running, gateway, "#/search")
    expect(page.locator("[data-view=memories] .nav-count")).not_to_be_empty()
    page.context.new_cdp_session(page).send("Network.clearBrowserCache")
    page.goto("about:blank")
    page.goto(f"{gateway.address}/#/search")
    expect(page.locator("[data-view=memories] .nav-count")).not_to_be_empty()
    sizes = page.evaluate(SIZES)
    rows = [
        ("Requests of the first load", str(len(sizes)), "12"),
        ("Bytes of the first load", f"{sum(size for _, size in sizes) / 1000:.0f} kB", "120 kB"),
    ]
    for place, shown in (("#/search", ".holdings, .home, .day"), ("#/memories", ".entries tr[data-id]")):
        go(page, place)
        expect(page.locator(shown).first).to_be_visible()
        with cpu_seconds(page) as worked:
            page.reload()
            expect(page.locator(shown).first).to_be_visible()
            rows.append(
                (
                    f"CPU until `{place}` is visible, {MEDIUM:,} memories",
                    f"{worked() * 1000:.0f} ms",
                    "300 ms",
                )
            )
    page.context.close()
    return rows


# ---- tasks --------------------------------------------------------------------------------------------------------


def longest_tasks(running: Browser, gateway: Served) -> list[Row]:
    """Measure the longest task of the main thread while each view opens."""
    entry = gateway.ask("entries.list", limit=1)["entries"][0]["id"]
    recall = gateway.ask("recalls.list", limit=1)["recalls"][0]["id"]
    views = {
        "Home": ("#/search", "main h1"),
        "Search": ("#/search?q=quince cellar", ".hit"),
        "Memories": ("#/memories", ".entries tr[data-id]"),
        "One memory": (f"#/memories/{entry}", ".panel .statement"),
        "Notes": ("#/notes", ".tree .row"),
        "A note of 8,000 lines": ("#/notes/memory/long.md", ".prose p"),
        "One recall": (f"#/recalls/{recall}", ".panel .statement"),
        "Health": ("#/health", ".verdict"),
    }
    page = opened(running, gateway, "#/health")
    expect(page.locator(".verdict")).to_be_visible()
    rows = [
        (f"Longest task: {name}", f"{longest(running, page, place, shown):.0f} ms", "100 ms")
        for name, (place, shown) in views.items()
    ]
    page.context.close()
    return rows


def longest(running: Browser, page: Page, place: str, shown: str) -> float:
    """Return the CPU milliseconds of the longest task of the page while it opens a place.

    While the trace runs, nothing asks the page whether it is ready: such a question is a task of its own.
    """
    before = page.url.partition("#")[2]
    for seconds in (4, 20, 60):  # a busy machine needs longer
        running.start_tracing(page=page, categories=TRACED)
        go(page, place)
        page.wait_for_timeout(seconds * 1000)
        took = longest_traced(running)
        if page.locator(shown).first.is_visible():
            break
        go(page, before)
    else:
        raise TimeoutError(f"{place} does not show {shown}")
    return took


def longest_traced(running: Browser) -> float:
    """End a trace, and return the CPU milliseconds of the longest task of a page that no question of the driver is."""
    events: list[dict[str, Any]] = json.loads(running.stop_tracing())["traceEvents"]
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"].get("name") == "CrRendererMain"
    }
    found = [event for event in events if (event["pid"], event["tid"]) in mains]
    asked = [event["ts"] for event in found if DRIVER in json.dumps(event.get("args", {}))]
    tasks = [event for event in found if event.get("name") == "RunTask" and "dur" in event]
    times = (
        event.get("tdur", event["dur"]) / 1000
        for event in sorted(tasks, key=lambda one: -one.get("tdur", one["dur"]))
        if not any(event["ts"] <= at <= event["ts"] + event["dur"] for at in asked)
    )
    return next(times, 0.0)


def owner_tasks(running: Browser, gateway: Served, folder: Path, count: int) -> list[Row]:
    """Measure the longest task of the page while an owner does each of the twenty tasks with a large memory."""
    rows = list[Row]()
    tasks = {name: one for name, one in vars(test_owner_tasks).items() if name.startswith("test_")}
    for name, task in tasks.items():
        page = opened(running, gateway, "#/health")
        page.context.add_init_script(MESSAGES_STAY)
        expect(page.locator(".verdict")).to_be_visible()
        running.start_tracing(page=page, categories=TRACED)

        def owner(limit: int, page: Page = page) -> test_owner_tasks.Owner:
            page.goto(f"{gateway.address}/?{limit}#/search")  # loads the page again
            return test_owner_tasks.at_home(page, limit)

        given = {"gateway": gateway, "owner": owner, "tmp_path": folder}
        task(*(given[one] for one in inspect.signature(task).parameters))
        title = name.removeprefix("test_").replace("_", " ")
        figure = f"Longest task, {count:,} memories: {title}"
        rows.append((figure, f"{longest_traced(running):.0f} ms", "100 ms"))
        shown(rows[-1:])
        page.context.close()
    return rows


def motion(page: Page, script: str, frames: int, *arguments: object) -> tuple[str, str]:
    """Return the frames per second of the best of several runs, its CPU time per frame, and the goal."""
    runs = list[tuple[float, float]]()
    for _ in range(MOTIONS):
        page.evaluate("() => scrollTo(0, 0)")
        page.wait_for_timeout(1_000)  # what the run before has left
        with cpu_seconds(page) as worked:
            took = page.evaluate(script, [frames, *arguments])
            runs.append((frames * 1000 / took, worked() * 1000 / frames))
    rate, each = max(runs)
    return f"{each:.1f} ms CPU per frame; {rate:.0f} frames per second", "20 ms; 50"


# ---- the long list ------------------------------------------------------------------------------------------------


def scrolling(running: Browser, gateway: Served, count: int) -> list[Row]:
    """Measure a long list: CPU per frame while it scrolls, the next rows at several places, and memory."""
    page = opened(running, gateway, "#/memories")
    expect(page.locator(".entries tr[data-id]").first).to_be_visible()
    rows = []
    first: dict[str, float] = {}
    end = count * ROW_PX // FRAMES
    for name, pixels in (("slowly", 30), ("quickly", 150), ("fast", 1_200), ("from end to end", end)):
        rows.append((f"{count:,} memories, scrolled {name}", *motion(page, SCROLLED, FRAMES, pixels)))
        first = first or held(page)
    rows += [
        (f"The next rows at row {place:,}", f"{seconds * 1000:.0f} ms CPU", "the same")
        for place, seconds in next_rows(page, (50, 1_000, count - 1_000)).items()
    ]
    expect(page.locator(".entries tr.blank")).to_have_count(0)
    last = held(page)
    heap = [f"{one['JSHeapUsedSize'] / 1e6:.1f} MB" for one in (first, last)]
    nodes = [f"{one['Nodes']:,.0f}" for one in (first, last)]
    rows += [
        ("Memory of scripts, after the first and the last of these", " → ".join(heap), "constant"),
        ("Nodes of the page, after the first and the last of these", " → ".join(nodes), "constant"),
    ]
    page.context.close()
    return rows


def next_rows(page: Page, places: Sequence[int]) -> dict[int, float]:
    """Return the CPU seconds to load and draw 100 rows after each place: the median of several pages.

    The places take turns, so that other work of the machine affects all of them.
    """
    seconds: dict[int, list[float]] = {place: [] for place in places}
    for turn in range(TURNS):
        for place in places:
            row = place + turn * PAGE_ROWS
            page.evaluate(f"() => scrollTo(0, document.querySelector('.entries').offsetTop + {row * ROW_PX})")
            expect(page.locator(f".entries tr[aria-rowindex='{row + 4}'][data-id]")).to_be_visible()
            page.wait_for_timeout(500)  # what is loaded ahead of the reader
            with cpu_seconds(page) as worked:
                page.evaluate(NEXT_ROWS, [PAGE_ROWS * ROW_PX, row + PAGE_ROWS + 4])
                seconds[place].append(worked())
    return {place: median(several) for place, several in seconds.items()}


def held(page: Page) -> dict[str, float]:
    """Return the memory that the page holds after a garbage collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return found


if __name__ == "__main__":
    main()
