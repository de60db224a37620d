"""What a browser loads before it shows the page: few requests, few bytes, and files that it can keep."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

import memoriter
from memoriter.server.http.pages import ModuleCycle, PageFiles, join_scripts, join_styles

if TYPE_CHECKING:
    from serving import Served

    from conftest import Visit

WEB = Path(memoriter.__file__).parent / "server/web"
MAX_REQUESTS = 12
MAX_BYTES = 112_500


def test_modules_become_one_script_in_the_order_of_their_imports() -> None:
    files = {
        "app.js": 'import { one as first,\n  two } from "./views/a.js";\nfirst(two);\n',
        "views/a.js": 'import { three } from "../b.js";\nexport const two = three;\nexport function one() {}\n',
        "b.js": "// The third.\n/** One\n *  class. */\nexport class three {}\n",
        "unused.js": "",
    }
    (script,) = join_scripts(files, "app.js").values()
    assert script == (
        "const m = [];\n"
        "m[0] = (() => { // b.js\nclass three {}\nreturn { three };\n})();\n"
        "m[1] = (() => { // views/a.js\nconst { three } = m[0];\nconst two = three;\nfunction one() {}\n"
        "return { two, one };\n})();\n"
        "m[2] = (() => { // app.js\nconst { one: first,\ntwo } = m[1];\nfirst(two);\nreturn {  };\n})();\n"
    )


def test_late_modules_are_scripts_of_their_own_that_use_the_modules_of_the_first() -> None:
    files = {
        "app.js": 'import { one } from "./a.js";\nif (one)\n  import("./late.js");\n',
        "a.js": "export const one = 1;\n",
        "late.js": 'import { one } from "./a.js";\nimport { two } from "./b.js";\nexport const three = one + two;\n',
        "b.js": "export const two = 2;\n",
    }
    scripts = join_scripts(files, "app.js")
    late, first = scripts
    assert scripts == {
        late: (
            "export default (m) => {\n"
            "m[2] = (() => { // b.js\nconst two = 2;\nreturn { two };\n})();\n"
            "m[3] = (() => { // late.js\nconst { one } = m[0];\nconst { two } = m[2];\nconst three = one + two;\n"
            "return { three };\n})();\n"
            "return m[3];\n};\n"
        ),
        first: (
            "const m = [];\n"
            "m[0] = (() => { // a.js\nconst one = 1;\nreturn { one };\n})();\n"
            "m[1] = (() => { // app.js\nconst { one } = m[0];\nif (one)\n"
            f'import("/static/{late}").then((late) => late.default(m));\nreturn {{  }};\n}})();\n'
        ),
    }


def test_modules_that_import_each_other_are_rejected() -> None:
    files = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    with pytest.raises(ModuleCycle, match=r"a\.js → b\.js → a\.js"):
        join_scripts(files, "a.js")


def test_a_style_sheet_for_print_stays_one() -> None:
    index = (
        '<link rel="stylesheet" href="/static/a.css">\n'
        '<link rel="stylesheet" href="/static/p.css" media="print">\n'
    )
    joined = join_styles({"a.css": "a {}\n", "p.css": "p {}\n"}, index)
    assert joined == "a {}\n@media print {\np {}\n}\n"


def test_the_index_names_one_script_and_one_style_sheet_with_their_digests() -> None:
    files = PageFiles(WEB)
    named = re.findall(r'(?:href|src)="/([^"]+)"', files["index.html"].body.decode())
    plain = [re.sub(r"[0-9a-f]{32}", "DIGEST", name) for name in named]
    assert plain == [
        "static/mark.svg",
        "static/page-DIGEST.css",
        "static/theme.js",
        "static/page-DIGEST.js",
    ]
    bundles = [files[name] for name in named if "page-" in name]
    assert [one.cache_control for one in bundles] == ["public, max-age=31536000, immutable"] * 2
    assert [gzip.decompress(one.packed or b"") == one.body for one in bundles] == [True, True]
    script = bundles[1].body.decode()
    assert re.findall(r"^(?:import|export)\b.*", script, re.MULTILINE) == []


def test_a_changed_file_changes_the_name_of_its_bundle(tmp_path: Path) -> None:
    static = tmp_path / "static"
    static.mkdir()
    (static / "app.js").write_text("first();\n")
    (static / "a.css").write_text("a {}\n")
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="/static/a.css">\n<script type="module" src="/static/app.js"></script>\n'
    )
    files = PageFiles(tmp_path)
    before = files["index.html"].body.decode().split("page-")
    (static / "app.js").write_text("first();\nsecond();\n")
    after = files["index.html"].body.decode().split("page-")
    assert before[1] == after[1]
    assert before[2] != after[2]


@pytest.mark.integration
def test_the_first_load_is_small_and_a_second_one_loads_only_the_index(gateway: Served, visit: Visit) -> None:
    expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect
    watched = visit(gateway, "#/search")
    page = watched.page
    expect(page.locator(".pulse")).to_have_text("Live")
    expect(page.locator("[data-view=memories] .nav-count")).not_to_be_empty()
    watched.requests.clear()
    page.goto("about:blank")
    page.goto(f"{gateway.address}/#/search")
    expect(page.locator("[data-view=memories] .nav-count")).not_to_be_empty()
    # A live event, such as that of an agent that was just opened, lets the page load parts again.
    paths = {urlsplit(request.url).path for request in watched.requests if "about:" not in request.url}
    assert len(paths) <= MAX_REQUESTS
    loaded = page.evaluate(
        """() => performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation"))
        .map((one) => [new URL(one.name).pathname, one.encodedBodySize, one.transferSize])"""
    )
    assert sum({path: size for path, size, _ in loaded}.values()) <= MAX_BYTES
    # The bundles come from the browser's cache.
    assert [path for path, _, sent in loaded if "/static/page-" in path and sent > 0] == []
