"""Reject words and phrases that make our prose hard to read. `make check` runs this.

    python docs/check_words.py          # every tracked source and documentation file
    python docs/check_words.py FILE …   # these files only

Sample texts are exempt: data files, and lines that end with the marker `words: ok`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUFFIXES = {".py", ".md", ".js", ".css", ".html", ".toml"}
MARKER = "words: ok"

#: pattern, and what to write instead
WORDS = {
    r"mend(s|ed|ing)?": "fix",
    r"anew": "again",
    r"nobody|somebody|whoever|whomever": "name the actor: the caller, the client, a process",
    r"all the same": "anyway, still",
    r"(by|of) (itself|themselves)": "automatically, on its own",
    r"(take|takes|took|taken|taking)[ _]in": "index, import, process",
    r"(is|are|was|were|be|been)[ _]heard|heard": "processed",
    r"hasty|patient(ly)?": "without retry, with retry",
    r"exhum(e|es|ed|ing)|doom(s|ed)?|bur(y|ies|ied)": "clear_tombstone, mark_for_erasure, add_tombstone",
    r"let(s|ting)?[ _]in": "accept, allow",
    r"(?<!there )(is|are) no (?!longer|more than|less than|later than|earlier than)[a-z]+": "is not a …",
    r"so (many|long) (and|as) no": "at most N",
}
PATTERN = re.compile("|".join(rf"(?P<w{i}>\b(?:{word})\b)" for i, word in enumerate(WORDS)), re.IGNORECASE)
ADVICE = list(WORDS.values())


def tracked() -> list[Path]:
    command = ["git", "ls-files"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603
    files = (ROOT / name for name in names.splitlines())
    return [file for file in files if file.suffix in SUFFIXES and file.is_file() and file != Path(__file__)]


def findings(file: Path) -> list[str]:
    """One line for each word in the file that has a plainer form."""
    rows = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if line.rstrip().endswith(MARKER):
            continue
        for match in PATTERN.finditer(line.replace("_", " ")):
            advice = ADVICE[int((match.lastgroup or "w0")[1:])]
            rows.append(f"{file.relative_to(ROOT)}:{number}: {match.group()!r} (write: {advice})")
    return rows


def main() -> int:
    files = [Path(name).resolve() for name in sys.argv[1:]] or tracked()
    rows = [row for file in files for row in findings(file)]
    sys.stdout.writelines(f"{row}\n" for row in rows)
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
