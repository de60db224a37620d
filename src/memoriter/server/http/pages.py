"""The files of the page, and the link that signs a browser in.

A file is looked up in a listing of the folder, so the path of a request never reaches the disk. The index names one
script and one style sheet with the modules (see `bundle`). Their names contain a digest, so browsers keep them.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memoriter.server.http import bundle
from memoriter.server.http.responses import Refused

if TYPE_CHECKING:
    from memoriter.server.http.auth import BrowserSessions

FOLDER = Path(__file__).parent.parent / "web"

#: Fixed here, because the tables of operating systems differ.
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
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
        scripts = bundle.join_scripts(texts, bundle.first_script(texts[INDEX]))
        style = bundle.join_styles(texts, texts[INDEX])
        style_name = bundle.file_name(style, "css")
        index = bundle.rewrite_index(texts[INDEX], list(scripts)[-1], style_name)
        for name, text in {**scripts, style_name: style}.items():
            files[f"static/{name}"] = _page_file(name, text.encode(), IMMUTABLE)
        files[INDEX] = _page_file(INDEX, index.encode(), UNSTORED)
        return files


def _page_file(name: str, body: bytes, cache_control: str) -> PageFile:
    media_type = (
        MEDIA_TYPES.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    )
    packed = gzip.compress(body, mtime=0) if cache_control == IMMUTABLE else None
    return PageFile(body, media_type, cache_control, f'"{_digest(body)}"', packed)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]


def routes(browsers: BrowserSessions, folder: Path = FOLDER) -> list[Route]:
    """Return the routes of the page."""
    files = PageFiles(folder)

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
