"""MemPalace: import of its exports."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="mempalace", importers={"mempalace": Offer("memoriter.extensions.mempalace.rooms:MEMPALACE")}
)
