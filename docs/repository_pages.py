"""Hook of mkdocs: add the pages outside docs/ to the site, and make links between all pages work there.

The Markdown keeps links that work in a checkout, such as `../ARCHITECTURE.md`. On the site, the files of docs/ and the
other files share one root.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
#: Files outside docs/ that are pages, or that pages link to.
OUTSIDE = (
    "ARCHITECTURE.md",
    "C*.md",
    "SECURITY.md",
    "LICENSE",
    "lab/*.md",
    "lab/*/README.md",
    "lab/images/*.svg",
    "examples/*.py",
)

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)(?P<path>[^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs/."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Rewrite the links of a page from places in the repository to places on the site."""
    here = page.file.src_uri
    folder = posixpath.dirname(here if page.file.generated_by else f"docs/{here}")

    def on_site(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link["path"])).removeprefix("docs/")
        return posixpath.relpath(target, posixpath.dirname(here) or ".")

    return LINK.sub(on_site, markdown)
