"""The table of hosts: for each, where its settings are, and what belongs into them."""

from memoriter.extensions.clients.host import Client, ClientHookHost, ClientHost, Folder
from memoriter.extensions.clients.parts import FULL, JsonHooks, JsonServer, TomlServer

CLAUDE_EVENTS = {
    name: name for name in ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd")
}

CODEX = ClientHookHost(
    Client(
        "codex",
        "Codex",
        Folder("$CODEX_HOME"),
        (
            JsonHooks("hooks.json", "codex", CLAUDE_EVENTS),
            TomlServer("config.toml", ("startup_timeout_sec = 60",), FULL),
        ),
        ("codex",),
        project=".codex",
        next_step="Codex runs hooks only after you have trusted them: start codex, enter /hooks and trust them.",
    )
)
CLAUDE_DESKTOP = ClientHost(
    Client(
        "claude-desktop",
        "Claude Desktop",
        Folder("$XDG_CONFIG_HOME/Claude", "$APPDATA/Claude", "~/Library/Application Support/Claude"),
        (JsonServer("claude_desktop_config.json"),),
        ("claude-desktop",),
        next_step="Restart Claude Desktop.",
    )
)
CURSOR = ClientHost(
    Client("cursor", "Cursor", Folder("~/.cursor"), (JsonServer("mcp.json"),), ("cursor",), project=".cursor")
)
VSCODE = ClientHost(
    Client(
        "vscode",
        "VS Code",
        Folder("$XDG_CONFIG_HOME/Code/User", "$APPDATA/Code/User", "~/Library/Application Support/Code/User"),
        (JsonServer("mcp.json", ("servers", "memoriter"), {"type": "stdio"}),),
        ("code",),
        project=".vscode",
    )
)
WINDSURF = ClientHost(
    Client(
        "windsurf", "Windsurf", Folder("~/.codeium/windsurf"), (JsonServer("mcp_config.json"),), ("windsurf",)
    )
)
ZED = ClientHost(
    Client(
        "zed",
        "Zed",
        Folder("$XDG_CONFIG_HOME/zed", "$APPDATA/Zed", "~/.config/zed"),
        (JsonServer("settings.json", ("context_servers", "memoriter")),),
        ("zed", "zeditor"),
        project=".zed",
    )
)
