"""Run the suites and print the table: `python -m lab.conformance [SUITE …] [--sources DIR] [--out FILE]`.

The exit code is 1 if a test fails that no line of a suite explains.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lab.conformance.suites import SUITES, Result

HEAD = "| suite | version | passed | failed | why |\n| --- | --- | --- | --- | --- |"


def table(results: list[Result]) -> str:
    """Return the results as a table in Markdown."""
    return "\n".join([HEAD, *(result.row() for result in results)])


def main() -> int:
    """Run the named suites, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m lab.conformance", description=__doc__)
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=f"one of {', '.join(SUITES)} (default: all)"
    )
    parser.add_argument(
        "--sources", type=Path, help="folder with checkouts of suites that no package contains"
    )
    parser.add_argument("--out", type=Path, help="write the table between the marks of this file, too")
    options = parser.parse_args()
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"unknown suite {unknown[0]!r}. Available: {', '.join(SUITES)}")
    results = []
    for name in options.suites or SUITES:
        print(f"{name} …", file=sys.stderr, flush=True)
        results.append(SUITES[name].run(options.sources))
        for failure in results[-1].unexplained:
            print(f"  not explained: {failure}", file=sys.stderr)
    print(table(results))
    if options.out:
        before, _, rest = options.out.read_text().partition("<!-- conformance -->\n")
        after = rest.partition("<!-- end of conformance -->")[2]
        options.out.write_text(
            f"{before}<!-- conformance -->\n{table(results)}\n<!-- end of conformance -->{after}"
        )
    return 1 if any(result.unexplained for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
