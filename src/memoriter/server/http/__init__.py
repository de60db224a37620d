"""The gateway: every operation over HTTP, live events, metrics, the page, and MCP beside them.

`app` makes the routes from the table of operations; `guard` stands before every one of them and decides who may do
what. What an operation does is decided where it is defined, and not here.
"""

from __future__ import annotations
