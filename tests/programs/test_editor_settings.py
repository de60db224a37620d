"""Settings with comments and trailing commas, read by the parser of VS Code (`jsonc-parser`).

`make integration` installs it under `.tools`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memoriter.config import load
from memoriter.hosts import InstallRequest, find_host

PARSER = Path(__file__).parents[2] / ".tools/jsonc/node_modules/jsonc-parser"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not os.environ.get("CI") and not PARSER.exists(),
        reason="no jsonc-parser under .tools; run `make integration`",
    ),
]

#: Prints the value of a file as VS Code reads it, the errors, and the comments.
READ = """
const { parse, createScanner, SyntaxKind } = require(process.argv[1]);
const text = require("fs").readFileSync(process.argv[2], "utf8").replace(/^\\uFEFF/, "");
const errors = [], comments = [], scanner = createScanner(text, false);
const value = parse(text, errors, { allowTrailingComma: true });
const isComment = (kind) => kind === SyntaxKind.LineCommentTrivia || kind === SyntaxKind.BlockCommentTrivia;
for (let kind = scanner.scan(); kind !== SyntaxKind.EOF; kind = scanner.scan())
  if (isComment(kind)) comments.push(text.substr(scanner.getTokenOffset(), scanner.getTokenLength()));
console.log(JSON.stringify({ value, errors: errors.map((one) => one.error), comments }));
"""

#: What owners have in these files, with the key of the servers as `SERVERS`.
TEXTS = {
    "with comments everywhere": """// Servers of this machine
{
    /* keep
       this */
    "inputs": [], // none yet
    "SERVERS": {
        // builds
        "build": { "command": "b", "args": ["x", ], }, // mine
        /* "old": {"command": "o"}, */
    }, // end of servers
    // end
}
""",
    "with tabs and CRLF": '\ufeff{\r\n\t"SERVERS": {\r\n\t\t"build": {"command": "b"} // mine\r\n\t}\r\n}\r\n',
    "with only a comment": "{\n  // nothing here\n}\n",
    "with an empty object that is explained": '{"SERVERS": { /* none */ },}',
    "with a name twice": '{"SERVERS": {"old": {"command": "o"}}, "SERVERS": {"build": {"command": "b"}}}',
    "with a wrong escape and a string like a comment": r'{"SERVERS": {"build": {"command": "C:\b // y"}}}',
}
HOSTS = {
    "cursor": ("mcp.json", "mcpServers"),
    "vscode": ("mcp.json", "servers"),
    "zed": ("settings.json", "context_servers"),
}


def read(file: Path) -> dict[str, Any]:
    done = subprocess.run(
        ["node", "-e", READ, str(PARSER), str(file)], capture_output=True, text=True, timeout=300, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", HOSTS)
def test_an_editor_reads_its_settings_and_the_comments_stay(tmp_path: Path, name: str, text: str) -> None:
    folder, (file_name, servers) = tmp_path / "host", HOSTS[name]
    folder.mkdir()
    file = folder / file_name
    file.write_bytes(text.replace("SERVERS", servers).encode())
    before, found = file.read_bytes(), read(file)
    settings = load(arguments={"home": tmp_path / "memory", "workspace": tmp_path / "notes"}, environ={})
    request = InstallRequest(settings, {"workspace": "/my notes"}, home=folder)

    find_host(name).install(request)
    installed = read(file)
    ours = installed["value"][servers].pop("memoriter")
    assert ours["args"][-3:] == ["--workspace", "/my notes", "mcp"]
    assert installed["errors"] == found["errors"]
    assert installed["comments"] == found["comments"]
    assert installed["value"] == {servers: {}, **found["value"]}

    # The owner adds a server after ours, with a comment. What is left is no longer the file as it was.
    added = b'// found later\n"later": {"command": "l"}'
    changed = file.read_bytes().replace(b'"memoriter": {', added + b', // ours\n"memoriter": {', 1)
    file.write_bytes(changed)
    find_host(name).uninstall(request)
    left = read(file)
    assert left["errors"] == found["errors"]
    assert sorted(left["comments"]) == sorted([*found["comments"], "// found later", "// ours"])
    assert left["value"][servers].pop("later") == {"command": "l"}
    assert left["value"] == {servers: {}, **found["value"]}

    file.write_bytes(before)
    find_host(name).install(request)
    find_host(name).uninstall(request)
    assert file.read_bytes() == before
