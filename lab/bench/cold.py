"""CPU time of a command from start to end: alone, and with the resident process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from lab.bench.corpus import Writer
from lab.bench.measure import child

MEMORITER = (sys.executable, "-m", "memoriter")


def commands(root: Path, *, repeats: int) -> dict[str, float]:
    """Return the CPU milliseconds of each command, and of an interpreter that does nothing."""
    workspace = root / "workspace"
    (workspace / "memory").mkdir(parents=True)
    writer = Writer(seed=7)
    for number in range(20):
        (workspace / "memory" / f"{number}.md").write_text(writer.note(5))
    env = {
        **os.environ,
        "HOME": str(root),
        "MEMORITER_EMBEDDING__PROVIDER": "none",
        "MEMORITER_RESIDENT__ENABLED": "false",
    }
    (root / "home").mkdir()
    options = ("--workspace", str(workspace), "--home", str(root / "home"))
    subprocess.run([*MEMORITER, *options, "index"], env=env, check=True, stdout=subprocess.DEVNULL)
    question = writer.question()
    return {
        "python -c pass": child([sys.executable, "-c", "pass"], env=env, repeats=repeats),
        "memoriter --help": child([*MEMORITER, "--help"], env=env, repeats=repeats),
        "memoriter search (20 notes, keywords only)": child(
            [*MEMORITER, *options, "search", question], env=env, repeats=repeats
        ),
        **_warm(root, options, env, question, repeats),
    }


def _warm(
    root: Path, options: tuple[str, ...], env: dict[str, str], question: str, repeats: int
) -> dict[str, float]:
    """Measure the clients of a resident process with the bundled model. Its own time does not count."""
    env = {key: value for key, value in env.items() if not key.startswith("MEMORITER_")}
    event = root / "event.json"
    event.write_text(json.dumps({"prompt": question, "session_id": "bench", "cwd": str(root)}))
    search = [*MEMORITER, *options, "search", question]
    hook = ["sh", "-c", 'exec "$@" < "$0"', str(event), *MEMORITER, *options]
    hook += ["hook", "claude-code", "UserPromptSubmit", "--deadline", "60"]
    try:
        for command in (search, hook):  # the first request loads the model
            subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
        return {
            "memoriter search, warm": child(search, env=env, repeats=repeats),
            "memoriter hook claude-code UserPromptSubmit, warm": child(hook, env=env, repeats=repeats),
        }
    finally:
        subprocess.run(
            [*MEMORITER, *options, "resident", "stop"], env=env, check=True, stdout=subprocess.DEVNULL
        )
