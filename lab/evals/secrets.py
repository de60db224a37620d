"""Measure redaction: how many kinds of secrets are found, and how often ordinary text is changed.

`python -m lab.evals.secrets [FOLDER]` prints both, on generated values. `sets/secrets/development.tsv` lists kinds and
the sentences they occur in; `held_out.tsv` lists kinds that are only measured. A kind is found if its value remains in
none of its sentences. Tokens are also measured with other text joined to them, and split over two lines.
`ordinary.txt` lists sentences without secrets. FOLDER contains further sets of texts (`*/corpus*.jsonl`), which count
as ordinary, although some contain what looks like a real secret. `-v` prints what is missed in the held-out part.
"""

from __future__ import annotations

import json
import random
import re
import string
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from memoriter.text.redaction import find_secrets, redact

SETS = Path(__file__).parent / "sets"
#: Sentences from each line of ordinary text, with other values in each.
ROUNDS = 10

_LETTERS, _LOWER, _UPPER, _DIGITS = (
    string.ascii_letters,
    string.ascii_lowercase,
    string.ascii_uppercase,
    string.digits,
)
_ALPHABETS = {
    "b62": _LETTERS + _DIGITS, "hex": "0123456789abcdef", "b36": _LOWER + _DIGITS, "B36": _UPPER + _DIGITS,
    "B32": _UPPER + "234567", "b64": _LETTERS + _DIGITS + "+/", "url": _LETTERS + _DIGITS + "_-", "d": _DIGITS,
    "a": _LETTERS, "l": _LOWER, "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "age": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}  # fmt: skip
_WORDS = [
    "ripple", "lemon", "cactus", "orbit", "panel", "velvet", "hockey", "sugar", "tunnel", "maple", "drift", "anchor",
    "basket", "copper", "dolphin", "ember", "fabric", "garden", "harbor", "island", "jungle", "kernel", "ladder",
    "magnet",
]  # fmt: skip
_PLACEHOLDER = re.compile(r"\{(?:(\w+):(\d+)|(uuid|pw|card4?|iban4?|cnid|mac|month|day))\}")

#: Sentences around a token that has a form of its own. A comma, a full stop or Chinese text follows it directly.
FRAMES = (
    "We use {} for this.",
    "Set it to {}, then restart.",
    "我们用的是{}，别外传",
    "export SERVICE={}",
    '{"value": "{}"}',
    "client = connect('{}')",
    "see `{}`",
)
#: What may stand right beside a token, and what may end a line in the middle of it.
BESIDE = (
    "k{}", "K{}", "7{}", "_{}_", "my_{}", "@{}", "{}k", "{}_old", "a/{}/b", "https://{}@x.org/a", "“{}”", "用{}吧",
    "a\u200b{}\u200b b", r"a\n{}\n", r"\u0022{}\u0022", "%22{}%22", "\x1b[32m{}\x1b[0m",
)  # fmt: skip
LINE_ENDS = ("\n", "\n    ", "\r\n", "\n> ", "=\n", "\\\n", '" +\n  "', r"\n")


class Kind(NamedTuple):
    """A kind of secret: texts, each with the part that must not remain."""

    name: str
    texts: tuple[tuple[str, str], ...]

    @property
    def missed(self) -> list[str]:
        """Return the texts in which the secret remains, or its end."""
        return [text for text, secret in self.texts if secret[-12:] in redact(text)]


def kinds(part: str, seed: int = 1) -> list[Kind]:
    """Return the kinds of a part, "development" or "held_out", with generated values."""
    found = []
    for line in _lines(part):
        form, name, value, *sentences = line.split("\t")
        rng = random.Random(f"{seed} {name}")
        if form == "disguise":
            texts = [_disguised(rng, value, sentences[0], frame) for frame in FRAMES[:3]]
        else:
            frames = re.split(r" \|\| ", sentences[0]) if sentences else FRAMES
            texts = [_text(rng, value, frame) for frame in frames]
        found.append(Kind(name, tuple(texts)))
    return found


def joined(part: str, seed: int = 1) -> tuple[int, int, int, int]:
    """Return how many tokens with text beside them are found, of how many, and of those that are split over lines."""
    beside, split = list[bool](), list[bool]()
    for form, name, value, *sentences in (line.split("\t") for line in _lines(part)):
        rng = random.Random(f"{seed} {name}")
        if form == "token" and not sentences:
            beside += (_is_found(text, secret) for text, secret in (_text(rng, value, one) for one in BESIDE))
            for end in LINE_ENDS:
                secret = fill(rng, value)
                middle = len(secret) // 2
                text = f'"{secret[:middle]}{end}{secret[middle:]}"'
                split.append(_is_found(text, secret[:middle]) and _is_found(text, secret[middle:]))
    return sum(beside), len(beside), sum(split), len(split)


def _is_found(text: str, secret: str) -> bool:
    return secret[-12:] not in redact(text)


def _lines(part: str) -> list[str]:
    return (SETS / f"secrets/{part}.tsv").read_text("utf-8").splitlines()[1:]


def ordinary(seed: int = 1) -> Iterator[str]:
    """Yield sentences without secrets: generated ones, and those of the sets of everyday memories."""
    rng = random.Random(seed)
    for line in (SETS / "secrets/ordinary.txt").read_text("utf-8").splitlines():
        for _ in range(ROUNDS):
            yield fill(rng, line)
    for name in ("memories", "everyday"):
        texts = _texts_of(SETS / name / "corpus.jsonl")
        yield from (text for text in texts if not re.search("password|密码", text))  # two of them are real


def fill(rng: random.Random, text: str) -> str:
    """Return a text with generated values in place of its placeholders."""
    return _PLACEHOLDER.sub(lambda place: _value(rng, place), text)


def _text(rng: random.Random, value: str, frame: str) -> tuple[str, str]:
    secret = fill(rng, value)
    frame = fill(
        rng, frame.replace(r"\|", "|").replace(r"\\n", "\0").replace(r"\n", "\n").replace("\0", r"\n")
    )
    return frame.replace("{}", secret), secret


def _disguised(rng: random.Random, value: str, how: str, frame: str) -> tuple[str, str]:
    secret = fill(rng, value)
    hidden: Callable[[str], str] = {
        "wide": lambda text: "".join(chr(ord(c) + 0xFEE0) if c.isalnum() or c == "_" else c for c in text),
        "cyrillic": lambda text: text.replace("p", "р", 1),
        "percent": lambda text: text.replace("_", "%5F"),
        "entity": lambda text: text.replace("_", "&#95;"),
    }.get(how, lambda text: text[:2] + how.encode().decode("unicode_escape") + text[2:])
    return frame.replace("{}", hidden(secret)), hidden(secret)


def _value(rng: random.Random, place: re.Match[str]) -> str:
    alphabet, count, special = place.groups()
    if alphabet == "words":
        return " ".join(rng.sample(_WORDS, int(count)))
    if alphabet:
        return "".join(rng.choices(_ALPHABETS[alphabet], k=int(count)))
    return _SPECIAL[special](rng)


def _password(rng: random.Random) -> str:
    letters = "".join(rng.choices(_LETTERS, k=rng.randint(4, 9)))
    digits = "".join(rng.choices(_DIGITS, k=rng.randint(1, 3)))
    return letters[:3] + digits + letters[3:] + rng.choice(["", "!", "#7", "-x", "_9"])


def _card(rng: random.Random) -> str:
    digits = [*map(int, rng.choice(["4", "51", "54", "62"])), *(rng.randrange(10) for _ in range(15))][:15]
    doubled = [d if i % 2 else sum(divmod(2 * d, 10)) for i, d in enumerate(digits)]
    return "".join(map(str, [*digits, -sum(doubled) % 10]))


def _iban(rng: random.Random) -> str:
    body = "".join(rng.choices(_DIGITS, k=18))
    return f"DE{98 - int(body + '131400') % 97:02}{body}"


def _resident(rng: random.Random) -> str:
    body = f"110105{rng.randint(1950, 2005)}{rng.randint(1, 12):02}{rng.randint(1, 28):02}{rng.randint(100, 999)}"
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return body + "10X98765432"[sum(int(d) * w for d, w in zip(body, weights, strict=True)) % 11]


def _grouped(text: str) -> str:
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


_SPECIAL: dict[str, Callable[[random.Random], str]] = {
    "uuid": lambda rng: fill(rng, "{hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}"),
    "mac": lambda rng: ":".join(fill(rng, "{hex:2}") for _ in range(6)),
    "month": lambda rng: f"{rng.randint(1, 12):02}",
    "day": lambda rng: f"{rng.randint(10, 28)}",
    "pw": _password,
    "card": _card,
    "card4": lambda rng: _grouped(_card(rng)),
    "iban": _iban,
    "iban4": lambda rng: _grouped(_iban(rng)),
    "cnid": _resident,
}


def _texts_of(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield "\n".join(value for value in json.loads(line).values() if isinstance(value, str))


def main() -> int:
    """Print the figures."""
    for part in ("development", "held_out"):
        some = kinds(part)
        whole = [kind for kind in some if not kind.missed]
        texts, missed = sum(len(kind.texts) for kind in some), sum(len(kind.missed) for kind in some)
        print(
            f"{part}: {len(whole)} of {len(some)} kinds found in every sentence ({len(whole) / len(some):.1%}), "
            f"{texts - missed} of {texts} sentences ({(texts - missed) / texts:.1%})"
        )
        near, of_near, split, of_split = joined(part)
        print(
            f"  tokens with text beside them: {near} of {of_near} ({near / of_near:.1%}), "
            f"split over lines: {split} of {of_split} ({split / of_split:.1%})"
        )
        for kind in some:
            if kind.missed and (part == "development" or "-v" in sys.argv):
                print(
                    f"  missed: {kind.name}: {len(kind.missed)} of {len(kind.texts)}, as in {kind.missed[0][:100]!r}"
                )
    texts_without = list(ordinary())
    _print_alarms("ordinary text", texts_without)
    for folder in (Path(one) for one in sys.argv[1:] if not one.startswith("-")):
        _print_alarms(
            str(folder), [text for file in sorted(folder.glob("*/corpus*.jsonl")) for text in _texts_of(file)]
        )
    return 0


def _print_alarms(name: str, texts: list[str]) -> None:
    changed = [text for text in texts if find_secrets(text)]
    print(f"{name}: {len(changed)} of {len(texts)} texts changed ({len(changed) / max(1, len(texts)):.2%})")
    for text in changed[:40]:
        print("  ", *(f"{one.kind}: {text[one.start : one.end][:60]!r}" for one in find_secrets(text)[:3]))


if __name__ == "__main__":
    raise SystemExit(main())
