"""The page about retrieval is written from figures alone."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lab.evals import retrieval
from lab.evals.__main__ import everything
from lab.evals.plots import Bar, Point, bars, curve, scatter
from lab.evals.run import Build, Outcome, SetResult
from lab.evals.sets import Query
from lab.evals.variants import MODES, PARTS, grid, without
from lab.page import put, replaced

PEER = {
    "version": "1.2",
    "limits": "Words only.",
    "embedder": "none",
    "sets": {
        "toy": {
            "items": 4,
            "nDCG@10": {"mean": 0.5, "low": 0.4, "high": 0.6},
            "languages": {"en": 0.6, "zh": 0.4},
            "index_s": 2.0,
            "search_ms": 12.0,
            "rss_mb": 80.0,
        }
    },
}


def results() -> dict[str, object]:
    """Figures of a run in which every variant answers one question of two."""
    query = Query("1", "a", "?", "c", ("right",), language="en")
    other = Query("2", "b", "?", "c", ("right",), language="zh")

    def outcomes(first: str) -> list[Outcome]:
        answers = [(query, first, 0.9), (other, "wrong", 0.2)]
        return [
            Outcome(asked, (ranked,), confidence, cpu_ms=5.0, judged=((confidence, ranked == "right"),))
            for asked, ranked, confidence in answers
        ]

    names = [*MODES, *(without(part, None).name for part in PARTS), *(one.name for one in grid(None))]
    answered = {name: outcomes("wrong" if name == "without rerank" else "right") for name in names}
    found = everything([SetResult("toy", answered, [Build(2, 2, 100, 1.0)], "model")], grid(None))
    found["run"] = {"limit": 60, "sample": 20, "wall_s": 120, "cpu_s": 180, "jobs": 2, "settings": {}}
    return found


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the real page, empty blocks and figures of a toy run."""
    text = (retrieval.ROOT / retrieval.PAGE).read_text("utf-8")
    empty = re.sub(r"(<!-- measured: [\w-]+ -->\n).*?(<!-- end measured -->)", r"\1\2", text, flags=re.DOTALL)
    (tmp_path / "lab/images").mkdir(parents=True)
    (tmp_path / "lab/retrieval.md").write_text(empty, "utf-8")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/retrieval.json").write_text(json.dumps(results()), "utf-8")
    asked = {"toy": {"groups": 2, "items": 4, "queries": 2}}
    peers = {"questions": asked, "peers": {"memoriter": PEER, "other": PEER}}
    (tmp_path / "results/peers.json").write_text(json.dumps(peers), "utf-8")
    return tmp_path


def write(checkout: Path, *options: str) -> int:
    return retrieval.main(["--root", str(checkout), "--results", str(checkout / "results"), *options])


def test_the_page_and_its_plots_are_written_from_the_figures(checkout):
    assert write(checkout, "--check") == 1
    assert write(checkout) == 0
    assert write(checkout, "--check") == 0
    page = (checkout / "lab/retrieval.md").read_text("utf-8")
    assert "| toy | 2 | 50.0 ± 50.0 |" in page
    assert "| toy | +0.0 (+0.0 … +0.0) | +0.0 (+0.0 … +0.0) | +50.0 (+0.0 … +100.0) |" in page
    assert "| **memoriter** | 50.0 ± 10.0 | 40.0 | 500.0 | 12 | 80 |" in page
    assert "| nDCG@10 | toy | Chinese only | index, CPU ms per note | search, CPU ms | resident MB |" in page
    assert "| other 1.2 |" in page
    for image in re.findall(r"\((images/[\w-]+\.svg)\)", page):
        ET.fromstring((checkout / "lab" / image).read_text("utf-8"))


def test_the_page_of_this_repository_shows_the_figures_of_its_results():
    assert retrieval.main(["--check"]) == 0


def test_a_page_without_the_mark_is_not_overwritten(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("words")
    with pytest.raises(ValueError, match="no mark <!-- measured: x -->"):
        put(page, "x", "table")
    assert page.read_text() == "words"
    assert replaced("<!-- measured: x -->old<!-- end measured -->", "x", "a\\1") == (
        "<!-- measured: x -->\na\\1\n<!-- end measured -->"
    )


@pytest.mark.parametrize(
    "svg",
    [
        scatter([Point("a & b", 0.5, 40), Point("c", 300, 61.2, is_ours=False)], x="ms", y="%"),
        scatter([Point("alone", 1, 0)], x="ms", y="%"),
        bars([Bar("up", 3.2, 1, 5), Bar("down", -1, -2, 0)], x="points"),
        bars([Bar("nothing", 0, 0, 0)], x="points"),
        curve([{"confidence": 0.4, "right": 0.5, "low": 0.3, "high": 0.7, "queries": 12}], x="a", y="b"),
        curve([], x="a", y="b"),
    ],
)
def test_a_plot_is_well_formed_and_stays_inside_its_frame(svg):
    root = ET.fromstring(svg)
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    numbers = [
        (float(value), width if name.startswith(("x", "cx")) else height)
        for element in root.iter()
        for name, value in element.attrib.items()
        if name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy")
    ]
    assert all(-1 <= value <= limit + 1 for value, limit in numbers)
