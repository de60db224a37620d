"""Hosts whose settings are files: one table of what belongs into each, and one way to add and remove it."""

from memoriter.extension import Extension, Offer

_TABLE = "memoriter.extensions.clients.table"

extension = Extension(
    name="clients",
    hosts={
        "codex": Offer(f"{_TABLE}:CODEX"),
        "claude-desktop": Offer(f"{_TABLE}:CLAUDE_DESKTOP"),
        "copilot-cli": Offer(f"{_TABLE}:COPILOT_CLI"),
        "opencode": Offer(f"{_TABLE}:OPENCODE"),
        "gemini-cli": Offer(f"{_TABLE}:GEMINI_CLI"),
        "cursor": Offer(f"{_TABLE}:CURSOR"),
        "vscode": Offer(f"{_TABLE}:VSCODE"),
        "windsurf": Offer(f"{_TABLE}:WINDSURF"),
        "zed": Offer(f"{_TABLE}:ZED"),
    },
    transcripts={
        "codex": Offer("memoriter.extensions.clients.records:of_codex"),
        "copilot-cli": Offer("memoriter.extensions.clients.records:of_copilot_cli"),
        "gemini-cli": Offer("memoriter.extensions.clients.records:of_gemini_cli"),
    },
)
