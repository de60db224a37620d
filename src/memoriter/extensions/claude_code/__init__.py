"""Claude Code: its plugin, and the import of its transcripts."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="claude_code",
    hosts={"claude-code": Offer("memoriter.extensions.claude_code.host:CLAUDE_CODE")},
    importers={"claude-code": Offer("memoriter.extensions.claude_code.transcripts:CLAUDE_CODE")},
    transcripts={"claude-code": Offer("memoriter.extensions.claude_code.records:message_of")},
    environment=("CLAUDE_CONFIG_DIR",),
)
