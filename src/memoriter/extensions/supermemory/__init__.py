"""supermemory: import of its lists of memories and documents."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="supermemory",
    importers={
        "supermemory": Offer("memoriter.extensions.supermemory.memories:SUPERMEMORY", summary="supermemory")
    },
)
