"""The files of the page, read as text: they follow the content security policy, and everything they name exists."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest

import memoriter
from memoriter.extension import offers
from memoriter.records import EntryState, EntryType, Source, Trust
from memoriter.server.http.pages import PageFiles

WEB = Path(memoriter.__file__).parent / "server/web"
#: Of all scripts and styles together, compressed.
MAX_BYTES = 105_000

SCRIPTS = sorted(WEB.rglob("*.js"))
STYLES = sorted(WEB.rglob("*.css"))

#: Functions by which a text could become markup or code.
DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTML|\beval\s*\("
    r"|new\s+Function|javascript:\s*[\"'`]|\.srcdoc|importScripts|set(?:Timeout|Interval)\(\s*[\"'`]|import\((?!\"\./(?:views/)?\w+\.js\"\))"
)


def name(path: Path) -> str:
    return path.relative_to(WEB).as_posix()


def read(path: Path) -> str:
    return path.read_text("utf-8")


class Markup(HTMLParser):
    """Collects every attribute of a page and the text of its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str]] = []
        self.inline: list[str] = []
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, key, value or "") for key, value in attrs]
        self._within = tag

    def handle_data(self, data: str) -> None:
        if self._within in ("script", "style") and data.strip():
            self.inline.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._within = ""


@pytest.fixture(scope="module")
def markup() -> Markup:
    parsed = Markup()
    parsed.feed((WEB / "index.html").read_text("utf-8"))
    return parsed


@pytest.fixture(scope="module")
def words() -> dict[str, list[str]]:
    texts = [read(script) for script in SCRIPTS if script.name.endswith("words.js")]
    tables = [
        json.loads(re.sub(r",\n}", "\n}", text[text.index("{\n") : text.rindex("}") + 1])) for text in texts
    ]
    return {key: value for table in tables for key, value in table.items()}


def test_the_page_has_no_inline_script_style_or_handler(markup: Markup) -> None:
    assert markup.inline == []
    forbidden = [one for one in markup.attributes if one[1].startswith("on") or one[1] == "style"]
    assert forbidden == []


def test_the_page_names_only_its_own_files_and_all_of_them_exist(markup: Markup) -> None:
    named = [value for _, key, value in markup.attributes if key in ("src", "href")]
    assert named
    assert [value for value in named if not value.startswith("/static/")] == []
    assert [value for value in named if not (WEB / value.removeprefix("/")).is_file()] == []


def test_no_script_turns_text_into_markup_or_code() -> None:
    assert {name(script): found for script in SCRIPTS if (found := DANGEROUS.findall(read(script)))} == {}


def imports(text: str) -> list[tuple[str, str, str]]:
    """Return the file, the name there and the name here of everything that a script imports."""
    return [
        (file, *(part.strip() for part in (one.split(" as ") * 2)[:2]))
        for names, file in re.findall(r'import \{([^}]*)\} from "([^"]+)"', text)
        for one in names.split(",")
        if one.strip()
    ]


def test_every_imported_name_is_exported() -> None:
    exported = {
        script: set(re.findall(r"export (?:async )?(?:function\*?|const|class) (\w+)", read(script)))
        for script in SCRIPTS
    }
    missing = [
        (name(script), there)
        for script in SCRIPTS
        for file, there, _ in imports(read(script))
        if there not in exported[(script.parent / file).resolve()]
    ]
    assert missing == []


def test_every_import_of_a_script_is_used() -> None:
    bodies = {script: re.sub(r"^import [^;]*;$", "", read(script), flags=re.MULTILINE) for script in SCRIPTS}
    unused = [
        (name(script), here)
        for script, body in bodies.items()
        for _, _, here in imports(read(script))
        if not re.search(rf"\b{re.escape(here)}\b", body)
    ]
    assert unused == []


def test_every_script_is_imported() -> None:
    reached = {WEB / "static/theme.js"}
    waiting = [WEB / "static/app.js"]
    while waiting:
        script = waiting.pop()
        if script not in reached:
            reached.add(script)
            waiting += [
                (script.parent / one).resolve()
                for one in re.findall(r'(?:from |import\()"([^"]+)"', script.read_text("utf-8"))
            ]
    assert sorted(reached) == SCRIPTS


def test_no_file_names_another_host() -> None:
    texts = {
        name(path): read(path).replace("http://www.w3.org/2000/svg", "")
        for path in (*SCRIPTS, *STYLES, WEB / "index.html")
    }
    outside = re.compile(r"https?://[\w.]|@import|url\((?!data:)")
    assert {path: found for path, text in texts.items() if (found := outside.findall(text))} == {}


def test_no_file_names_a_program_of_an_extension() -> None:
    names = {*offers("hosts"), *offers("importers")} - {"cursor"}  # a page of a list has a cursor as well
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b", re.IGNORECASE)
    assert {file.name: found for file in SCRIPTS if (found := pattern.findall(read(file)))} == {}


def test_the_whole_page_is_small() -> None:
    files = PageFiles(WEB)
    named = re.findall(r'"/(static/page-[^"]+)"', files["index.html"].body.decode())
    assert sum(len(files[name].packed or files[name].body) for name in named) < MAX_BYTES


def test_every_text_is_in_both_languages_with_the_same_placeholders(words: dict[str, list[str]]) -> None:
    def placeholders(text: str) -> list[str]:
        return sorted(re.findall(r"\{\w+\}", text))

    wrong = [
        key
        for key, texts in words.items()
        if len(texts) != 2
        or not all(text.strip() for text in texts)
        # The gateway's own sentence is English.
        or (texts[0] != "{message}" and placeholders(texts[0]) != placeholders(texts[1]))
    ]
    # The singular has no placeholder where the text spells out the number.
    assert [key for key in wrong if not key.endswith(".one")] == []
    assert [key for key, (english, chinese) in words.items() if english == chinese] == [
        "code.check.python",
        "code.check.workspace",
        "code.check.chmod",
    ]


def test_languages_with_a_file_of_their_own_are_named_by_the_index(tmp_path: Path) -> None:
    web = shutil.copytree(WEB, tmp_path / "web")
    assert b"data-languages" not in PageFiles(web)["index.html"].body
    (web / "static/languages").mkdir(exist_ok=True)
    for name in ("de", "pt-BR"):
        (web / f"static/languages/{name}.json").write_text('{"view.search": "…"}', "utf-8")
    files = PageFiles(web)
    assert b'<html lang="en" data-languages="de pt-BR">' in files["index.html"].body
    assert files["static/languages/de.json"].media_type == "application/json"


def test_files_of_languages_have_known_keys_and_the_placeholders_of_the_english_text(
    words: dict[str, list[str]],
) -> None:
    wrong = []
    for file in (WEB / "static").glob("languages/*.json"):
        for key, text in json.loads(file.read_text("utf-8")).items():
            english = words.get(re.sub(r"\.(zero|one|two|few|many)$", "", key), words.get(key, [""]))[0]
            if not english or not set(re.findall(r"\{\w+\}", text)) <= set(re.findall(r"\{\w+\}", english)):
                wrong.append(f"{file.name}: {key}")
    assert wrong == []


def test_every_used_key_exists_and_no_key_is_unused(words: dict[str, list[str]]) -> None:
    code = "\n".join(script.read_text("utf-8") for script in SCRIPTS if not script.name.endswith("words.js"))
    literal = set(re.findall(r'"([a-z]\w*(?:\.[\w]+)+)"', code))
    begun = set(re.findall(r"`(\w+)\.\$\{", code)) | set(re.findall(r'label\("(\w+)"', code))
    asked = set(re.findall(r'\bt\(\s*"([\w.]+)"', code)) | set(re.findall(r'\btn\(\s*"([\w.]+)"', code))
    assert sorted(asked - words.keys()) == []
    unused = [
        key
        for key in words
        if key not in literal and key.removesuffix(".one") not in literal and key.split(".")[0] not in begun
    ]
    assert unused == []


def test_every_value_in_the_data_has_a_text(words: dict[str, list[str]]) -> None:
    kinds = {"type": EntryType, "state": EntryState, "trust": Trust, "source": Source}
    missing = [
        f"{kind}.{one}"
        for kind, names in kinds.items()
        for one in get_args(names)
        if f"{kind}.{one}" not in words
    ]
    assert missing == []


def test_the_style_sheets_stay_small_and_style_only_what_a_script_draws() -> None:
    sheets = [read(file) for file in STYLES]
    assert sum(text.count("\n") for text in sheets) <= 2_700
    drawn = read(WEB / "index.html") + "".join(map(read, SCRIPTS))
    bodies = re.compile(r"/\*.*?\*/|(?<=\{)[^{}]*(?=\})", re.DOTALL)
    names = {one for text in sheets for one in re.findall(r"\.([a-z][\w-]*)", bodies.sub("", text))}
    unused = {one for one in names if not re.search(rf"[\s\"'`.]{one}[\s\"'`,\]:)>+~]", drawn)}
    assert unused <= {"bar-entries", "bar-hits", "bar-tokens"}  # named after the series of a chart
