"""What the gateway says of recalls, forgetting and health can be read in Chinese: every sentence of its sources."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import memoriter
from memoriter.entries.erase import COVERED, NOT_COVERED

PACKAGE = Path(memoriter.__file__).parent
SAMPLE = "7"  #: fits a place for a number and one for words

#: The same in every language: commands, versions.
NO_WORDS = {f"chmod 700 {SAMPLE}", "pip install 'memoriter[sqlite-vec]'", f"Python {SAMPLE}, SQLite {SAMPLE}"}
#: Why an embedder is the one that answers, or why there is none.
EMBEDDERS = {
    "the model that comes with memoriter",
    "the model in /models/small, as configured",
    "the model /models/small.gguf, as configured",
    "ollama at 127.0.0.1:11434",
    "given by the caller",
    "keyword search only, as configured",
    "keyword search only: no key",
    "the fallback, because openai is not available: no key",
}
#: Names under which the sources keep a sentence until it is told.
KEPT_AS = {
    "recall/inject.py": {"reason", "why"},
    "recall/candidates.py": {"refused"},
    "entries/erase.py": {"busy"},
    "memory.py": {"went"},
    "entries/map.py": {"degraded"},
}


def tree(path: str) -> ast.Module:
    return ast.parse((PACKAGE / path).read_text("utf-8"))


def sentences(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may become, with a sample in each place; what is compared or called is none."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and node.value:
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from map("".join, itertools.product(*(list(piece(part)) for part in node.values)))
    elif isinstance(node, ast.IfExp):
        yield from (*sentences(node.body), *sentences(node.orelse))
    elif isinstance(node, ast.BoolOp):
        yield from (one for value in node.values for one in sentences(value))
    elif isinstance(node, ast.Tuple):
        yield from (one for value in node.elts for one in sentences(value))


def piece(part: ast.expr) -> Iterator[str]:
    """What a part of a formatted text may become: itself, a word for one or for several, or a value."""
    value = part.value if isinstance(part, ast.FormattedValue) else part
    yield from sentences(value) if isinstance(value, ast.Constant | ast.IfExp) else (SAMPLE,)


def kept(path: str, names: set[str]) -> Iterator[str]:
    """What is assigned to these names."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id in names for target in node.targets
        ):
            yield from sentences(node.value)


def found(path: str) -> Iterator[str]:
    """Texts and remedies of findings."""
    yield from kept(path, {"mend"})
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
            yield from (one for argument in node.args[2:] for one in sentences(argument))


def relations() -> Iterator[str]:
    """Why a statement was taken for the same as another, or for its successor: that stands in histories."""
    for node in ast.walk(tree("entries/relation.py")):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Relation":
            kind, why = node.args
            if "different" not in sentences(kind):
                yield from sentences(why)


def left_in_logs() -> Iterator[str]:
    """What forgetting says of logs that stay: a sentence, and their names."""
    for node in ast.walk(tree("notes/collection.py")):
        if isinstance(node, ast.Dict):
            yield from (f"{one}: {SAMPLE}" for key in node.keys if key for one in sentences(key))


KNOWN = {
    *COVERED,
    *NOT_COVERED,
    *EMBEDDERS,
    *(one for path, names in KEPT_AS.items() for one in kept(path, names)),
    *left_in_logs(),
    *relations(),
    *found("tools/doctor.py"),
    *found("tools/health.py"),
} - NO_WORDS  # fmt: skip


def chinese(sentence: str) -> list[str]:
    """The Chinese of every form that a sentence fits; the first is shown."""
    text = (PACKAGE / "server/web/static/words.js").read_text("utf-8")
    words: dict[str, list[str]] = json.loads(text[text.index("{\n") : text.rindex("}") + 1])
    said = [forms for key, forms in words.items() if key.startswith("said.")]
    return [other for form, other in said if re.fullmatch(pattern(form), sentence, re.DOTALL)]


def pattern(form: str) -> str:
    pieces = re.split(r"\{(\w+)\}", form)
    places = [r"[-+.\de]+" if len(name) == 1 else ".+" for name in pieces[1::2]]
    return "".join(re.escape(piece) + place for piece, place in zip(pieces[::2], [*places, ""], strict=True))


@pytest.mark.parametrize("sentence", sorted(KNOWN))
def test_a_sentence_of_the_gateway_has_a_chinese_form(sentence: str) -> None:
    assert re.search(r"[\u4e00-\u9fff]", "".join(chinese(sentence)[:1])), sentence


def test_the_sources_are_read_as_they_are_written() -> None:
    assert {
        f"fits, score {SAMPLE}",
        f"it fits too little: {SAMPLE}, less than {SAMPLE}",
        "no room was left",
        "the databases' logs, which another process is reading now: they go when it ends",
        f"lines that said just this, in {SAMPLE}",
        f"logs that could not be read or written, and may say it: {SAMPLE}",
        f"{SAMPLE} files differ from the index",
        "Make room.",
        "says all of it, and more",
    } <= KNOWN
