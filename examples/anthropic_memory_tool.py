"""Anthropic's memory tool: Claude writes to /memories, which are Markdown notes. No key, no network.

The server follows a script. Without ``base_url`` the SDK uses Anthropic's server.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from anthropic import Anthropic

import memoriter
from memoriter.extensions.anthropic import MemoriterMemoryTool

SCRIPT: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/mira.md", "file_text": "# Mira\n\n- allergic to hazelnuts\n"},
    {"command": "insert", "path": "/memories/mira.md", "insert_line": 3, "insert_text": "- vegetarian"},
    {"command": "view", "path": "/memories/mira.md"},
]


@contextmanager
def scripted_claude() -> Iterator[str]:
    """Run a server that requests the commands of the script in turn; yield its address."""
    calls = iter(SCRIPT)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            content = request["messages"][-1]["content"]
            if isinstance(content, list):
                print("tool:  ", str(content[0]["content"]).replace("\n", "\n        "))
            call = next(calls, None)
            use = {"type": "tool_use", "id": "t", "name": "memory", "input": call}
            answer = {"type": "text", "text": "I will remember that."}
            if call:
                print("claude:", call)
            body = json.dumps(
                {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "model": "scripted",
                    "content": [use if call else answer],
                    "stop_reason": "tool_use" if call else "end_turn",
                    "stop_sequence": None,
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                }
            ).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, scripted_claude() as base_url:
        workspace = Path(folder) / "notes"
        workspace.mkdir()
        client = Anthropic(api_key="not needed here", base_url=base_url)
        with memoriter.open(workspace, home=Path(folder) / "home") as memory:
            runner = client.beta.messages.tool_runner(
                model="scripted",
                max_tokens=1000,
                tools=[MemoriterMemoryTool(memory)],
                messages=[{"role": "user", "content": "I am vegetarian, and allergic to hazelnuts."}],
            )
            runner.until_done()
            hit = memory.search("which food must she avoid?").hits[0]
            print("found: ", hit.citation, f"(trust: {hit.trust})")


if __name__ == "__main__":
    main()
