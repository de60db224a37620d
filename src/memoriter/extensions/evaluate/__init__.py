"""`memoriter evaluate`: is this memory any good? Questions that its own lines answer, asked on this machine."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="evaluate",
    commands={
        "evaluate": Offer(
            "memoriter.extensions.evaluate.command:command",
            group="Maintenance",
            summary="Measure how well your own notes are found.",
        )
    },
)
