"""Commands that serve others: the gateway (`serve`, with `open`, `token` and `call`), and `watch`.

The gateway shows its operations to people at `/docs`.
"""

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.serving.commands"

extension = Extension(
    name="serving",
    commands={
        "serve": Offer(f"{_COMMANDS}:serve_command", group="Serving"),
        "open": Offer(f"{_COMMANDS}:open_command", group="Serving"),
        "watch": Offer(f"{_COMMANDS}:watch_command", group="Notes"),
        "call": Offer(f"{_COMMANDS}:call_command", group="Serving"),
        "token": Offer(f"{_COMMANDS}:token_app", group="Serving"),
    },
    mounts={"docs": Offer("memoriter.extensions.serving.api_page:ApiPage")},
    operations={
        f"tokens.{name}": Offer(f"memoriter.extensions.serving.operations:{code}")
        for name, code in (("list", "tokens"), ("create", "create"), ("revoke", "revoke"))
    },
)
