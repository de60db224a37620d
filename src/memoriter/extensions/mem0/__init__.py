"""mem0: import of its exports."""

from __future__ import annotations

from memoriter.extension import Extension, Offer

extension = Extension(name="mem0", importers={"mem0": Offer("memoriter.extensions.mem0.statements:MEM0")})
