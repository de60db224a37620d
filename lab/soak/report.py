"""The table of lab/reliability.md, from the results of the rounds."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.page import replaced
from lab.soak.part import Part, Result, Results, totals

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "lab/reliability.md"
FIGURES = Path(__file__).with_name("results.json")


def write(results: Results, parts: Sequence[Part]) -> None:
    """Write the committed figures and the table of the page."""
    figures = renewed(json.loads(FIGURES.read_text("utf-8")), results, parts)
    FIGURES.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")


def renewed(
    figures: Sequence[Mapping[str, Any]], results: Results, parts: Sequence[Part]
) -> list[Mapping[str, Any]]:
    """Return the figures of all parts. Those that were not run keep their last ones."""
    known = {one["part"]: one for one in figures}
    return [
        figures_of(results, part) if results.of(part) else known.get(part.name) or figures_of(results, part)
        for part in parts
    ]


def page(text: str) -> str:
    """Return the text of the page with the table of the committed figures."""
    figures = json.loads(FIGURES.read_text("utf-8"))
    rates = {part["part"]: part["rates"] for part in figures}
    text = replaced(text, "soak", table(figures))
    text = replaced(text, "poisoning", rate_table("Attack", "Succeeded", "Cases", rates["poisoning"]))
    return replaced(text, "mutation", rate_table("Module", "Killed", "Mutants", rates["mutation"]))


def figures_of(results: Results, part: Part) -> dict[str, Any]:
    """Return the figures of one part: sums over its rounds, and what its control found."""
    rounds, controls = results.of(part), results.of(part, control=True)
    return {
        "part": part.name,
        "title": part.title,
        "targets": dict(part.targets),
        "counts": totals(rounds),
        "rounds": len(rounds),
        "failures": sum(result.failures for result in rounds),
        "control": part.control_title,
        "control_failures": sum(result.failures for result in controls),
        "first": _day(min((result.at for result in rounds), default=0)),
        "last": _day(max((result.at for result in rounds), default=0)),
        "commits": sorted({result.commit for result in rounds}),
        "machines": sorted({result.machine for result in rounds}),
        "rates": _rates(rounds),
    }


def _rates(rounds: Sequence[Result]) -> dict[str, list[int]]:
    """Return the last rate of each kind that the notes of the rounds state as `KIND: NUMBER of NUMBER`."""
    notes = [note for result in rounds for note in result.notes]
    found = (re.fullmatch(r"(.+): (\d+) of (\d+)", note) for note in notes)
    return {rate[1]: [int(rate[2]), int(rate[3])] for rate in found if rate}


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at)) if at else ""


def table(figures: Sequence[Mapping[str, Any]]) -> str:
    """Return one row for each part."""
    rows = [
        "| Part | Run | Time | Failures | Target | Control | At |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    rows += [_row(part) for part in figures]
    return "\n".join([*rows, "", _footer(figures)])


def rate_table(kind: str, counted: str, total: str, rates: Mapping[str, Sequence[int]]) -> str:
    """Return one row for each kind: a number, of how many, and the share."""
    rows = [f"| {kind} | {counted} | {total} | Share |", "| --- | --- | --- | --- |"]
    rows += [
        f"| {name} | {some:,} | {every:,} | {some / every:.1%} |" for name, (some, every) in rates.items()
    ]
    return "\n".join(rows)


def _row(part: Mapping[str, Any]) -> str:
    names = sorted(part["counts"].keys() - {"seconds"}, key=lambda name: (name not in part["targets"], name))
    main = ", ".join(f"{part['counts'][name]:,} {name}" for name in names) or "not run"
    reached = all(part["counts"].get(name, 0) >= target for name, target in part["targets"].items())
    wanted = ", ".join(_target(name, target) for name, target in part["targets"].items())
    verdict = f"{wanted}: {'reached' if reached else 'not reached'}" if wanted else "none"
    control = f"{part['control']}: {part['control_failures']:,} failures" if part["rounds"] else "not run"
    time_ = _duration(part["counts"].get("seconds", 0))
    at = f"{part['first'][:10]}, {', '.join(part['commits'])}" if part["rounds"] else "–"
    return f"| {part['title']} | {main} | {time_} | {part['failures']:,} | {verdict} | {control} | {at} |"


def _target(name: str, target: int) -> str:
    return _duration(target) if name == "seconds" else f"{target:,} {name}"


def _duration(seconds: int) -> str:
    return (
        f"{seconds // 3600} h {seconds % 3600 // 60} min"
        if seconds >= 3600
        else f"{seconds // 60} min {seconds % 60} s"
    )


def _footer(figures: Sequence[Mapping[str, Any]]) -> str:
    ran = [part for part in figures if part["rounds"]]
    if not ran:
        return "Nothing has been run yet."
    machines = "; ".join(sorted({machine for part in ran for machine in part["machines"]}))
    first, last = min(part["first"] for part in ran), max(part["last"] for part in ran)
    return f"Run from {first} to {last}, on: {machines}. The last column names the first day and the commits of a row."
