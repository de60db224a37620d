"""Our gateway with the tools, resources and prompts that the MCP conformance suite asks for.

The requests go through our guard, our transport and `McpServer`; the fixtures are added to what it lists. The suite
cannot send a token, so every request gets one here. `python -m lab.conformance.mcp_fixtures` prints the address.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn

from memoriter.config import load
from memoriter.extensions.mcp import server as mcp_server
from memoriter.extensions.mcp.server import Context, McpServer
from memoriter.server.http.gateway import Gateway, SettingsLoader

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
STEP_S = 0.05
DEFS = {
    "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
}
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": DEFS,
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


def _resource(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(type="resource", resource=contents)


RESULTS: dict[str, list[Any]] = {
    "test_simple_text": [_text("This is a simple text response for testing.")],
    "test_image_content": [_image()],
    "test_audio_content": [types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")],
    "test_embedded_resource": [
        _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        _text("Multiple content types test:"),
        _image(),
        _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "test_tool_with_progress": [_text("Done.")],
    "test_error_handling": [_text("This tool intentionally returns an error for testing")],
    "json_schema_2020_12_tool": [_text("Done.")],
}
RESOURCES: dict[str, Any] = {
    "test://static-text": types.TextResourceContents(
        uri="test://static-text",
        mime_type="text/plain",
        text="This is the content of the static text resource.",
    ),
    "test://static-binary": types.BlobResourceContents(
        uri="test://static-binary", mime_type="image/png", blob=PNG
    ),
    "test://template/123/data": types.TextResourceContents(
        uri="test://template/123/data",
        mime_type="application/json",
        text='{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
    ),
}
PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


class FixtureServer(McpServer):
    """Our server with the fixtures."""

    async def _list_tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        listed = await super()._list_tools(ctx, params)
        schemas = {"json_schema_2020_12_tool": SCHEMA_2020}
        listed.tools += [
            types.Tool(name=name, description=name, input_schema=schemas.get(name, {"type": "object"}))
            for name in RESULTS
        ]
        return listed

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in RESULTS:
            return await super()._call_tool(ctx, params)
        if params.name == "test_tool_with_progress":
            for done in (0, 50, 100):
                await ctx.report_progress(done, 100)
                await asyncio.sleep(STEP_S)
        return types.CallToolResult(
            content=RESULTS[params.name], is_error=params.name == "test_error_handling"
        )

    async def _read_resource(self, ctx: Context, params: Any) -> types.ReadResourceResult:
        if str(params.uri) in RESOURCES:
            return types.ReadResourceResult(contents=[RESOURCES[str(params.uri)]])
        return await super()._read_resource(ctx, params)

    async def _list_prompts(self, ctx: Context, params: Any) -> types.ListPromptsResult:
        listed = await super()._list_prompts(ctx, params)
        for name, arguments in PROMPTS.items():
            wanted = [types.PromptArgument(name=one, required=True) for one in arguments]
            listed.prompts.append(types.Prompt(name=name, description=name, arguments=wanted))
        return listed

    async def _get_prompt(self, ctx: Context, params: Any) -> types.GetPromptResult:
        if params.name not in PROMPTS:
            return await super()._get_prompt(ctx, params)
        given = params.arguments or {}
        contents: dict[str, list[Any]] = {
            "test_simple_prompt": [_text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments": [
                _text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
            ],
            "test_prompt_with_embedded_resource": [
                _resource(
                    given.get("resourceUri", ""), "text/plain", "Embedded resource content for testing."
                ),
                _text("Please process the embedded resource above."),
            ],
            "test_prompt_with_image": [_image(), _text("Please analyze the image above.")],
        }
        messages = [types.PromptMessage(role="user", content=one) for one in contents[params.name]]
        return types.GetPromptResult(messages=messages)


def main() -> None:
    """Serve until the process ends."""
    mcp_server.McpServer = FixtureServer  # type: ignore[misc]
    folder = Path(tempfile.mkdtemp(prefix="memoriter-conformance-"))
    (folder / "MEMORY.md").write_text("# Notes\n\nThe fixtures of the suite are not in the memory.\n")
    settings = load(arguments={"workspace": folder, "home": folder / "home", "embedding.provider": "none"})
    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    gateway = Gateway(SettingsLoader(settings, arguments={"embedding.provider": "none"}), port=port)
    _, token = gateway.tokens.create("admin", name="conformance")

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]
        await gateway.asgi(scope, receive, send)

    print(f"http://localhost:{port}/mcp", flush=True)
    server = uvicorn.Server(uvicorn.Config(with_token, log_level="error"))
    server.run(sockets=[bound])


if __name__ == "__main__":
    main()
