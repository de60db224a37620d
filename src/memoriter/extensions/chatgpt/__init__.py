"""ChatGPT: import of its exports, and the MCP tools that its connectors require."""

from __future__ import annotations

from memoriter.extension import Extension, Offer

extension = Extension(
    name="chatgpt",
    importers={"chatgpt": Offer("memoriter.extensions.chatgpt.conversations:CHATGPT")},
    mcp_tools={"chatgpt": Offer("memoriter.extensions.chatgpt.connector:tools")},
)
