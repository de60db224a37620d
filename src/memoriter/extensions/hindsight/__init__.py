"""Hindsight: import of its archives and lists of memories."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="hindsight", importers={"hindsight": Offer("memoriter.extensions.hindsight.bank:HINDSIGHT")}
)
