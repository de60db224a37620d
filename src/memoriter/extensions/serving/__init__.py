"""Commands of the gateway: `serve`, `open` and `token`."""

from __future__ import annotations

from memoriter.extension import Extension, Offer

_COMMANDS = "memoriter.extensions.serving.commands"

extension = Extension(
    name="serving",
    commands={
        "serve": Offer(f"{_COMMANDS}:serve_command", group="Serving"),
        "open": Offer(f"{_COMMANDS}:open_command", group="Serving"),
        "token": Offer(f"{_COMMANDS}:token_app", group="Serving"),
    },
)
