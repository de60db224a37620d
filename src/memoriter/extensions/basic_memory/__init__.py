"""basic-memory: import of its notes."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="basic_memory",
    importers={"basic-memory": Offer("memoriter.extensions.basic_memory.notes:BASIC_MEMORY")},
)
