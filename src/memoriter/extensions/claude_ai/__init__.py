"""Claude: import of its exports."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="claude_ai",
    importers={"claude": Offer("memoriter.extensions.claude_ai.conversations:CLAUDE", summary="Claude")},
)
