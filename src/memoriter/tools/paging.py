"""Cursors: where the next page of a list begins, as a text that clients hand back unread."""

from __future__ import annotations

import base64
import json
import math

from memoriter.tools import results
from memoriter.tools.tool import Param, WrongArgument

MOST = 500  #: things on one page

LIMIT = Param("limit", "integer", "Most to return at once; 100 if not given.", minimum=1, maximum=MOST)
CURSOR = Param(
    "cursor", "string", "Where to go on: the `cursor` of the page before, with the same filters.", longest=500
)
CURSOR_OUT: results.Schema = {
    "type": ["string", "null"],
    "description": "Hand it back for the next page; null on the last.",
}

After = tuple[float, str]


def encoded(after: After | None, order: str) -> str | None:
    """The cursor for a place in this order."""
    if after is None:
        return None
    return base64.urlsafe_b64encode(json.dumps([order, *after]).encode()).decode().rstrip("=")


def decoded(cursor: str | None, order: str) -> After | None:
    """The place that a cursor names; one of another order, or that nobody gave out, is refused."""
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        found, value, id_ = json.loads(text)
        place = (float(value), str(id_))
    except (ValueError, TypeError, RecursionError):
        raise WrongArgument("cursor is none that was given out here.") from None
    if found != order or not math.isfinite(place[0]):
        raise WrongArgument("cursor belongs to a list in another order: begin again without it.")
    return place
