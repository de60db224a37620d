"""The figures of a run as Markdown tables. Percent unless a unit is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lab.evals.figures import MEASURES, Figures


def markdown(sets: Sequence[Figures]) -> str:
    """The tables of several sets."""
    parts = [
        "### Retrieval, by set and mode",
        table(["set", "mode", "n", *MEASURES], [row for one in sets for row in _mode_rows(one)]),
        "### Differences, paired by query (95 % interval)",
        table(
            ["set", "difference", "nDCG@10", "recall@10", "MRR", "facet@10"],
            [row for one in sets for row in _difference_rows(one)],
        ),
        "### nDCG@10 by category",
        table(["set", "category", "n", *_modes(sets)], [row for one in sets for row in _category_rows(one)]),
        "### Order and silence",
        table(["set", "measure", *_modes(sets)], [row for one in sets for row in _lifecycle_rows(one)]),
        "### Cost",
        table(
            [
                "set",
                "items",
                "chunks",
                "index CPU s",
                "bytes/item",
                *(f"{m} p50 / p95 ms" for m in _modes(sets)),
            ],
            [_cost_row(one) for one in sets],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(value: Mapping[str, float], *, spread: bool = True) -> str:
    """A mean in percent, with half of its interval."""
    half = f" ± {50 * (value['high'] - value['low']):.1f}" if spread else ""
    return f"{100 * value['mean']:.1f}{half}"


def signed(value: Mapping[str, float]) -> str:
    """A difference in percent with its interval."""
    return f"{100 * value['mean']:+.1f} ({100 * value['low']:+.1f} … {100 * value['high']:+.1f})"


def _modes(sets: Sequence[Figures]) -> list[str]:
    return list(dict.fromkeys(mode for one in sets for mode in one["modes"]))


def _mode_rows(one: Figures) -> list[list[str]]:
    return [
        [
            str(one["set"]),
            mode,
            str(found["queries"]),
            *(percent(found["measures"][name], spread=name == "nDCG@10") for name in MEASURES),
        ]
        for mode, found in one["modes"].items()
        if found["measures"]
    ]


def _difference_rows(one: Figures) -> list[list[str]]:
    return [
        [str(one["set"]), name, *(signed(value) for value in found.values())]
        for name, found in one["differences"].items()
    ]


def _category_rows(one: Figures) -> list[list[str]]:
    modes = one["modes"]
    categories = next(iter(modes.values()))["categories"]
    return [
        [
            str(one["set"]),
            category,
            str(found["queries"]),
            *(percent(modes[mode]["categories"][category]["nDCG@10"], spread=False) for mode in modes),
        ]
        for category, found in categories.items()
    ]


def _lifecycle_rows(one: Figures) -> list[list[str]]:
    modes = one["modes"]
    names = next(iter(modes.values()))["lifecycle"]
    return [
        [str(one["set"]), name, *(f"{modes[mode]['lifecycle'][name]:.2f}" for mode in modes)]
        for name in names
    ]


def _cost_row(one: Figures) -> list[str]:
    index = one["index"]
    times = [found["cpu_ms"] for found in one["modes"].values()]
    return [
        str(one["set"]),
        f"{index['items']:,}",
        f"{index['chunks']:,}",
        f"{index['cpu_s']:.1f}",
        f"{index['bytes_per_item']:,.0f}",
        *(f"{time['p50']:.1f} / {time['p95']:.1f}" for time in times),
    ]
