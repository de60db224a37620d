"""`memoriter profile`: who the owner is, and what the project is about; also kept in `USER.md` and `PROJECT.md`."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="profile",
    commands={
        "profile": Offer(
            "memoriter.extensions.profile.commands:command",
            group="Entries",
            summary="Show who you are, from your own statements.",
        )
    },
    chores=("memoriter.extensions.profile.files:refresh",),
    settings={"profile": "memoriter.extensions.profile.settings:ProfileSettings"},
)
