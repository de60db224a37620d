"""Rendering of texts: Markdown as elements, matches as marks, two versions as a difference."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from measuring import cpu_seconds
from serving import Served, served

pytest.importorskip("playwright.sync_api", reason="`make integration` installs it")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.integration

RENDER = """async (text) => {
  const { rendered } = await import("/static/markdown.js");
  const box = document.createElement("div");
  box.append(...rendered(text, { resolve: (target) => (target === "other.md" ? "#/notes/other.md" : null) }));
  return box.innerHTML;
}"""
MARK = """async ([text, tokens]) => {
  const { findMatches } = await import("/static/texts.js");
  return findMatches(text, tokens).map(([start, end]) => text.slice(start, end));
}"""
COMPARE = """async ([before, after]) => (await import("/static/texts.js")).compare(before, after)"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("texts"), {"embedding": {"provider": "none"}}) as running:
        yield running


@pytest.fixture(scope="module")
def page(browser: Browser, gateway: Served) -> Iterator[Page]:
    """A page that can import the modules."""
    context = browser.new_context()
    opened = context.new_page()
    opened.goto(gateway.link)
    opened.wait_for_url(lambda url: "/open?" not in url)
    yield opened
    context.close()


def markup(page: Page, text: str) -> str:
    """Return the rendered markup without line numbers."""
    return re.sub(r' data-(?:from|to)="\d+"', "", str(page.evaluate(RENDER, text)))


OUTSIDE = 'rel="noopener noreferrer" target="_blank"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\n\ntwo\nthree", "<h2>One</h2><p>two three</p>"),
        ("- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("a **b** *c* _d_ `e` ~~f~~", "<p>a <strong>b</strong> <em>c</em> <em>d</em> <code>e</code> <s>f</s></p>"),
        ("snake_case_name and 2*3*4", "<p>snake_case_name and 2*3*4</p>"),
        ("中文**重点**中文", "<p>中文<strong>重点</strong>中文</p>"),
        ("```sh\n<b>\n```\nx", '<pre tabindex="0" data-language="sh"><code>&lt;b&gt;</code></pre><p>x</p>'),
        ("```\nnever closed", '<pre tabindex="0"><code>never closed</code></pre>'),
        ("> a\n> > b", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>"),
        ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
        (r"\*a\* \[b\](c)", "<p>*a* [b](c)</p>"),
        ("[a](https://x.example/b_(c))", f'<p><a href="https://x.example/b_(c)" {OUTSIDE}>a</a></p>'),
        ("see https://x.example/a.", f'<p>see <a href="https://x.example/a" {OUTSIDE}>https://x.example/a</a>.</p>'),
        ("[a](other.md)", '<p><a href="#/notes/other.md">a</a></p>'),
        ("[a](elsewhere.md)", '<p><span class="nowhere" title="elsewhere.md">a</span></p>'),
        ("[a](javascript:x)", '<p><span class="nowhere" title="javascript:x">a</span></p>'),
        ("![a](https://x.example/p.png)", '<p><span class="picture" title="https://x.example/p.png">a</span></p>'),
        ("<b>a</b>", "<p>&lt;b&gt;a&lt;/b&gt;</p>"),
        ("---\na: 1\n---\nb", '<pre class="front-matter" tabindex="0">a: 1</pre><p>b</p>'),
        (
            "| a | b |\n|---|--:|\n| 1 \\| 2 | 3 |",
            ('<div class="wide" tabindex="0"><table><thead><tr><th scope="col">a</th><th data-align="end" scope="col">'
            'b</th></tr></thead><tbody><tr><td>1 | 2</td><td data-align="end">3</td></tr></tbody></table></div>'),
        ),
        (
            "- [x] a\n- [ ] b",
            ('<ul><li class="has-task"><span class="task" role="img" aria-label="☑">☑</span>a</li>'
            '<li class="has-task"><span class="task" role="img" aria-label="☐">☐</span>b</li></ul>'),
        ),
    ],
)  # fmt: skip
def test_markdown_becomes_elements(text: str, expected: str, page: Page) -> None:
    assert markup(page, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        ">" * 50_000, "- " * 30_000, "*" * 60_000, "[" * 60_000, "`" * 60_000, "**a" * 20_000, "[a](" * 15_000,
        "\n".join(f"{' ' * depth}- a" for depth in range(300)), "|a" * 20_000 + "\n" + "|-" * 20_000, "_a " * 20_000,
        "![a](b)" * 9_000, "\\" * 60_000, "a\n" * 40_000, "http://" * 9_000, "<http://a" * 7_000,
    ],
    ids=range(15),
)  # fmt: skip
def test_no_text_is_slow_to_render(text: str, page: Page) -> None:
    with cpu_seconds(page) as worked:
        page.evaluate(RENDER, text)
        assert worked() < 3


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("Deploying the deployed deploys", ["deploy"], ["Deploying", "deployed", "deploys"]),
        ("a redeployment", ["deploy"], []),
        ("数据库备份每天运行", ["数据", "据库", "备份"], ["数据库备份"]),
        ("nothing", ["", "x"], []),
        ("memory-core (ERR_42)", ["memory", "err_42"], ["memory", "ERR_42"]),
        ("İstanbul deploy", ["deploy"], []),
    ],
)
def test_matches_are_whole_words_and_do_not_overlap(
    text: str, tokens: list[str], expected: list[str], page: Page
) -> None:
    assert page.evaluate(MARK, [text, tokens]) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a b c", "a x c", [["same", "a "], ["gone", "b"], ["new", "x"], ["same", " c"]]),
        ("住在成都", "住在北京", [["same", "住在"], ["gone", "成都"], ["new", "北京"]]),
        ("", "new", [["new", "new"]]),
        ("same", "same", [["same", "same"]]),
        ("a " * 700, "b", [["gone", "a " * 700], ["new", "b"]]),
    ],
)
def test_two_versions_are_compared_word_by_word(
    before: str, after: str, expected: list[list[str]], page: Page
) -> None:
    assert page.evaluate(COMPARE, [before, after]) == expected
