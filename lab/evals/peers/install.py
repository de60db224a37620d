"""Where the peers are, and how they are installed: `python -m lab.evals.peers.install [PEER …]`.

Python peers get a virtual environment each; Node peers a folder with their own Node. Everything is below `.tools/`, or
below the folder that the environment variable PEERS_FOLDER names.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
#: The processor, as npm names it.
CPU = "arm64" if platform.machine() in {"aarch64", "arm64"} else "x64"
TOOLS = Path(os.environ.get("PEERS_FOLDER") or ROOT / ".tools")


@dataclass(frozen=True, slots=True)
class Peer:
    """One compared memory: its packages, its driver, and what the table has to say about it."""

    name: str
    version: str
    #: Packages of pip or npm. Empty: it runs in this environment.
    packages: tuple[str, ...] = ()
    #: A module for Python, or a file for Node.
    driver: str = ""
    #: A pattern for the file whose presence means that it is installed.
    marker: str = ""
    uses_server: bool = True
    #: Which of its abilities could not be used here, and why.
    limits: str = ""
    npm_options: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return TOOLS / self.name

    @property
    def is_installed(self) -> bool:
        return not self.packages or any(self.folder.glob(self.marker))

    @property
    def has_environment(self) -> bool:
        """Whether it has a virtual environment of its own."""
        return any("==" in package for package in self.packages)

    def command(self) -> list[str]:
        """Return the start of the command line."""
        if self.driver.endswith(".mjs"):
            return [str(self.node), str(Path(__file__).with_name("drivers") / self.driver)]
        python = self.folder / "bin" / "python" if self.has_environment else Path(sys.executable)
        return [str(python), "-m", f"lab.evals.peers.drivers.{self.driver}"]

    def environment(self) -> dict[str, str]:
        """Return the environment of the driver."""
        paths = [str(ROOT), *([] if self.has_environment else [str(ROOT / "src")])]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        if self.name == "qmd":
            env |= {"NODE": str(self.node), "QMD": str(self.folder / self.marker)}
        if self.name == "openclaw":
            env["OPENCLAW"] = str(self.folder / "node_modules" / "openclaw")
        return env

    @property
    def node(self) -> Path:
        return self.folder / "node_modules" / "node" / "bin" / "node"


PEERS = (
    Peer("memoriter", "this checkout", driver="memoriter_driver", uses_server=False),
    Peer(
        "memsearch",
        "0.4.23",
        ("memsearch==0.4.23",),
        "memsearch_driver",
        "lib/*/site-packages/memsearch",
        limits="Its optional reranker is off by default and was not used.",
    ),
    Peer(
        "mem0",
        "2.2.1",
        ("mem0ai==2.2.1",),
        "mem0_driver",
        "lib/*/site-packages/mem0",
        limits="Raw memories (`infer=False`): extraction needs a language model. Keyword and entity scores need spaCy "
        "and fastembed models that it downloads, so only vectors count.",
    ),
    Peer(
        "qmd",
        "2.8.3",
        (
            "@tobilu/qmd@2.8.3",
            f"node@npm:node-linux-{CPU}@22",
            f"@node-llama-cpp/linux-{CPU}@3.20.0",
            f"sqlite-vec-linux-{CPU}@0.1.9",
        ),
        "qmd_driver",
        "node_modules/@tobilu/qmd/dist/cli/qmd.js",
        uses_server=False,
        limits="Full-text search only, one search for each word of a question, joined by qmd. Its embedder, query "
        "expansion and reranker are downloaded on first use, and it takes no other embedder over HTTP.",
        npm_options=("--omit=optional",),
    ),
    Peer(
        "openclaw",
        "2026.9.6",
        ("openclaw@2026.9.6", f"node@npm:node-linux-{CPU}@24"),
        "openclaw_driver.mjs",
        "node_modules/openclaw/openclaw.mjs",
        limits="Builtin memory through its plugin SDK, without its threshold; default weights, age decay and MMR.",
    ),
)


def install(peer: Peer) -> None:
    """Install a peer unless it is there."""
    if peer.is_installed:
        return
    if peer.has_environment:
        subprocess.run([sys.executable, "-m", "venv", str(peer.folder)], check=True)
        pip = [str(peer.folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", *peer.packages], check=True)
        return
    npm = ["npm", "install", "--prefix", str(peer.folder), "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run([*npm, "--loglevel=error", *peer.npm_options, *peer.packages], check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Install the peers that are named, or all."""
    names = sys.argv[1:] if arguments is None else arguments
    for peer in PEERS:
        if not names or peer.name in names:
            print(f"{peer.name} {peer.version}", flush=True)
            install(peer)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
