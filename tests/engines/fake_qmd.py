# ruff: noqa: T201
"""A fake qmd program: the same commands and output over a toy index, and faults on demand.

A file `fault` next to the script names the fault. `calls` records the arguments and environment of each call.
"""

import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
CONFIG = Path(os.environ.get("QMD_CONFIG_DIR", HERE)) / "index.yml"
INDEX = Path(os.environ.get("XDG_CACHE_HOME", HERE)) / "qmd" / "index.sqlite"


def main() -> None:
    arguments = sys.argv[1:]
    with (HERE / "calls").open("a") as calls:
        calls.write(json.dumps([arguments, dict(os.environ)]) + "\n")
    fault = (HERE / "fault").read_text() if (HERE / "fault").exists() else ""
    command, _, only = fault.partition(" on ")
    if command and (not only or arguments[0] == only):
        broken(command)
    if arguments[0] != "--version":
        add_models()
    {"--version": version, "update": update, "embed": embed}.get(arguments[0], search)(arguments)


def broken(fault: str) -> None:
    if fault == "hang":
        import subprocess  # here, because it takes a quarter of the time of a call

        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (HERE / "pids").write_text(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    elif fault == "deaf":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    elif fault == "garbage":
        print("Segmentation fault (core dumped) {[")
    elif fault == "bytes":
        sys.stdout.buffer.write(b"[\xff\xfe]")
    elif fault == "object":
        print('{"results": []}')
    elif fault == "rows":
        print('[{"file": "qmd://memory/a.md", "score": "high", "snippet": "x"}]')
    elif fault == "flood":
        for _ in range(100):
            sys.stdout.write("x" * 1024 * 1024)
    elif fault == "noise":
        print("[warn] CUDA driver is too old\n[1/2] loading")
        return
    elif fault.startswith("exit"):
        print("Error: SQLITE_CONSTRAINT_PRIMARYKEY\n    at Database.exec (store.js:1:2)", file=sys.stderr)
        sys.exit(int(fault[4:]))
    sys.exit(0)


def version(_: list[str]) -> None:
    print("qmd 2.8.3 (stand-in)")


def config() -> dict[str, dict[str, dict[str, str]]]:
    return json.loads(CONFIG.read_text())


def add_models() -> None:
    """Add missing models to the configuration in place, as the real program does."""
    models = {"embed": "hf:embed", "generate": "hf:generate", "rerank": "hf:rerank"}
    known = config()
    if known.get("models", {}).keys() != models.keys():
        CONFIG.write_text(json.dumps({**known, "models": models | known.get("models", {})}))
        with (HERE / "rewritten").open("a") as rewritten:
            rewritten.write("x")


def update(_: list[str]) -> None:
    old = json.loads(INDEX.read_text()) if INDEX.exists() else {}
    new = {
        f"qmd://{name}/{file.relative_to(one['path'])}": file.read_text(errors="replace")
        for name, one in config()["collections"].items()
        for file in sorted(Path(one["path"]).glob("*.md" if name == "memory-root" else "**/*"))
        if file.is_file() and not file.is_symlink() and file.suffix == ".md"
    }
    INDEX.write_text(json.dumps(new))
    added, removed = len(new.keys() - old.keys()), len(old.keys() - new.keys())
    changed = sum(new[name] != old[name] for name in new.keys() & old.keys())
    print(
        f"Indexed: {added} new, {changed} updated, {len(new) - added - changed} unchanged, {removed} removed"
    )


def embed(_: list[str]) -> None:
    print("embedded")


def search(arguments: list[str]) -> None:
    split = arguments.index("--")
    flags, (query,) = arguments[1:split], arguments[split + 1 :]
    names = [flags[at + 1] for at, flag in enumerate(flags) if flag == "-c"]
    for name in names:
        if name not in config()["collections"]:
            sys.exit(f"Collection not found: {name}")
    limit = int(flags[flags.index("-n") + 1])
    index = json.loads(INDEX.read_text()) if INDEX.exists() else {}
    texts = {file: text for file, text in index.items() if file.split("/")[2] in names}
    if arguments[0] == "query":
        words = [line.split(": ", 1)[1].lower() for line in query.split("\n")]
        found = [file for file, text in texts.items() if any(word in text.lower() for word in words)]
    else:
        words = query.lower().split()
        found = [file for file, text in texts.items() if all(word in text.lower() for word in words)]
    print(json.dumps([row(file, texts[file], words, at) for at, file in enumerate(found[:limit], 1)]))


def row(file: str, text: str, words: list[str], rank: int) -> dict[str, object]:
    lines = text.split("\n")
    best = next((at for at, line in enumerate(lines) if any(word in line.lower() for word in words)), 0)
    start = max(0, best - 1)
    shown = lines[start : start + 4]
    header = f"@@ -{start + 1},{len(shown)} @@ ({start} before, {len(lines) - start - len(shown)} after)"
    return {"docid": "#1", "score": round(1 / rank, 2), "file": file, "line": best + 1, "title": "t",
            "snippet": "\n".join([header, *shown])}  # fmt: skip


main()
