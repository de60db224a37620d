"""The files of the page, and the link that signs a browser in.

A file is looked up in a listing of the folder, so the path of a request never reaches the disk.
"""

from __future__ import annotations

import hashlib
import mimetypes
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


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file with its headers."""

    body: bytes
    media_type: str
    etag: str


class PageFiles:
    """The files of a folder by name. A file that has changed is read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[int, PageFile]] = {}

    def __getitem__(self, name: str) -> PageFile:
        path = self._names().get(name)
        if path is None:
            raise KeyError(name)
        modified_at = path.stat().st_mtime_ns
        known = self._read.get(name)
        if known is None or known[0] != modified_at:
            body = path.read_bytes()
            media_type = (
                MEDIA_TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
            )
            known = modified_at, PageFile(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
            self._read[name] = known
        return known[1]

    def _names(self) -> dict[str, Path]:
        return {
            path.relative_to(self._folder).as_posix(): path
            for path in self._folder.rglob("*")
            if path.suffix in MEDIA_TYPES and path.is_file() and not path.is_symlink()
        }


def routes(browsers: BrowserSessions, folder: Path = FOLDER) -> list[Route]:
    """Return the routes of the page."""
    files = PageFiles(folder)

    async def index(request: Request) -> Response:
        return _file_response(files, "index.html", request, "no-store")

    async def static(request: Request) -> Response:
        return _file_response(files, f"static/{request.path_params['name']}", request, "no-cache")

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


def _file_response(files: PageFiles, name: str, request: Request, cache_control: str) -> Response:
    try:
        file = files[name]
    except (KeyError, OSError):
        raise HTTPException(404) from None
    headers = {"etag": file.etag, "cache-control": cache_control}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.media_type)
