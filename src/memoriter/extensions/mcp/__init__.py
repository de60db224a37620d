"""The memory over the Model Context Protocol, for Claude, Cursor, Codex, ChatGPT and other MCP clients.

Tools, schemas and descriptions come from the table of operations. A client gets the tools of the agent's memory slot
that its access allows. The server keeps no state for a client, so any process can answer any request.
"""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="mcp",
    commands={"mcp": Offer("memoriter.extensions.mcp.commands:mcp_command", group="Serving")},
    mounts={"mcp": Offer("memoriter.extensions.mcp.mount:McpMount")},
    mcp_tools={"chatgpt": Offer("memoriter.extensions.mcp.chatgpt:tools")},
)
