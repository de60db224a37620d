"""Commands that set up folders of notes and give them names: `init` and `workspace`."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="workspaces",
    commands={
        "init": Offer("memoriter.extensions.workspaces.setup:init_app", group="Notes"),
        "workspace": Offer(
            "memoriter.extensions.workspaces.commands:app",
            group="Notes",
            summary="Give folders of notes names, and choose one.",
        ),
    },
)
