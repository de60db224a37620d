"""The files of the page, and the link that signs a browser in.

A file is looked up in a listing of the folder, so the path of a request never reaches the disk. The index names one
script and one style sheet with the modules. Their names contain a digest, so browsers keep them.
"""

from __future__ import annotations

import gzip
import hashlib
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memoriter.server.http.responses import Refused

if TYPE_CHECKING:
    from memoriter.server.http.auth import BrowserSessions

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
        for root in (_resolve(name, target) for target in _LATE_IMPORT.findall(files[name])):
            if root in late:
                continue
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


FOLDER = Path(__file__).parent.parent / "web"

#: Fixed here, because the tables of operating systems differ.
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}

SIGNED_IN_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>memoriter</title>
<p><a href="/">memoriter</a></p>
</html>
"""

INDEX = "index.html"
#: A client checks its copy of a file with each request. The name of a bundle changes with its content.
CHECKED, IMMUTABLE, UNSTORED = "no-cache", "public, max-age=31536000, immutable", "no-store"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file with its headers."""

    body: bytes
    media_type: str
    cache_control: str
    etag: str
    #: The body as gzip, for files that are worth it.
    packed: bytes | None = None


class PageFiles:
    """The files of a folder by name, and the bundles that its index names. Files that have changed are read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, PageFile] = {}
        self._state: dict[str, int] = {}

    def __getitem__(self, name: str) -> PageFile:
        state = {
            path.relative_to(self._folder).as_posix(): path.stat().st_mtime_ns
            for path in self._folder.rglob("*")
            if path.suffix in MEDIA_TYPES and path.is_file() and not path.is_symlink()
        }
        if state != self._state:
            self._read = self._load(state)
            self._state = state
        return self._read[name]

    def _load(self, names: Mapping[str, object]) -> dict[str, PageFile]:
        bodies = {name: (self._folder / name).read_bytes() for name in names}
        texts = {
            name.removeprefix("static/"): body.decode()
            for name, body in bodies.items()
            if name.endswith((".js", ".css", ".html"))
        }
        files = {name: _page_file(name, body, CHECKED) for name, body in bodies.items()}
        scripts = join_scripts(texts, first_script(texts[INDEX]))
        style = join_styles(texts, texts[INDEX])
        style_name = file_name(style, "css")
        index = rewrite_index(texts[INDEX], list(scripts)[-1], style_name)
        if languages := sorted(Path(name).stem for name in names if name.startswith("static/languages/")):
            index = index.replace(
                '<html lang="en"', f'<html lang="en" data-languages="{" ".join(languages)}"'
            )
        for name, text in {**scripts, style_name: style}.items():
            files[f"static/{name}"] = _page_file(name, text.encode(), IMMUTABLE)
        files[INDEX] = _page_file(INDEX, index.encode(), UNSTORED)
        return files


def _page_file(name: str, body: bytes, cache_control: str) -> PageFile:
    packed = gzip.compress(body, mtime=0) if cache_control == IMMUTABLE else None
    digest = hashlib.sha256(body).hexdigest()[:32]
    return PageFile(body, MEDIA_TYPES[Path(name).suffix], cache_control, f'"{digest}"', packed)


def routes(browsers: BrowserSessions) -> list[Route]:
    """Return the routes of the page."""
    files = PageFiles(FOLDER)

    async def index(request: Request) -> Response:
        return _file_response(files, INDEX, request)

    async def static(request: Request) -> Response:
        return _file_response(files, f"static/{request.path_params['name']}", request)

    async def sign_in(request: Request) -> Response:
        if request.method == "HEAD":  # a program that only checks the link must not use up the ticket
            raise HTTPException(405, headers={"Allow": "GET"})
        cookie = browsers.sign_in(request.query_params.get("ticket", ""))
        return _sign_in_response(cookie, browsers.cookie, request)

    return [
        Route("/", index, methods=["GET"]),
        Route("/static/{name:path}", static, methods=["GET"]),
        Route("/open", sign_in, methods=["GET"]),
    ]


def _sign_in_response(cookie: str | None, cookie_name: str, request: Request) -> Response:
    if cookie is None and "text/html" not in request.headers.get("accept", ""):
        message = "This link has expired or was already used. Run `memoriter open` for a new one."
        raise Refused(403, "link_expired", message)
    # Not a redirect: a browser that follows the link from another site would not send a strict cookie.
    response = Response(
        SIGNED_IN_PAGE, headers={"cache-control": "no-store"}, media_type="text/html; charset=utf-8"
    )
    if cookie is None:  # the page opens if the browser is signed in, and otherwise explains how to get a link
        response.status_code = 403
        return response
    response.set_cookie(cookie_name, cookie, httponly=True, samesite="strict", path="/")
    return response


def _file_response(files: PageFiles, name: str, request: Request) -> Response:
    try:
        file = files[name]
    except (KeyError, OSError):
        raise HTTPException(404) from None
    headers = {"etag": file.etag, "cache-control": file.cache_control}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    if file.packed is None:
        return Response(file.body, headers=headers, media_type=file.media_type)
    headers["vary"] = "accept-encoding"
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.body, headers=headers, media_type=file.media_type)
    headers["content-encoding"] = "gzip"
    return Response(file.packed, headers=headers, media_type=file.media_type)
