"""The page has an English and a Chinese text for every code that the gateway sends."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import memoriter
from memoriter.errors import MemoriterError
from memoriter.sentences import SENTENCES, codes, join, pack, sentence, unpack
from memoriter.tools.table import OPERATIONS
from memoriter.tools.toolbox import Toolbox

WORDS_FILE = Path(memoriter.__file__).parent / "server/web/static/words.js"
PACKAGE = Path(memoriter.__file__).parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def literals(call: str, position: int, *packages: str) -> set[str]:
    """Return the strings that calls of a function have at a position, in some packages."""
    files = (file for package in packages for file in (PACKAGE / package).rglob("*.py"))
    texts = (text for text in (file.read_text("utf-8") for file in files) if f"{call}(" in text)
    calls = (
        node
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and len(node.args) > position and ast.unparse(node.func) == call
    )
    values = (node.args[position] for node in calls)
    return {one.value for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)}


#: Codes that the gateway and the tools send and that are not the code of an error class.
OTHER_CODES = {
    *literals("Refused", 1, "server/http", "extensions"),
    *literals("_error", 2, "tools"),
    "io_error",
}
#: Names of the checks of `doctor`.
CHECKS = {
    *literals("Finding", 0, "tools"),
    *literals("Check", 0, "extensions/postgres"),
}


def words() -> dict[str, list[str]]:
    text = WORDS_FILE.read_text("utf-8")
    table: dict[str, list[str]] = json.loads(text[text.index("{\n") : text.rindex("}") + 1])
    return table


def error_classes(base: type[MemoriterError] = MemoriterError) -> Iterator[type[MemoriterError]]:
    yield base
    for child in base.__subclasses__():
        if child.__module__ == "memoriter.errors":
            yield from error_classes(child)


def placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)(?:!r)?\}", text))


def test_every_code_has_an_english_and_a_chinese_text_and_no_other_code_has() -> None:
    known = {*SENTENCES, *OTHER_CODES, *(error.code for error in error_classes())}
    table = words()
    shown = {key.removeprefix("code.") for key in table if key.startswith("code.")}
    assert known - shown == set()
    assert {code for code in shown - known if code.removesuffix(".one") not in known} == set()
    texts = {code: table[f"code.{code}"] for code in known}
    assert [code for code, (english, _) in texts.items() if not english] == []
    assert [code for code, (one, other) in texts.items() if not CHINESE.search(other) and one != other] == []


def test_the_texts_of_a_code_have_the_same_arguments_as_the_sentence() -> None:
    table = words()
    found = {code: [placeholders(text) for text in table[f"code.{code}"]] for code in SENTENCES}
    assert found == {code: [placeholders(text)] * 2 for code, text in SENTENCES.items()}


#: Errors whose cause only another program or the system knows. The page shows its words as what they are.
OUTSIDE_CAUSES = {
    "failed",
    "bad_setting",
    "untrusted_setting",
    "unreadable_file",
    "embedding_failed",
    "embedder_unavailable",
    "backup_failed",
    "not_written",
    "model_failed",
    "engine_failed",
    "store_failed",
    "store_unavailable",
    "store_damaged",
    "io_error",
}


def test_a_chinese_error_quotes_english_only_where_the_cause_is_outside() -> None:
    chinese = {key: texts[1] for key, texts in words().items() if "{message}" in texts[1]}
    assert chinese.keys() == {f"code.{code}" for code in OUTSIDE_CAUSES}
    assert [text for text in chinese.values() if not text.endswith("。原始信息：{message}")] == []


#: What a reader of the page can do wrong, and the code of the error.
MISTAKES: tuple[tuple[str, dict[str, object], str], ...] = (
    ("notes.put", {"path": "../out.md", "text": "x"}, "path.relative"),
    ("notes.put", {"path": "memory/.hidden.md", "text": "x"}, "path.outside"),
    ("notes.put", {"path": "picture.png", "text": "x"}, "path.outside"),
    ("notes.put", {"path": "MEMORY.md", "text": "x"}, "note.exists"),
    ("notes.put", {"path": "MEMORY.md", "text": "x", "version": "0"}, "note.changed"),
    ("notes.put", {"path": "memory/gone.md", "text": "x", "version": "0"}, "note.removed"),
    ("notes.get", {"path": "memory/gone.md"}, "note.not_found"),
    ("notes.approve", {"paths": ["MEMORY.md"]}, "note.not_pending"),
    ("entries.add", {"text": "…"}, "entry.empty"),
    ("entries.add", {"text": "a" * 5000}, "entry.too_long"),
    ("entries.get", {"id": "gone"}, "entry.not_found"),
    ("entries.edit", {"id": "gone", "text": "x"}, "entry.not_found"),
    ("entries.merge", {"ids": ["gone", "lost"], "text": "x"}, "entry.not_found"),
    ("entries.undo", {}, "entry.undo_nothing"),
    ("entries.import", {"data": "{"}, "import.line"),
    ("entries.import", {"data": '[{"text": "…"}]'}, "import.entry"),
    ("entries.import", {"data": "[]"}, "import.nothing"),
    ("entries.forget", {}, "forget.how"),
    ("recalls.get", {"id": "gone"}, "recall.not_found"),
)


def test_every_mistake_on_the_page_has_a_text_of_its_own(note, open_memory) -> None:
    note("MEMORY.md", "# Memory\n")
    box = Toolbox(open_memory(embedding__provider="none"), tools=OPERATIONS)
    results = [
        (operation, box.call(operation, arguments).get("code")) for operation, arguments, _ in MISTAKES
    ]
    assert results == [(operation, code) for operation, _, code in MISTAKES]
    assert {f"code.{code}" for _, _, code in MISTAKES} - words().keys() == set()


def test_every_check_has_an_english_and_a_chinese_name() -> None:
    table = words()
    names = {check: table[f"check.{check}"] for check in CHECKS}
    assert [
        check for check, (english, chinese) in names.items() if not english or not CHINESE.search(chinese)
    ] == []


def test_every_part_of_a_score_has_a_name() -> None:
    parts = literals("Part", 0, "search", "recall", "entries", "engines") | {
        "vector",
        "keyword",
        "context",
        "date",
    }
    assert {f"part.{name}" for name in parts} - words().keys() == set()


def test_every_text_is_written_in_both_languages() -> None:
    table = words()
    assert [key for key, (english, _) in table.items() if CHINESE.search(english)] == []
    # Names and commands are the same in both.
    assert [
        key for key, (english, chinese) in table.items() if not CHINESE.search(chinese) and chinese != english
    ] == []
    same = {key for key, (english, chinese) in table.items() if chinese == english}
    assert same == {
        "code.check.python",
        "code.check.workspace",
        "code.check.chmod",
    }


def test_both_texts_have_the_same_placeholders_and_chinese_punctuation() -> None:
    for key, (english, chinese) in words().items():
        # A singular may be written without the placeholder, and the gateway's own sentence is English.
        assert english == "{message}" or placeholders(english) ^ placeholders(chinese) <= {"n"}, key
        assert not re.search(r"[\u4e00-\u9fff][,;:!?](?:[\u4e00-\u9fff]|$)", chinese), key


def test_every_error_class_has_a_code_of_its_own() -> None:
    named = [error.code for error in error_classes()]
    assert len(named) == len(set(named))


def test_a_sentence_is_a_string_that_knows_its_code() -> None:
    weak = sentence("recall.weak", confidence=0.12, threshold=0.3)
    assert weak == "not relevant enough: confidence 0.12 is below 0.3"
    assert codes({"considered": [{"reason": weak, "ref": "a.md"}]}) == {
        weak: {"code": "recall.weak", "details": {"confidence": 0.12, "threshold": 0.3}}
    }


def test_a_sentence_in_a_sentence_keeps_its_code() -> None:
    missing = sentence("embedder.missing", why=sentence("embedder.none"))
    assert missing == "keyword search only: keyword search only, as configured"
    assert missing.details["why"]["code"] == "embedder.none"
    both = join("A problem.", None, sentence("import.refused", n=2))
    assert both == "A problem. 2 entries were not imported: their texts were forgotten before."
    assert codes(both)[str(both)]["details"]["parts"][0] == "A problem."


def test_a_sentence_survives_a_database() -> None:
    undo = sentence("history.undo", kind="update", seq=7)
    stored = unpack(pack(undo))
    assert (stored, codes(stored)) == (undo, codes(undo))
    assert unpack(pack("Plain text.")) == "Plain text."
