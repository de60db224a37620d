"""supermemory: import of its lists of memories and documents."""

from __future__ import annotations

from memoriter.extension import Extension, Offer

extension = Extension(
    name="supermemory",
    importers={"supermemory": Offer("memoriter.extensions.supermemory.memories:SUPERMEMORY")},
)
