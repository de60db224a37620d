"""`memoriter export` in the formats of other programs, and the import of such files without loss."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="passport",
    commands={
        "export": Offer(
            "memoriter.extensions.passport.command:command",
            group="Entries",
            summary="Export entries, also for other programs.",
        )
    },
    importers={"okf": Offer("memoriter.extensions.passport.formats:OKF")},
)
