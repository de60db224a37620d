"""Build the student's vocabulary: English word pieces that occur, and Chinese characters.

The pieces come from bge-small-en's vocabulary by how often the training text uses them, the
characters from bge-small-zh's; so every row of the student's table has a teacher's row to start
from, and 30,000 rows do for both languages.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_SAMPLE = 250_000


def is_han(piece: str) -> bool:
    """Return whether a piece is one Han character."""
    return len(piece) == 1 and ("\u3400" <= piece <= "\u9fff" or "\uf900" <= piece <= "\ufaff")


def _is_english(piece: str) -> bool:
    return not piece.startswith("[unused") and all(ord(c) < 0x250 or 0x2000 <= ord(c) < 0x2200 for c in piece)


def vocabulary(english: dict[str, int], chinese: dict[str, int], used: Counter[int], size: int) -> list[str]:
    """Return the pieces in order: special, single characters, frequent pieces, Chinese."""
    by_number = sorted(english, key=english.__getitem__)
    usable = [piece for piece in by_number if _is_english(piece) and not is_han(piece)]
    single = [piece for piece in usable if len(piece.removeprefix("##")) == 1]
    frequent = sorted(usable, key=lambda piece: -used[english[piece]])
    chosen = dict.fromkeys(SPECIAL)
    chosen.update(dict.fromkeys(single))
    for piece in frequent:
        if len(chosen) >= size:
            break
        chosen.setdefault(piece)
    for piece in sorted(chinese, key=chinese.__getitem__):
        if len(piece) == 1 and ord(piece) >= 0x2000:
            chosen.setdefault(piece)
    return list(chosen)


def build(teacher: Any, chinese: Any, texts: Sequence[str], size: int, out: Path) -> list[str]:
    """Count pieces over a sample of English texts and write the student's tokenizer."""
    sample = random.Random(0).sample(list(texts), min(len(texts), _SAMPLE))
    used: Counter[int] = Counter()
    for start in range(0, len(sample), 10_000):
        for encoding in teacher.encode_batch(sample[start : start + 10_000]):
            used.update(encoding.ids)
    pieces = vocabulary(teacher.get_vocab(), chinese.get_vocab(), used, size)
    out.write_text(json.dumps(definition(teacher, pieces), ensure_ascii=False), encoding="utf-8")
    return pieces


def definition(teacher: Any, pieces: list[str]) -> dict[str, Any]:
    """Return the tokenizer file's content: the teacher's rules with the student's pieces."""
    rules: dict[str, Any] = json.loads(teacher.to_str())
    numbers = {piece: number for number, piece in enumerate(pieces)}
    rules["model"]["vocab"] = numbers
    rules["added_tokens"] = [
        dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        | {"id": numbers[token], "content": token, "special": True}
        for token in SPECIAL
    ]
    for token, entry in rules["post_processor"]["special_tokens"].items():
        entry["ids"] = [numbers[token]]
    rules["truncation"] = rules["padding"] = None
    return rules
