"""The context leg: what do the lines around a chunk say?

Chunks are small, so that a hit is the right few lines and nothing else. But a line of a long note is often about the
question only together with its neighbours. So a part of what a chunk is worth is the mean of what it and the chunks
around it are worth: a passage that is near as a whole lifts its lines, and a chance likeness of one line sinks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Chunks before and after: with small chunks about as much text as the largest chunk may hold.
REACH = 8


def context_leg(values: Mapping[int, float], around: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """For each row, the mean value of the rows around it; one without a value counts as 0."""
    return {
        row: sum([values.get(other, 0.0) for other in others]) / len(others) for row, others in around.items()
    }
