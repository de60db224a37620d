"""Claude Code: hooks, installation, and import of its transcripts.

`hook` is the entry point of `memoriter hook`, `worker` guarantees an answer in time, `events` builds the answer, and
`capture` processes sessions afterwards.
"""

from __future__ import annotations

from memoriter.extension import Extension, Offer

extension = Extension(
    name="claude_code",
    hosts={"claude-code": Offer("memoriter.extensions.claude_code.host:CLAUDE_CODE")},
    importers={"claude-code": Offer("memoriter.extensions.claude_code.transcripts:CLAUDE_CODE")},
)
