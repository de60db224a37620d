"""The documentation site is built without a dead link, and its pages fetch nothing from other hosts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.posix("the site is built on Linux")

ROOT = Path(__file__).parents[2]


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        config,
        "--site-dir",
        site,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    result = build(ROOT / "mkdocs.yml", folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_the_pages_fetch_nothing_from_other_hosts(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    fetched = re.compile(
        r"<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^\s>]+"
    )
    assert {page.name: found for page in pages if (found := fetched.findall(page.read_text("utf-8")))} == {}


def test_the_search_knows_commands_and_settings(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    titles = {entry["title"] for entry in index["docs"]}
    assert {"<code>memoriter search</code>", "<code>search</code>", "Troubleshooting"} <= titles
    assert (site / "search/search_index.js").is_file()  # the same, for pages that are opened as files


def test_a_dead_link_and_a_missing_anchor_fail(tmp_path: Path) -> None:
    """A small copy of the site, with the same settings and hook."""
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs/repository_pages.py", tmp_path / "docs")
    (tmp_path / "ARCHITECTURE.md").write_text("# Parts\n\n[Start](docs/index.md)\n", "utf-8")
    settings = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[0]
    (tmp_path / "mkdocs.yml").write_text(f"{settings}\nnav: [index.md, ARCHITECTURE.md]\n", "utf-8")
    page = tmp_path / "docs/index.md"
    page.write_text("# Start\n\n[Parts](../ARCHITECTURE.md#parts)\n", "utf-8")
    good = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert good.returncode == 0, good.stderr
    page.write_text("# Start\n\n[Parts](../ARCHITECTURE.md#missing) [more](../MORE.md)\n", "utf-8")
    bad = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert bad.returncode == 1
    assert (
        "'ARCHITECTURE.md#missing', but the doc 'ARCHITECTURE.md' does not contain an anchor '#missing'"
        in bad.stderr
    )
    assert "'MORE.md', but the target is not found" in bad.stderr


@pytest.mark.integration
def test_the_search_works_when_the_pages_are_opened_as_files(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed: `make integration` installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.goto((site / "concepts.html").as_uri())
        page.keyboard.press("/")
        page.keyboard.type("restore a backup")
        page.locator(".md-search-result__item", has_text="Back up, restore, move and upgrade").wait_for()
        browser.close()
    assert [url for url in requested if not url.startswith("file:")] == []
