"""Commands that connect the memory to other programs: importers read their data, and hosts run an agent."""

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.programs.commands"
_OPERATIONS = "memoriter.extensions.importing.operations"

extension = Extension(
    name="programs",
    commands={
        "import": Offer(f"{_COMMANDS}:import_command", group="Entries"),
        "install": Offer(
            f"{_COMMANDS}:install_command",
            group="Agents",
            summary="Connect an agent, such as Claude Code, Codex or Cursor.",
        ),
        "hosts": Offer(
            "memoriter.extensions.programs.hosts:hosts_command",
            group="Agents",
            summary="List the agents on this machine, and which are connected.",
        ),
        "uninstall": Offer(f"{_COMMANDS}:uninstall_command", group="Agents"),
        "hook": Offer(f"{_COMMANDS}:hook_command", group="Agents"),
        "process-queue": Offer(f"{_COMMANDS}:queue_command", group="Agents"),
    },
    operations={
        "entries.export": Offer(f"{_OPERATIONS}:export"),
        "entries.importers": Offer(f"{_OPERATIONS}:importers"),
        "entries.import": Offer(f"{_OPERATIONS}:import_"),
        "entries.undo_import": Offer(f"{_OPERATIONS}:undo_import"),
        "hosts.list": Offer("memoriter.extensions.programs.operations:hosts"),
    },
)
