"""`python -m lab.soak`: run parts of the soak, or write the page about them.

python -m lab.soak                     # every part until its targets are reached
python -m lab.soak kills power         # these parts
python -m lab.soak --short             # one small round of each part, with its control
python -m lab.soak --hours 2 --resume  # add to earlier results, for at most two hours
python -m lab.soak report              # write lab/soak/results.json and the table in lab/reliability.md
"""

from __future__ import annotations

import argparse
import importlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from lab.soak import report
from lab.soak.forking import adopt_orphans, kill_orphans
from lab.soak.part import Part, Result, Results, Round, Task, commit, is_complete

ROOT = Path(__file__).parents[2]
STATE = ROOT / "build/soak"
PARTS = (
    "kills",
    "power",
    "faults",
    "processes",
    "derived",
    "truth",
    "erasure",
    "poisoning",
    "requests",
    "failover",
    "fuzzing",
    "mutation",
)


def load(name: str) -> Part:
    """Return a part by its name."""
    part: Part = importlib.import_module(f"lab.soak.{name}").PART
    return part


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that the arguments name. Return 1 if anything went wrong."""
    options = parser().parse_args(arguments)
    results = Results(options.state)
    if options.parts == ["report"]:
        report.write(results, [load(name) for name in PARTS])
        return 0
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser().error(f"unknown part {unknown[0]!r}. The parts are: {', '.join(PARTS)}.")
    if not options.resume and not options.short:
        results.set_aside()
    commit()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(1)
    )  # so that a round removes what it mounted and started
    until = time.monotonic() + options.hours * 3600
    ended_well = [run(load(name), results, options, until) for name in options.parts or PARTS]
    return 0 if all(ended_well) else 1


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    options = argparse.ArgumentParser(
        prog="python -m lab.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("parts", nargs="*", help="Parts to run (default: all), or `report`.")
    options.add_argument("--short", action="store_true", help="Run one small round of each part.")
    options.add_argument("--hours", type=float, default=24.0, help="Stop after this time (default: 24).")
    options.add_argument("--resume", action="store_true", help="Add to the results of earlier runs.")
    options.add_argument("--beyond", action="store_true", help="Continue when the targets are reached.")
    options.add_argument("--seed", type=int, help="Run one round with this seed, to reproduce a failure.")
    options.add_argument("--number", type=int, default=0, help="The number of that round (default: 0).")
    options.add_argument(
        "--state",
        type=lambda path: Path(path).absolute(),  # hosts name transcripts by their whole paths
        default=STATE,
        help="Folder of the results (default: build/soak).",
    )
    return options


def run(part: Part, results: Results, options: argparse.Namespace, until: float) -> bool:
    """Run the control and then rounds of a part until its targets or the time are reached."""
    if reason := part.unavailable():
        _log(f"{part.name}: skipped. {reason}")
        return True
    if options.seed is not None or options.short:
        seed = options.seed if options.seed is not None else 7
        ended_well = options.seed is not None or bool(once(part, seed, options, control=True).failures)
        done = once(part, seed, options, number=options.number)
        return ended_well and not done.failures
    if not any(result.failures for result in results.of(part, control=True)):
        results.add(_timed(part, random.randrange(1 << 31), options, control=True))
    while time.monotonic() < until and (options.beyond or not is_complete(part, results.of(part))):
        results.add(_timed(part, random.randrange(1 << 31), options, number=len(results.of(part))))
    rounds = results.of(part)
    controlled = any(result.failures for result in results.of(part, control=True))
    if not controlled:
        _log(f"{part.name}: the control did not fail, so the rounds prove nothing")
    return controlled and not any(result.failures for result in rounds)


def once(
    part: Part, seed: int, options: argparse.Namespace, *, number: int = 0, control: bool = False
) -> Round:
    """Run one round in a folder of its own."""
    options.state.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{part.name}-", dir=options.state))
    task = Task(folder, random.Random(seed), number, short=options.short)
    adopt_orphans()
    try:
        done = (part.control if control else part.run)(task)
    except Exception:  # noqa: BLE001  a harness that breaks off is a failure, too
        done = Round({}, [traceback.format_exc()[-3000:]] if not control else [])
        if control:
            traceback.print_exc()
    finally:
        kill_orphans()
        shutil.rmtree(folder, ignore_errors=True)
    kind = "control" if control else "round"
    _log(f"{part.name}: {kind} {seed}: {done.counts}, {len(done.failures)} failures")
    for failure in done.failures[:3] if control else done.failures[:20]:
        _log(f"    {failure[:2000]}")
    for note in done.notes:
        _log(f"    {note}")
    return done


def _timed(
    part: Part, seed: int, options: argparse.Namespace, *, number: int = 0, control: bool = False
) -> Result:
    start = time.monotonic()
    done = once(part, seed, options, number=number, control=control)
    return Result.of(part, seed, done, time.monotonic() - start, control=control)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
