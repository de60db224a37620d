"""Who asks: what was granted to the caller of this request, and the session that it speaks for.

Whoever takes in a request sets these for it: a gateway from the caller's token, the command line once for all. They
are read anew at each request, in the request's own context.
"""

from __future__ import annotations

from contextvars import ContextVar

from memoriter.tools.tool import Access

granted: ContextVar[Access] = ContextVar("memoriter_mcp_granted", default="write")
"""What the caller may do. A tool beyond it is not listed, and a call of it is refused."""

session: ContextVar[str | None] = ContextVar("memoriter_mcp_session", default=None)
"""The key of the caller's session, by which `memory.scope` decides; None is the owner's own."""
