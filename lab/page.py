"""Put measured tables into a page between their marks, and leave the words around them alone."""

from __future__ import annotations

import re
from pathlib import Path


def replaced(text: str, name: str, block: str) -> str:
    """Return the text of a page with new content between `<!-- measured: NAME -->` and `<!-- end measured -->`."""
    mark = re.compile(rf"<!-- measured: {re.escape(name)} -->.*?<!-- end measured -->", re.DOTALL)
    if not mark.search(text):
        raise ValueError(f"the page has no mark <!-- measured: {name} -->")
    content = f"<!-- measured: {name} -->\n{block.strip()}\n<!-- end measured -->"
    return mark.sub(lambda _: content, text, count=1)


def put(page: Path, name: str, tables: str) -> None:
    """Replace what is between the marks of a page. A page that does not exist becomes the tables alone."""
    page.write_text(replaced(page.read_text("utf-8"), name, tables) if page.exists() else tables, "utf-8")
