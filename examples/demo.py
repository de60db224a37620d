"""Notes in, the right few lines out: step by step, in English and Chinese, offline.

The demo writes a small workspace to ./demo-workspace and runs the command line on it. It prints every command before
it runs, so that you can continue by hand.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from memoriter.testing import sample_workspace

WORKSPACE = Path("demo-workspace")
HOME = WORKSPACE / ".home"


def say(*lines: str) -> None:
    print(
        "\n" + "\n".join(f"\033[1m{line}\033[0m" if sys.stdout.isatty() else line for line in lines),
        flush=True,
    )


def memoriter(*arguments: str) -> None:
    print(f"\n$ memoriter {shlex.join(arguments)}", flush=True)
    environment = {**os.environ, "MEMORITER_WORKSPACE": str(WORKSPACE), "MEMORITER_HOME": str(HOME)}
    subprocess.run([sys.executable, "-m", "memoriter", *arguments], env=environment, check=True)  # noqa: S603


def main() -> None:
    shutil.rmtree(WORKSPACE, ignore_errors=True)
    sample_workspace(WORKSPACE)
    say(
        "1. A workspace is a folder of Markdown notes. This one belongs to Mira, who builds an app in Lisbon:"
    )
    for file in sorted(WORKSPACE.rglob("*.md")):
        print(f"   {file.relative_to(WORKSPACE)}")

    say("2. Index it. The embedding model comes with the package: no key, no download.")
    memoriter("index")

    say(
        "3. Search by meaning. The note says “vegetarian, allergic to hazelnuts”; the question has none of these words."
    )
    memoriter("search", "what must I not cook for Mira?", "-n", "1", "--explain")

    say("4. 用中文问，意思对就行：笔记里写的是“亏损要早认”，问题里没有这几个字。")
    memoriter("search", "赔钱了应该怎么办？", "-n", "1", "--explain")

    say("5. Search across languages: an English question finds a Chinese note.")
    memoriter("search", "why was the site offline at night?", "-n", "1")

    say("6. Keywords find identifiers, and Chinese words inside mixed text.")
    memoriter("search", "ERR_IMAGE_TOO_LARGE", "-n", "1")
    memoriter("search", "备份", "-n", "1", "--explain")

    say("7. Every hit cites its lines. Read only those.")
    memoriter("get", "memory/projects/backup.md", "--from", "8", "--lines", "3")

    say("8. Edit a note in any editor. The next search finds the change.")
    note = WORKSPACE / "memory/2026-02-15.md"
    note.write_text("# 2026-02-15\n\n- The spare key of the studio is with Dona Graça on the second floor.\n")
    print(f"   (wrote {note})")
    memoriter("search", "who has the spare key?", "-n", "1")

    say(
        "Continue on your own:",
        f"  export MEMORITER_WORKSPACE={WORKSPACE.resolve()} MEMORITER_HOME={HOME.resolve()}",
        "  .venv/bin/memoriter search 'what is Tomás afraid of?'",
    )


if __name__ == "__main__":
    main()
