"""The client for TypeScript: its tests run in Node against a gateway, and its types are those of the operations."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gateways import Running

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
NODE = shutil.which("node")
TSC = ROOT / ".tools/typescript/node_modules/typescript/bin/tsc"

USE = """
import { Memoriter, MemoriterError, type Result } from "memoriter"
const memory = new Memoriter({ token: "x", agent: "main" })
const found: Result<"memory_search"> = await memory.search("tea", { maxResults: 3, source: "memory" })
const first: string | undefined = found.results[0]?.snippet
// @ts-expect-error the number of results is a number
await memory.search("tea", { maxResults: "3" })
// @ts-expect-error there is no such operation
await memory.call("memory_serach", { query: "tea" })
// @ts-expect-error a search needs a query
await memory.call("memory_search", {})
export { first, MemoriterError }
"""


def test_the_types_are_those_of_the_openapi_document() -> None:
    done = subprocess.run(
        [sys.executable, CLIENT / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_the_client_calls_a_gateway(gateway: Running) -> None:
    token = gateway.gateway.tokens.create("admin")[1]
    environment = {**os.environ, "MEMORITER_URL": gateway.address, "MEMORITER_TOKEN": token}
    done = subprocess.run(
        [str(NODE), "--test", "test.js"],
        cwd=CLIENT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 4" in done.stdout


@pytest.mark.integration
def test_the_compiler_accepts_right_calls_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "memoriter").symlink_to(CLIENT)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "use.ts").write_text(USE)
    options = ("--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom")
    done = subprocess.run(
        [str(NODE), str(TSC), *options, "use.ts"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
