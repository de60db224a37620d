"""Small SVG plots: points, bars with intervals, and a calibration curve. No library is needed for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 680, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 24, 52
INK, GRID, BLUE, ORANGE = "#24292f", "#d8dee4", "#0969da", "#bc4c00"


class Point(NamedTuple):
    """A labelled point."""

    label: str
    x: float
    y: float
    is_ours: bool = True


class Series(NamedTuple):
    """A labelled line."""

    label: str
    values: Sequence[float]


class Bar(NamedTuple):
    """A labelled value with its interval."""

    label: str
    value: float
    low: float
    high: float


def scatter(points: Sequence[Point], *, x: str, y: str) -> str:
    """Points over a logarithmic x axis."""
    low_x, high_x = _decades([point.x for point in points])
    low_y, high_y = _rounded([point.y for point in points], step=10)

    def at(point: Point) -> tuple[float, float]:
        share = (math.log10(max(point.x, 1e-6)) - low_x) / (high_x - low_x)
        return LEFT + share * _inner(WIDTH, LEFT, RIGHT), _y(point.y, low_y, high_y)

    parts = [_y_grid(low_y, high_y, 10), _titles(x, y)]
    for exponent in range(low_x, high_x + 1):
        place = LEFT + (exponent - low_x) / (high_x - low_x) * _inner(WIDTH, LEFT, RIGHT)
        parts += [
            _line(place, TOP, place, HEIGHT - BOTTOM, GRID),
            _text(place, HEIGHT - 32, f"{10**exponent:g}"),
        ]
    for point, above in _staggered(points):
        cx, cy = at(point)
        colour = BLUE if point.is_ours else ORANGE
        side = "end" if cx > WIDTH * 0.72 else "start"
        shift = -9 if side == "end" else 9
        parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="5" fill="{colour}"/>')
        parts.append(_text(cx + shift, cy + (-6 if above else 14), point.label, side))
    return _svg(parts, HEIGHT)


def bars(rows: Sequence[Bar], *, x: str, unit: str = "") -> str:
    """Horizontal bars with whiskers, from zero."""
    label_width, row_height = 190, 30
    height = TOP + row_height * len(rows) + BOTTOM
    low = min(0.0, *(row.low for row in rows), *(row.value for row in rows))
    high = max(0.0, *(row.high for row in rows), *(row.value for row in rows))
    low, high = (low, high) if high > low else (0.0, 1.0)

    def place(value: float) -> float:
        return label_width + (value - low) / (high - low) * (WIDTH - label_width - 80)

    parts = [_line(place(0), TOP - 6, place(0), height - BOTTOM, INK)]
    for number, row in enumerate(rows):
        y = TOP + row_height * number
        left, right = sorted((place(0), place(row.value)))
        parts += [
            _text(label_width - 10, y + 16, row.label, "end"),
            f'<rect x="{left:.1f}" y="{y + 4}" width="{max(1.0, right - left):.1f}" height="16" fill="{BLUE}"/>',
            _line(place(row.low), y + 12, place(row.high), y + 12, INK),
            _text(place(max(row.high, row.value, 0)) + 8, y + 16, f"{row.value:+.1f}{unit}", "start"),
        ]
    parts.append(_text(WIDTH / 2, height - 16, x))
    return _svg(parts, height)


def lines(series: Sequence[Series], *, x: str, y: str) -> str:
    """Percentages over numbered steps. The second of two series of a pair is dashed."""
    parts = [_y_grid(0, 100, 20), _titles(x, y)]
    steps = max(len(one.values) for one in series)

    def across(number: int) -> float:
        return LEFT + number / max(1, steps - 1) * _inner(WIDTH, LEFT, RIGHT)

    parts += [_text(across(number), HEIGHT - 32, f"{number + 1}") for number in range(steps)]
    for place, one in enumerate(series):
        colour, dash = (BLUE, ORANGE)[place // 2 % 2], ' stroke-dasharray="5 4"' if place % 2 else ""
        points = " ".join(
            f"{across(number):.1f},{_y(value, 0, 100):.1f}" for number, value in enumerate(one.values)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')
        y_label = TOP + 16 * place + 90
        parts += [
            _line(WIDTH - 250, y_label - 4, WIDTH - 220, y_label - 4, colour, dashed=bool(dash)),
            _text(WIDTH - 212, y_label, one.label, "start"),
        ]
    return _svg(parts, HEIGHT)


def curve(bins: Iterable[Mapping[str, float]], *, x: str, y: str) -> str:
    """Shares of right answers over their confidence; the diagonal would be perfect."""
    parts = [_y_grid(0, 100, 20), _titles(x, y)]

    def across(share: float) -> float:
        return LEFT + share * _inner(WIDTH, LEFT, RIGHT)

    parts += [_text(across(tick / 100), HEIGHT - 32, f"{tick}") for tick in range(0, 101, 20)]
    parts.append(_line(across(0), _y(0, 0, 100), across(1), _y(100, 0, 100), ORANGE, dashed=True))
    places = []
    for one in bins:
        cx, cy = across(one["confidence"]), _y(100 * one["right"], 0, 100)
        places.append(f"{cx:.1f},{cy:.1f}")
        parts += [
            _line(cx, _y(100 * one["low"], 0, 100), cx, _y(100 * one["high"], 0, 100), INK),
            f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="4" fill="{BLUE}"/>',
            _text(cx, HEIGHT - BOTTOM - 6, f"{one['queries']:.0f}"),
        ]
    parts.append(f'<polyline points="{" ".join(places)}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>')
    return _svg(parts, HEIGHT)


# ---- pieces -------------------------------------------------------------------------------------------------------


def _svg(parts: Iterable[str], height: int) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dash}/>'


def _titles(x: str, y: str) -> str:
    middle = TOP + _inner(HEIGHT, TOP, BOTTOM) / 2
    turned = f'<g transform="rotate(-90 16 {middle:.0f})">{_text(16, middle, y)}</g>'
    return _text(LEFT + _inner(WIDTH, LEFT, RIGHT) / 2, HEIGHT - 10, x) + turned


def _y_grid(low: float, high: float, step: float) -> str:
    parts, value = [], low
    while value <= high + 1e-9:
        y = _y(value, low, high)
        parts += [_line(LEFT, y, WIDTH - RIGHT, y, GRID), _text(LEFT - 8, y + 4, f"{value:g}", "end")]
        value += step
    return "\n".join(parts)


def _y(value: float, low: float, high: float) -> float:
    return TOP + (1 - (value - low) / (high - low)) * _inner(HEIGHT, TOP, BOTTOM)


def _inner(size: int, before: int, after: int) -> int:
    return size - before - after


def _decades(values: Sequence[float]) -> tuple[int, int]:
    logs = [math.log10(max(value, 1e-6)) for value in values]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return low, max(high, low + 1)


def _rounded(values: Sequence[float], step: float) -> tuple[float, float]:
    low = max(0.0, step * math.floor(min(values) / step))
    return low, max(step * math.ceil(max(values) / step), low + step)


def _staggered(points: Sequence[Point]) -> list[tuple[Point, bool]]:
    """Put labels above and below in turn, so that near points do not cover each other's."""
    ordered = sorted(points, key=lambda point: (point.x, point.y))
    return [(point, number % 2 == 0) for number, point in enumerate(ordered)]
