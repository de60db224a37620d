"""Check the files that registries and hosts read, and print the commands that upload a release.

    python -m lab.release          # checks the files of the repository
    python -m lab.release dist     # and the wheel in a folder

Nothing is uploaded. The name in `server.json` belongs to the account of the repository: change both it and
the line in the README if the project is hosted elsewhere.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoriter import __version__

ROOT = Path(__file__).parents[1]
#: Characters that the MCP registry accepts for a description.
MAX_DESCRIPTION = 100
_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
_MARK = re.compile(r"<!-- mcp-name: (\S+) -->")

COMMANDS = """\
# Nothing is uploaded yet. `{name}` is a placeholder until the account that uploads is known: it must own that
# name. Change server.json and the line in the README together, before the first upload.
python -m twine upload dist/*.whl dist/*.tar.gz                       # PyPI, first: the registry reads its README
mcp-publisher login github && mcp-publisher publish                   # the MCP registry, from server.json
npx @anthropic-ai/mcpb pack plugins/claude-desktop dist/memoriter.mcpb  # Claude Desktop, attached to the release
npm publish clients/typescript                                        # npm, the client for TypeScript
git tag v{version} && git push origin v{version}                      # marketplaces of Claude Code, Codex and Cursor
"""


def problems(root: Path, version: str) -> Iterator[str]:
    """Yield what is wrong with the files of a repository."""
    server = _json(root / "server.json")
    package = server["packages"][0]
    if len(server["description"]) > MAX_DESCRIPTION:
        yield f"server.json: the description has more than {MAX_DESCRIPTION} characters"
    if not _NAME.fullmatch(server["name"]):
        yield f"server.json: {server['name']!r} is not a name of the form io.github.OWNER/NAME"
    if _MARK.findall((root / "README.md").read_text("utf-8")) != [server["name"]]:
        yield f"README.md: there is not exactly one line <!-- mcp-name: {server['name']} -->"
    if (package["registryType"], package["identifier"]) != ("pypi", "memoriter"):
        yield "server.json: the package is not memoriter on PyPI"
    manifest = root / "plugins/claude-desktop/manifest.json"
    bundle = tomllib.loads((manifest.parent / "pyproject.toml").read_text("utf-8"))["project"]
    versions = {
        "server.json": server["version"],
        "server.json, package": package["version"],
        "clients/typescript/package.json": _json(root / "clients/typescript/package.json")["version"],
        "plugins/claude-desktop/manifest.json": _json(manifest)["version"],
        "plugins/claude-desktop/pyproject.toml": bundle["version"],
        "plugins/claude-desktop/pyproject.toml, memoriter": bundle["dependencies"][0].partition("==")[2],
    }
    for file in sorted((root / "plugins").glob("claude-code/.*-plugin/plugin.json")):
        versions[str(file.relative_to(root))] = _json(file)["version"]
    yield from (
        f"{name}: version {found}, not {version}" for name, found in versions.items() if found != version
    )
    if not (manifest.parent / _json(manifest)["server"]["entry_point"]).is_file():
        yield f"{manifest}: the entry point is missing"
    for plugin in _json(root / ".claude-plugin/marketplace.json")["plugins"]:
        if not (root / plugin["source"] / ".claude-plugin/plugin.json").is_file():
            yield f".claude-plugin/marketplace.json: {plugin['source']} is not a plugin"


def wheel_problems(folder: Path, name: str) -> Iterator[str]:
    """Yield what is wrong with the wheel in a folder."""
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        yield f"{folder}: {len(wheels)} wheels instead of one"
        return
    with zipfile.ZipFile(wheels[0]) as wheel:
        files = wheel.namelist()
        metadata = next(file for file in files if file.endswith(".dist-info/METADATA"))
        if f"mcp-name: {name}" not in wheel.read(metadata).decode():
            yield f"{wheels[0].name}: the README in it does not name {name}"
        for needed in ("clients/opencode_plugin.js",):
            if not any(file.endswith(needed) for file in files):
                yield f"{wheels[0].name}: {needed} is missing"


def main() -> int:
    """Run the checks. Returns 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("dist", nargs="?", type=Path, help="the folder with the wheel")
    asked = parser.parse_args()
    found = [*problems(ROOT, __version__)]
    if asked.dist:
        found += wheel_problems(asked.dist, _json(ROOT / "server.json")["name"])
    sys.stderr.write("".join(f"{line}\n" for line in found))
    if not found:
        sys.stdout.write("The release files are in order. To publish (nothing has been uploaded):\n\n")
        sys.stdout.write(COMMANDS.format(version=__version__, name=_json(ROOT / "server.json")["name"]))
    return 1 if found else 0


def _json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


if __name__ == "__main__":
    raise SystemExit(main())
