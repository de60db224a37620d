"""Put measured tables into a page between their marks, and leave the words around them alone."""

from __future__ import annotations

import re
from pathlib import Path


def put(page: Path, name: str, tables: str) -> None:
    """Replace the text between `<!-- measured: NAME -->` and `<!-- end measured -->`.

    A page that is not there, or has no such mark, becomes the tables alone.
    """
    block = f"<!-- measured: {name} -->\n{tables.strip()}\n<!-- end measured -->"
    text = page.read_text("utf-8") if page.exists() else ""
    mark = re.compile(rf"<!-- measured: {re.escape(name)} -->.*?<!-- end measured -->", re.DOTALL)
    if mark.search(text):
        page.write_text(mark.sub(lambda _: block, text, count=1), "utf-8")
    else:
        page.write_text(tables, "utf-8")
