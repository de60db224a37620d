"""The page's files, and the link by which a browser comes in.

The files are few and ours: they are found by listing their folder, so no path of a request ever reaches the disk.
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
    from memoriter.server.http.auth import Browsers

FOLDER = Path(__file__).parent.parent / "web"

#: Said here, because a system's own table may say something else, and a browser must not have to guess.
KINDS = {
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

OPENED = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>memoriter</title>
<p><a href="/">memoriter</a></p>
</html>
"""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it is sent."""

    body: bytes
    kind: str
    etag: str


class Files:
    """The files of a folder by their names; one that changes is read again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[int, File]] = {}

    def __getitem__(self, name: str) -> File:
        path = self._names().get(name)
        if path is None:
            raise KeyError(name)
        changed = path.stat().st_mtime_ns
        known = self._read.get(name)
        if known is None or known[0] != changed:
            body = path.read_bytes()
            kind = KINDS.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
            known = changed, File(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
            self._read[name] = known
        return known[1]

    def _names(self) -> dict[str, Path]:
        return {
            path.relative_to(self._folder).as_posix(): path
            for path in self._folder.rglob("*")
            if path.suffix in KINDS and path.is_file() and not path.is_symlink()
        }


def routes(browsers: Browsers, folder: Path = FOLDER) -> list[Route]:
    """Return the routes of the page."""
    files = Files(folder)

    async def index(request: Request) -> Response:
        return _sent(files, "index.html", request, "no-store")

    async def static(request: Request) -> Response:
        return _sent(files, f"static/{request.path_params['name']}", request, "no-cache")

    async def opened(request: Request) -> Response:
        if request.method == "HEAD":  # a program that only checks the link must not use up the ticket
            raise HTTPException(405, headers={"Allow": "GET"})
        cookie = browsers.enter(request.query_params.get("ticket", ""))
        if cookie is None and "text/html" not in request.headers.get("accept", ""):
            raise Refused(403, "This link was used or is too old; `memoriter open` makes a new one.")
        # No redirect: where the link was followed from another site's page, a browser would leave a strict cookie out.
        answer = Response(
            OPENED, headers={"cache-control": "no-store"}, media_type="text/html; charset=utf-8"
        )
        if (
            cookie is None
        ):  # a person: the page opens where the browser came in before, and else says how to get a link
            answer.status_code = 403
            return answer
        answer.set_cookie(browsers.cookie, cookie, httponly=True, samesite="strict", path="/")
        return answer

    return [
        Route("/", index, methods=["GET"]),
        Route("/static/{name:path}", static, methods=["GET"]),
        Route("/open", opened, methods=["GET"]),
    ]


def _sent(files: Files, name: str, request: Request, caching: str) -> Response:
    try:
        file = files[name]
    except (KeyError, OSError):
        raise HTTPException(404) from None
    headers = {"etag": file.etag, "cache-control": caching}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, headers=headers, media_type=file.kind)
