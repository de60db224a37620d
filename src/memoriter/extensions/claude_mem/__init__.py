"""claude-mem: import of its database."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="claude_mem", importers={"claude-mem": Offer("memoriter.extensions.claude_mem.database:CLAUDE_MEM")}
)
