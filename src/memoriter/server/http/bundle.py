"""One script and one style sheet for the page, made from its modules in memory.

A browser would request each module in turn. The gateway joins them when it reads them, so there is no build step for
users or developers: the files in the folder are what the page runs.

The modules follow two rules, which keep this simple: an import is `import { name } from "./file.js";`, and an export is
a function, a constant or a class where it is declared. Imports do not form a cycle.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
#: Comments on lines of their own. They are a tenth of what a browser would load.
_COMMENT = re.compile(r"^ *(?://.*|/\*\*?(?:[^*]|\*(?!/))*\*/)\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_STYLE = re.compile(r'<link rel="stylesheet" href="/static/([^"]+)"(?: media="(\w+)")?>\n')
_SCRIPT = re.compile(r'<script type="module" src="/static/([^"]+)"></script>\n')


class ModuleCycle(ValueError):
    """Modules that import each other."""


def join_scripts(files: Mapping[str, str], first: str) -> str:
    """Return one script that does what the module `first` and everything it imports do."""
    order: list[str] = []
    _visit(files, first, order, ())
    numbers = {name: number for number, name in enumerate(order)}
    return "".join(_scope(files[name], name, numbers) for name in order)


def _visit(files: Mapping[str, str], name: str, order: list[str], above: tuple[str, ...]) -> None:
    if name in above:
        raise ModuleCycle(" → ".join((*above[above.index(name) :], name)))
    if name in order:
        return
    for _, target in _IMPORT.findall(files[name]):
        _visit(files, _resolve(name, target), order, (*above, name))
    order.append(name)


def _resolve(name: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), target))


def _scope(text: str, name: str, numbers: Mapping[str, int]) -> str:
    """Return a module as a function that runs once and returns what the module exports."""

    def taken(match: re.Match[str]) -> str:
        names = match[1].replace(" as ", ": ").strip().rstrip(",")
        return f"const {{ {names} }} = m{numbers[_resolve(name, match[2])]};\n"

    exported = ", ".join(match[1] for match in _EXPORT.findall(text))
    body = _COMMENT.sub("", _EXPORT.sub(r"\1", _IMPORT.sub(taken, text)))
    return f"const m{numbers[name]} = (() => {{ // {name}\n{body}return {{ {exported} }};\n}})();\n"


def join_styles(files: Mapping[str, str], index: str) -> str:
    """Return the style sheets that the index names as one."""
    return "".join(
        f"@media {media} {{\n{_COMMENT.sub('', files[name])}}}\n" if media else _COMMENT.sub("", files[name])
        for name, media in _STYLE.findall(index)
    )


def first_script(index: str) -> str:
    """Return the module that the index starts."""
    match = _SCRIPT.search(index)
    if match is None:
        raise ValueError("the index names no module")
    return match[1]


def rewrite_index(index: str, script: str, style: str) -> str:
    """Return the index with one style sheet and one script instead of those it names."""
    index = _SCRIPT.sub(lambda _: f'<script type="module" src="/static/{script}"></script>\n', index)
    head, found, rest = index.partition('<link rel="stylesheet"')
    return head + f'<link rel="stylesheet" href="/static/{style}">\n' + _STYLE.sub("", found + rest)
