"""The HTTP gateway: operations, live events, metrics, the page and MCP.

`app` makes the routes from the table of operations. `guard` checks every request before a route handles it.
"""

from __future__ import annotations
