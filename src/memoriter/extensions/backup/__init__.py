"""Commands that copy a memory: to one verified file and back (`backup`, `restore`), or to a server (`migrate`).

A backup holds everything that cannot be rebuilt: databases, sessions, settings and notes. The index and everything else
that is derived is left out. The first search after a restore builds it.
"""

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.backup.commands"

extension = Extension(
    name="backup",
    commands={
        "backup": Offer(
            f"{_COMMANDS}:backup_command",
            group="Maintenance",
            summary="Write everything to one verified file.",
        ),
        "restore": Offer(f"{_COMMANDS}:restore_command", group="Maintenance", summary="Restore a backup."),
        "migrate": Offer(
            f"{_COMMANDS}:migrate_command", group="Maintenance", summary="Move a memory to a server, or back."
        ),
    },
    operations={
        f"backups.{name}": Offer(f"memoriter.extensions.backup.operations:{code}")
        for name, code in (
            ("list", "backups"),
            ("create", "create"),
            ("check", "check"),
            ("read", "read"),
            ("restore", "restore"),
            ("remove", "remove"),
        )
    },
)
