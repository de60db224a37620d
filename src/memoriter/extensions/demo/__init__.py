"""`memoriter demo`: a small workspace that is written, indexed and searched."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="demo",
    commands={
        "demo": Offer(
            "memoriter.extensions.demo.commands:command",
            group="Notes",
            summary="Write a small workspace and search it, step by step.",
        )
    },
)
