"""How an import from another program looks: what was taken in, what was there, what stands in the way."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from memoriter.cli import render

if TYPE_CHECKING:
    from memoriter.records import ImportReport

SHOWN = 20  #: files that are named one by one
WORDS = {"new": "new", "grown": "grown", "same": "there already", "other": "left out"}


def report(done: ImportReport, as_json: bool) -> None:
    """Print what became of everything."""
    if as_json:
        render.to_json(_json(done))
        return
    lines = [
        f"{done.program} in {done.home}, agent {done.agent}"
        + (" (nothing is changed)" if done.dry_run else "")
    ]
    for kind, title in (("note", "notes"), ("session", "sessions")):
        steps = [step for step in done.steps if step.kind == kind]
        counts = {word: sum(step.action == name for step in steps) for name, word in WORDS.items()}
        said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        lines.append(f"{title}: {said or 'none'}")
    taken = done.entries
    lines.append(f"entries: {taken.added} new, {taken.already} there already")
    if done.dry_run:
        fresh = [step for step in done.steps if step.action in ("new", "grown")]
        lines += [f"  {step.action} {step.source} -> {step.target}" for step in fresh[:SHOWN]]
        lines += [f"  and {len(fresh) - SHOWN} more"] if len(fresh) > SHOWN else []
    lines += [f"left out: {step.source}: {step.note}" for step in done.steps if step.action == "other"]
    lines += done.remarks
    sys.stdout.write(render.plain("\n".join(lines)) + "\n")


def _json(done: ImportReport) -> dict[str, object]:
    return {
        "program": done.program,
        "home": str(done.home),
        "agent": done.agent,
        "dryRun": done.dry_run,
        "files": [
            {
                "kind": step.kind,
                "source": str(step.source),
                "target": str(step.target),
                "action": step.action,
                "note": step.note or None,
            }
            for step in done.steps
        ],
        "entries": {"added": done.entries.added, "already": done.entries.already},
        "remarks": list(done.remarks),
    }
