"""Hindsight: import of its archives and lists of memories."""

from __future__ import annotations

from memoriter.extension import Extension, Offer

extension = Extension(
    name="hindsight", importers={"hindsight": Offer("memoriter.extensions.hindsight.bank:HINDSIGHT")}
)
