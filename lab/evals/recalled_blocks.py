"""Reads a block of recalled text back into its lines, as an agent reads it."""

from __future__ import annotations

import json
import re

from memoriter.recall.render import LABELS, TAG, Line

_BLOCK = re.compile(rf'<{TAG} recall="([0-9A-Za-z-]{{1,64}})">\n(.*)\n</{TAG}>', re.DOTALL)


def read_back(block: str) -> tuple[str, list[Line]]:
    """Return the id and the lines of a block, in their order."""
    found = _BLOCK.fullmatch(block)
    if found is None:
        raise ValueError("this is not one block of recalled text")
    groups = {f"**{label}**": group for labels in LABELS.values() for group, label in labels.items()}
    lines, group = list[Line](), ""
    for row in found[2].split("\n")[1:]:
        if row.startswith("- "):
            ref, *labels, text = json.loads(row[2:])
            date = labels.pop() if labels and labels[-1][0].isdigit() else ""
            stale = labels.pop()[7:] if labels and labels[-1].startswith("stale: ") else ""
            lines.append(Line(ref, group, text, labels[0] if labels else "owner", date, stale))
        else:
            group = groups[row]
    return found[1], lines
