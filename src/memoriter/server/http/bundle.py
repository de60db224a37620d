"""One script and one style sheet for the page, made from its modules in memory.

A browser would request each module in turn. The gateway joins them when it reads them, so there is no build step for
users or developers: the files in the folder are what the page runs.

The modules follow a few rules, which keep this simple: an import is `import { name } from "./file.js";`, and an export
is a function, a constant or a class where it is declared. Imports do not form a cycle. No text spans several lines.
What the first view does not need is imported by `import("./file.js")`: it becomes a script of its own.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]+)";\n', re.MULTILINE)
_LATE_IMPORT = re.compile(r'\bimport\("([^"]+)"\)')
#: Comments on lines of their own, and indentation. They are a tenth of what a browser would load.
_UNNEEDED = re.compile(r"^ *(?://.*|/\*\*?(?:[^*]|\*(?!/))*\*/)?\n|^ +", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_STYLE = re.compile(r'<link rel="stylesheet" href="/static/([^"]+)"(?: media="(\w+)")?>\n')
_SCRIPT = re.compile(r'<script type="module" src="/static/([^"]+)"></script>\n')


class ModuleCycle(ValueError):
    """Modules that import each other."""


def join_scripts(files: Mapping[str, str], first: str) -> dict[str, str]:
    """Return scripts by file name. The last one does what the module `first` and everything it imports do.

    The others are for its late imports. They contain the modules that the last one does not.
    """
    order = list[str]()
    _visit(files, first, order, ())
    numbers = {name: number for number, name in enumerate(order)}
    scripts, late = dict[str, str](), dict[str, str]()
    for name in order:
        for target in _LATE_IMPORT.findall(files[name]):
            root = _resolve(name, target)
            script = _late_script(files, root, numbers)
            late[root] = file_name(script, "js")
            scripts[late[root]] = script
    script = "const m = [];\n" + "".join(_scope(files[name], name, numbers, late) for name in order)
    return {**scripts, file_name(script, "js"): script}


def _late_script(files: Mapping[str, str], root: str, numbers: dict[str, int]) -> str:
    """Return a script for a module and those that it imports and that are in no script yet."""
    order = list[str]()
    _visit(files, root, order, ())
    missing = [name for name in order if name not in numbers]
    numbers.update({name: len(numbers) + offset for offset, name in enumerate(missing)})
    scopes = "".join(_scope(files[name], name, numbers, {}) for name in missing)
    return f"export default (m) => {{\n{scopes}return m[{numbers[root]}];\n}};\n"


def file_name(text: str, suffix: str) -> str:
    """Return a name that changes with the content."""
    return f"page-{hashlib.sha256(text.encode()).hexdigest()[:32]}.{suffix}"


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


def _scope(text: str, name: str, numbers: Mapping[str, int], late: Mapping[str, str]) -> str:
    """Return a module as a function that runs once and returns what the module exports."""

    def imported(match: re.Match[str]) -> str:
        names = match[1].replace(" as ", ": ").strip().rstrip(",")
        return f"const {{ {names} }} = m[{numbers[_resolve(name, match[2])]}];\n"

    def imported_late(match: re.Match[str]) -> str:
        return f'import("/static/{late[_resolve(name, match[1])]}").then((late) => late.default(m))'

    exported = ", ".join(match[1] for match in _EXPORT.findall(text))
    body = _LATE_IMPORT.sub(imported_late, _EXPORT.sub(r"\1", _IMPORT.sub(imported, text)))
    body = _UNNEEDED.sub("", body)
    return f"m[{numbers[name]}] = (() => {{ // {name}\n{body}return {{ {exported} }};\n}})();\n"


def join_styles(files: Mapping[str, str], index: str) -> str:
    """Return the style sheets that the index names as one."""
    return "".join(
        f"@media {media} {{\n{_UNNEEDED.sub('', files[name])}}}\n"
        if media
        else _UNNEEDED.sub("", files[name])
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
