"""The built plugin for OpenClaw is what the compiler makes of its source."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILER = ROOT / ".tools/typescript/node_modules/typescript/bin/tsc"
PLUGIN = ROOT / "plugins" / "openclaw"

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not os.environ.get("CI") and not COMPILER.exists(),
        reason="no compiler under .tools; run `make integration`",
    ),
]


def test_the_built_files_are_current(tmp_path: Path) -> None:
    command = ["node", str(COMPILER), "-p", str(PLUGIN), "--outDir", str(tmp_path)]
    subprocess.run(command, check=True, timeout=110)
    fresh = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {path.name: path.read_text() for path in (PLUGIN / "dist").iterdir()} == fresh
