"""Write lab/retrieval.md and its plots from measured figures: `python -m lab.evals.retrieval`.

Figures come from `lab/evals/results/`: `retrieval.json` (`python -m lab.evals --json`) and `peers.json` (`python -m
lab.evals.peers --json`). The words of the page are written by hand; only what is between its marks is replaced.
`--check` changes nothing and fails if a page or a plot is not what the figures say.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from lab.evals.figures import Figures
from lab.evals.plots import Bar, Point, bars, curve, scatter
from lab.evals.report import percent, signed, table
from lab.evals.variants import DEFAULT
from lab.page import replaced

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results"
PAGE = "lab/retrieval.md"
PLOTS = "lab/images"

NAMES = {
    "zh": "Chinese",
    "en": "English",
    "zh → en": "Chinese question, English note",
    "en → zh": "English question, Chinese note",
}


def blocks(found: Figures) -> dict[str, str]:
    """The measured blocks of the page."""
    return {
        "run": run(found),
        "sets": sets(found),
        "parts": parts(found),
        "folds": folds(found),
        "languages": languages(found),
        "calibration": calibration(found),
        "silence": silence(found),
    }


def run(found: Figures) -> str:
    """What was asked, and how long it took."""
    size = found["run"]
    limit = f"at most {size['limit']} questions" if size["limit"] else "all questions"
    return (
        f"This run asked {limit} of each conversation or person, and at most {size['sample']} for ablations and "
        f"cross-validation. It took {size['wall_s'] / 60:.0f} minutes and {size['cpu_s'] / 60:.0f} minutes of CPU time "
        f"with {size['jobs']} processes."
    )


def sets(found: Figures) -> str:
    """One row per set: the default search."""
    rows = []
    for one in found["sets"]:
        mode = one["modes"][DEFAULT]
        values = mode["measures"]
        if values:
            rows.append(
                [
                    one["set"],
                    str(mode["queries"]),
                    *(percent(values[name]) for name in ("nDCG@10", "MRR", "recall@10")),
                    f"{mode['cpu_ms']['p50']:.0f} / {mode['cpu_ms']['p95']:.0f}",
                ]
            )
    return table(["set", "questions", "nDCG@10", "MRR", "recall@10", "CPU ms p50 / p95"], rows)


def parts(found: Figures) -> str:
    """What each part contributes, by set."""
    names = _parts(found)
    rows = [
        [one["set"], *(signed(one["parts"][name]["contributes"]["nDCG@10"]) for name in names)]
        for one in found["sets"]
        if one["parts"]
    ]
    means = [f"{100 * value:+.1f}" for value in (_contribution(found, name) for name in names)]
    return table(["set", *names], [*rows, ["**mean of the sets**", *means]])


def folds(found: Figures) -> str:
    """Default weights beside weights that were chosen without the measured group."""
    chosen = found["folds"]
    rows = [
        [
            name,
            f"{one['groups']} / {one['queries']}",
            percent(one["default"]),
            percent(one["left out"]),
            signed(one["difference"]),
            f"{100 * one['hindsight']:.1f}",
        ]
        for name, one in chosen["sets"].items()
    ]
    head = [
        "set",
        "groups / questions",
        "default",
        "chosen on other groups",
        "difference",
        "best in hindsight",
    ]
    picks = ", ".join(f"{name} ({count} ×)" for name, count in chosen["chosen"].items())
    return f"{table(head, rows)}\n\nChosen: {picks}."


def languages(found: Figures) -> str:
    """The default search, by language of question and note."""
    rows = []
    for one in found["sets"]:
        for name, value in one["modes"][DEFAULT]["languages"].items():
            rows.append(
                [
                    NAMES.get(name, name),
                    one["set"],
                    str(value["queries"]),
                    percent(value["nDCG@10"]),
                    percent(value["MRR"]),
                ]
            )
    return table(["language", "set", "questions", "nDCG@10", "MRR"], sorted(rows))


def calibration(found: Figures) -> str:
    """The bins of the calibration curves."""
    titles = {"statements": "Sets of statements", "others": "The other sets"}
    return "\n\n".join(
        f"{titles[kind]}, mean distance (ECE) {100 * one['error']:.1f} points:\n\n{_bins(one['bins'])}"
        for kind, one in found["calibration"].items()
        if one["bins"]
    )


def _bins(bins: Iterable[Mapping[str, float]]) -> str:
    rows = [
        [
            f"{100 * row['from']:.0f} – {100 * row['from'] + 10:.0f} %",
            f"{row['queries']:.0f}",
            f"{100 * row['confidence']:.0f} %",
            f"{100 * row['right']:.0f} % ({100 * row['low']:.0f} … {100 * row['high']:.0f})",
        ]
        for row in bins
    ]
    return table(["confidence", "questions", "mean confidence", "first hit is right"], rows)


def silence(found: Figures) -> str:
    """Order and silence, where a set has labels for them."""
    rows = [
        [one["set"], name, f"{value:.2f}"]
        for one in found["sets"]
        for name, value in one["modes"][DEFAULT]["lifecycle"].items()
    ]
    return table(["set", "measure", "value"], rows)


def peers(found: Figures) -> str:
    """One row per peer: quality, and what it costs."""
    names = list(found["questions"])
    rows = []
    for peer, one in found["peers"].items():
        done = one["sets"]
        quality = [percent(done[name]["nDCG@10"]) if name in done else "–" for name in names]
        quality.append(_chinese(done))
        rows.append(
            [
                f"{peer} {one['version']}" if peer != "memoriter" else "**memoriter**",
                *quality,
                *_peer_cost(done),
            ]
        )
    costs = ["index, CPU ms per note", "search, CPU ms", "resident MB"]
    head = ["nDCG@10", *names, "Chinese only", *costs]
    return table(head, rows)


def peer_notes(found: Figures) -> str:
    """What was asked, and what could not be run."""
    asked = "; ".join(
        f"`{name}`: {one['groups']} of its groups, {one['items']:,} notes, {one['queries']} questions"
        for name, one in found["questions"].items()
    )
    lines = [f"Asked: {asked}.", ""]
    for peer, one in found["peers"].items():
        said = [f"Embedder: {one['embedder']}.", one["limits"]]
        said += [f"It failed on {one['failed']}."] if "failed" in one else []
        lines.append(f"- **{peer}** ({one['version']}). {' '.join(part for part in said if part)}")
    return "\n".join(lines)


def _chinese(done: Mapping[str, Any]) -> str:
    """The mean of the sets with Chinese questions about Chinese notes."""
    found = [one["languages"]["zh"] for one in done.values() if "zh" in one.get("languages", {})]
    return f"{100 * fmean(found):.1f}" if found else "–"


def _peer_cost(done: Mapping[str, Any]) -> list[str]:
    if not done:
        return ["–", "–", "–"]
    items = sum(one["items"] for one in done.values())
    index_s = sum(one["index_s"] for one in done.values())
    search = fmean(one["search_ms"] for one in done.values())
    return [
        f"{1000 * index_s / items:.1f}",
        f"{search:.0f}",
        f"{max(one['rss_mb'] for one in done.values()):.0f}",
    ]


# ---- plots --------------------------------------------------------------------------------------------------------


def plots(found: Figures | None, compared: Figures | None) -> dict[str, str]:
    """File name → SVG."""
    made: dict[str, str] = {}
    if found:
        cost = scatter(_cost_points(found), x="CPU ms of a search (p50)", y="nDCG@10, mean of the sets")
        made |= {
            "retrieval-cost.svg": cost,
            "retrieval-parts.svg": bars(
                _part_bars(found), x="nDCG@10 points that a part adds, mean of the sets"
            ),
            "retrieval-languages.svg": bars(_language_bars(found), x="nDCG@10"),
            "retrieval-calibration.svg": curve(
                found["calibration"]["statements"]["bins"],
                x="confidence of the first hit, %  (numbers: questions)",
                y="first hit is right, %",
            ),
        }
    if compared:
        points = [
            Point(
                name,
                max(0.1, fmean(one["search_ms"] for one in peer["sets"].values())),
                100 * fmean(one["nDCG@10"]["mean"] for one in peer["sets"].values()),
                name == "memoriter",
            )
            for name, peer in compared["peers"].items()
            if peer["sets"]
        ]
        made["retrieval-peers.svg"] = scatter(points, x="CPU ms of a search", y="nDCG@10, mean of the sets")
    return made


def _cost_points(found: Figures) -> list[Point]:
    scored = [one for one in found["sets"] if one["modes"][DEFAULT]["measures"]]
    points = [
        Point(
            mode,
            fmean(one["modes"][mode]["cpu_ms"]["p50"] for one in scored),
            100 * fmean(one["modes"][mode]["measures"]["nDCG@10"]["mean"] for one in scored),
        )
        for mode in scored[0]["modes"]
    ]
    default = next(point for point in points if point.label == DEFAULT)
    for name in _parts(found):
        if name not in ("keyword", "vector"):  # they are the modes
            cpu = fmean(one["parts"][name]["cpu_ms"]["p50"] for one in scored)
            points.append(
                Point(f"without {name}", cpu, default.y - 100 * _contribution(found, name), is_ours=False)
            )
    return points


def _part_bars(found: Figures) -> list[Bar]:
    made = []
    for name in _parts(found):
        values = [one["parts"][name]["contributes"]["nDCG@10"] for one in found["sets"] if one["parts"]]
        # Sets are independent samples, so the half-widths of their intervals add up like standard errors.
        half = sum(((value["high"] - value["low"]) / 2) ** 2 for value in values) ** 0.5 / len(values)
        mean = 100 * fmean(value["mean"] for value in values)
        made.append(Bar(name, mean, mean - 100 * half, mean + 100 * half))
    return sorted(made, key=lambda bar: -bar.value)


def _language_bars(found: Figures) -> list[Bar]:
    made = []
    for one in found["sets"]:
        for name, value in one["modes"][DEFAULT]["languages"].items():
            score = value["nDCG@10"]
            made.append(Bar(f"{name} · {one['set']}", *(100 * score[key] for key in ("mean", "low", "high"))))
    return sorted(made)


def _parts(found: Figures) -> list[str]:
    return list(dict.fromkeys(name for one in found["sets"] for name in one["parts"]))


def _contribution(found: Figures, name: str) -> float:
    return fmean(
        one["parts"][name]["contributes"]["nDCG@10"]["mean"] for one in found["sets"] if name in one["parts"]
    )


# ---- files --------------------------------------------------------------------------------------------------------


def written(root: Path, results: Path) -> dict[Path, str]:
    """Every file that the figures determine, with its text."""
    found, compared = _read(results / "retrieval.json"), _read(results / "peers.json")
    texts = {root / PAGE: _page(root / PAGE, blocks(found) if found else {})}
    if compared:
        text = replaced(texts[root / PAGE], "peers", peers(compared))
        texts[root / PAGE] = replaced(text, "peer-notes", peer_notes(compared))
    return texts | {root / PLOTS / name: text for name, text in plots(found, compared).items()}


def _read(file: Path) -> Figures | None:
    """Return measured figures, or None before the first run."""
    return json.loads(file.read_text("utf-8")) if file.exists() else None


def _page(page: Path, measured: Mapping[str, str]) -> str:
    text = page.read_text("utf-8")
    for name, block in measured.items():
        text = replaced(text, name, block)
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the page and its plots."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.evals.retrieval", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("--check", action="store_true", help="Change nothing; fail if a file is out of date.")
    parser.add_argument("--root", type=Path, default=ROOT, help="The checkout to write to.")
    parser.add_argument("--results", type=Path, default=RESULTS, help="Folder with the figures.")
    options = parser.parse_args(arguments)
    stale = 0
    for path, text in written(options.root, options.results).items():
        if path.exists() and path.read_text("utf-8") == text:
            continue
        stale += 1
        print(
            f"{path.relative_to(options.root)} {'is out of date' if options.check else 'written'}",
            file=sys.stderr,
        )
        if not options.check:
            path.write_text(text, "utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
