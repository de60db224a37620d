"""Search for a text in every file below a folder, in every encoding that a file may use."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path


def forms(text: str) -> list[bytes]:
    """Return the text raw, in UTF-16, escaped as JSON, and in the three alignments of base64."""
    raw = text.encode()
    shifted = [base64.b64encode(b"\0" * shift + raw)[4 if shift else 0 : -4] for shift in range(3)]
    escaped = json.dumps(text)[1:-1].encode()
    return [raw, text.encode("utf-16-le"), text.encode("utf-16-be"), escaped, *shifted]


def holders(folder: Path, *texts: str, blobs: Sequence[bytes] = ()) -> list[str]:
    """Return the names of the files that contain any of the texts in any form, or any of the byte strings."""
    needles = [needle for text in texts for needle in forms(text)] + list(blobs)
    return sorted(
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file() and any(needle in file.read_bytes() for needle in needles)
    )
