"""Commands that change the owner's settings file: `config` for single settings, `collection` for folders of notes."""

from __future__ import annotations

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.settings.commands"

extension = Extension(
    name="settings",
    commands={
        "collection": Offer(f"{_COMMANDS}:collection_app", group="Notes"),
        "config": Offer(f"{_COMMANDS}:config_app", group="Maintenance"),
    },
)
