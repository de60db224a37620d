"""ChatGPT: import of its exports, and the MCP tools that its connectors require."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="chatgpt",
    importers={"chatgpt": Offer("memoriter.extensions.chatgpt.conversations:CHATGPT", summary="ChatGPT")},
    mcp_tools={"chatgpt": Offer("memoriter.extensions.chatgpt.connector:tools")},
)
