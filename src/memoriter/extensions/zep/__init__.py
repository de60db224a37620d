"""Zep and Graphiti: import of facts and messages."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="zep", importers={"zep": Offer("memoriter.extensions.zep.facts:ZEP", summary="Zep")}
)
