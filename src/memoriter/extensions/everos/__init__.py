"""EverOS: import of its memory folder."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="everos", importers={"everos": Offer("memoriter.extensions.everos.memory_root:EVEROS")}
)
