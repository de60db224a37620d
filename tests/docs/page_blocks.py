"""The fenced blocks of the documentation, and the commands in it.

A comment before a block says how it is tested: `<!-- not run: REASON -->` if it needs something that a test does not
have, and `<!-- run in: FOLDER -->` if it starts in another folder than `~/notes`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
SHELL = ("sh", "console")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    line: int
    language: str
    text: str
    #: Why no test runs it; empty if one does.
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The command lines, without prompts and output. A line that ends in a backslash goes on."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages in these languages."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start("language")) + 1
            block = Block(page.name, line, match["language"], match["text"], match["reason"] or "")
            found += [block] if block.language in languages else []
    return found


def named_commands() -> Iterator[tuple[str, list[str]]]:
    """Yield every command line of memoriter in the pages, in blocks and in running text, with its place."""
    for block in blocks(*SHELL):
        for command in block.commands:
            for part in re.split(r"&&|\||;|\$\(", command):
                yield from _words(str(block), part)
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for span in re.findall(r"`(memoriter [^`]+)`", text):
            yield from _words(page.name, span)


def _words(place: str, command: str) -> Iterator[tuple[str, list[str]]]:
    try:
        words = shlex.split(command, comments=True)
    except ValueError:  # a part of a quoted text
        return
    if words[:1] == ["memoriter"]:
        yield place, words[1:]
