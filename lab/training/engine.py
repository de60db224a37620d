"""The data engine: a language model writes short texts from seeds, and lines and questions about each of them.

Every prompt asks for one thing and shows three examples of it, from `seeds/examples.jsonl` and from scenes that are
trained with. All prompts of a batch share these examples, so the model reads them once. What it writes is appended to
`written.jsonl`, one text per row, so an interrupted run keeps what it has.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.training import language, pairs, scenes
from lab.training.config import EngineConfig
from lab.training.language import Sampling, Writer
from lab.training.overlap import Benchmarks, units
from lab.training.pairs import LANGUAGES, SEEDS
from lab.training.scenes import NAMES

#: What is asked for, in the words of the prompt.
ASKS: dict[str, dict[str, str]] = {
    "outright": {"en": "Later, it changed", "zh": "后来变了"},
    "beside": {"en": "Later, about the same thing, nothing changed", "zh": "后来又提到，但没变"},
    "implied": {"en": "Later, one can tell that it changed", "zh": "后来能看出已经变了"},
    "planned": {"en": "Later, a change is only considered", "zh": "后来只是考虑改，还没改"},
    "same": {"en": "The same in other words", "zh": "换个说法"},
    "denied": {"en": "Later, it is not so any more", "zh": "后来不是这样了"},
    "partly": {"en": "Later, a part of it changed", "zh": "后来只变了一部分"},
    "question": {"en": "A question that it answers", "zh": "它能回答的问题"},
    "near": {"en": "A question that it does not answer", "zh": "它回答不了的问题"},
}
#: What is asked for, in turn, and for which share of the texts.
ROUNDS = (
    ("implied", 1.0),
    ("outright", 0.8),
    ("beside", 0.8),
    ("planned", 0.6),
    ("denied", 0.5),
    ("implied", 0.8),
    ("same", 0.4),
    ("partly", 0.3),
    ("question", 1.0),
    ("near", 1.0),
    ("question", 1.0),
)
_QUESTIONS = ("question", "near")
_WORDS = {
    "en": {"topic": "Topic", "text": "Text", "earlier": "Earlier", "colon": ": ", "of": "{a} of {n}"},
    "zh": {"topic": "话题", "text": "内容", "earlier": "先前", "colon": "：", "of": "{n}的{a}"},
}
_KINDS = {
    "statement": "陈述",
    "note line": "笔记",
    "chat line": "聊天",
    "log entry": "日志",
    "plan": "计划",
}
_COUNTS = {
    "en": ("one sentence", "two sentences", "three sentences", "four sentences"),
    "zh": ("一句", "两句", "三句", "四句"),
}
_TONES = {
    "en": ("plain", "hurried", "cheerful", "annoyed", "dry", "warm", "brief", "exact"),
    "zh": ("平淡", "匆忙", "高兴", "不耐烦", "随意", "亲切", "简短", "详细"),
}
_JOBS = {
    "en": (
        "nurse",
        "teacher",
        "baker",
        "developer",
        "student",
        "lawyer",
        "farmer",
        "father of two",
        "retired",
        "cook",
    ),
    "zh": ("护士", "老师", "面包师", "程序员", "学生", "律师", "农民", "两个孩子的爸爸", "退休了", "厨师"),
}
_PLAIN = re.compile(r"^[A-Za-z0-9 .,;:!?'\"\-()/%&+#@€$£=\n]*$")
_CHINESE = re.compile(r"^[\u4e00-\u9fffA-Za-z0-9 .,:;!?%+\-/()。，、；：？！（）“”《》…—·\n]*$")
_LABELS = re.compile(r"Topic:|Earlier:|Later,|Text:|话题|先前：|内容：|后来变|换个说法|\?{3}|_{2}|={2}")


@dataclass(frozen=True)
class Example:
    """What the examples of a prompt are taken from, by language."""

    topic: Mapping[str, str]
    lines: Mapping[str, Mapping[str, str]]
    kind: str = ""


def examples(rng: random.Random) -> tuple[list[Example], list[Example]]:
    """Return the written examples, and scenes as examples, one line of each kind."""
    rows = [json.loads(line) for line in (SEEDS / "examples.jsonl").read_text(encoding="utf-8").splitlines()]
    whole = [
        Example(row["topic"], {k: v for k, v in row.items() if k not in ("topic", "kind")}, row["kind"])
        for row in rows
    ]
    return whole, [_from_scene(row, rng) for row in scene_rows()]


def scene_rows() -> list[dict[str, Any]]:
    """Return the scenes that are trained with."""
    return [row for row in scenes.rows() if not scenes.is_held_out(row, 8)]


def scene_texts(rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the lines of these scenes that nothing has changed yet, as texts to write later lines about."""
    for row in scene_rows():
        filled = _filling(rng)
        for side, tongue in enumerate(LANGUAGES):
            for line in (*row["old"][tongue], *row["near"][tongue]):
                yield {
                    "role": "text",
                    "lang": tongue,
                    "topic": row["topic"],
                    "text": filled(line, side),
                }


def _filling(rng: random.Random) -> Callable[[str, int], str]:
    """Draw names. Return what fills the placeholders of a line in a language with them."""
    chosen = {kind: rng.sample(known, 2) for kind, known in NAMES.items()}
    return lambda text, side: re.sub(r"\{(\w+?)(2?)\}", lambda m: chosen[m[1]][bool(m[2])][side], text)


def _from_scene(row: Mapping[str, Any], rng: random.Random) -> Example:
    filled = _filling(rng)

    def line(field: str) -> dict[str, str]:
        return {tongue: filled(rng.choice(row[field][tongue]), n) for n, tongue in enumerate(LANGUAGES)}

    topic = {tongue: filled(row["topic"], n) for n, tongue in enumerate(LANGUAGES)}
    new = line("new")
    lines = {
        "earlier": line("old"),
        "outright": new,
        "implied": new,
        "beside": line("near"),
        "same": line("old"),
    }
    return Example(topic, lines)


# ---- prompts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seed:
    """What a text shall be about."""

    topic: str  # in English, to group by
    words: str  # the first line of its prompt
    tongue: str


def seeds(count: int, rng: random.Random, rows: Sequence[Mapping[str, Any]]) -> list[Seed]:
    """Draw seeds, half of each language, one in four about the topic of a scene."""
    return [_seed(LANGUAGES[number % 2], rng, rows) for number in range(count)]


def _seed(tongue: str, rng: random.Random, rows: Sequence[Mapping[str, Any]]) -> Seed:
    side, words = LANGUAGES.index(tongue), _WORDS[tongue]
    name = rng.choice(pairs.names())[side]
    if tongue == "en" and rng.random() < 0.3:
        topic = rng.choice(rows)["topic"]
        key, about = topic, re.sub(r"\{\w+\}", name, topic)
    else:
        chosen = rng.choice(pairs.topics())
        key, about = chosen.names["en"], chosen.names[tongue]
        chance = rng.random()
        if chance < 0.7:
            about = words["of"].format(a=about, n=name)
        if chance < 0.3:
            about += (
                f" ({rng.choice(_JOBS[tongue])})" if tongue == "en" else f"（{rng.choice(_JOBS[tongue])}）"
            )
    kind = rng.choice(list(_KINDS))
    size = rng.choices(range(4), (5, 3, 1, 1))[0]
    form = [kind if tongue == "en" else _KINDS[kind], _COUNTS[tongue][size]]
    if rng.random() < 0.5:
        form.append(rng.choice(_TONES[tongue]))
    return Seed(key, _head(tongue, about, form), tongue)


def _head(tongue: str, about: str, form: Sequence[str]) -> str:
    words = _WORDS[tongue]
    return f"{words['topic']}{words['colon']}{about} | {', '.join(form)}\n{words['text']}{words['colon'].rstrip()}"


def text_header(tongue: str, known: Sequence[Example], rng: random.Random) -> str:
    """Return examples of texts."""
    blocks = []
    for example in rng.sample(known, min(4, len(known))):
        text = example.lines["earlier"][tongue]
        size = min(4, max(1, len(re.findall(r"[.。!?！？](?:\s|$)|。(?!$)", text))))
        kind = example.kind if tongue == "en" else _KINDS[example.kind]
        blocks.append(
            _block(_head(tongue, example.topic[tongue], (kind, _COUNTS[tongue][size - 1])), text, tongue)
        )
    return "".join(blocks)


def _block(head: str, text: str, tongue: str) -> str:
    return f"{head}{' ' if tongue == 'en' else ''}{text}\n\n"


def line_header(
    role: str, one: str, two: str, known: tuple[list[Example], list[Example]], rng: random.Random
) -> str:
    """Return examples of a line: earlier texts in one language, lines in the same or the other one."""
    whole, short = known
    chosen = rng.sample(whole, 3)
    # A new line of a scene often only implies the change.
    if role in short[0].lines and rng.random() < (0.4 if role == "outright" else 0.8):
        chosen = [*rng.sample(short, 3), *rng.sample(whole, 1)]
    rng.shuffle(chosen)
    return "".join(
        _block(line_head(role, example.lines["earlier"][one], one, two), example.lines[role][two], two)
        for example in chosen
    )


def line_head(role: str, earlier: str, one: str, two: str) -> str:
    """Return the prompt for a line about a text."""
    first = _WORDS[one]
    return f"{first['earlier']}{first['colon']}{earlier}\n{ASKS[role][two]}{_WORDS[two]['colon'].rstrip()}"


# ---- checks -------------------------------------------------------------------------------------------------------


def fault(text: str, tongue: str, source: str) -> str:
    """Return why a line is dropped: "short", "repeats", "copies", "mixes languages", "is a prompt"; or ""."""
    found = units(text)
    if len(found) < 4 or len(text) > 480:
        return "length"
    if _LABELS.search(text):
        return "is a prompt"
    if found == units(source):
        return "copies"
    grams = Counter(zip(found, found[1:], found[2:], strict=False))
    if grams and max(grams.values()) > 2 + len(found) // 40:
        return "repeats"
    han = sum("\u3400" <= char <= "\u9fff" for char in text)
    if (tongue == "en" and han) or (tongue == "zh" and han < 0.35 * len(text.replace(" ", ""))):
        return "mixes languages"
    return ""


def allowed(tokenizer: Any, tongue: str) -> tuple[np.ndarray, list[int]]:
    """Return the tokens that a text of a language may have, and those that end a line."""
    plain = _PLAIN if tongue == "en" else _CHINESE
    decoded = [tokenizer.decode([number]) for number in range(tokenizer.get_vocab_size())]
    fits = [
        number for number, text in enumerate(decoded) if text and "\ufffd" not in text and plain.match(text)
    ]
    return np.array(fits), [number for number in fits if "\n" in decoded[number]]


# ---- the run ------------------------------------------------------------------------------------------------------


class Engine:
    """One run. Batches of similar length, until the time is over."""

    def __init__(
        self, folder: Path, out: Path, config: EngineConfig, benchmarks: Benchmarks, device: str, log: Any
    ) -> None:
        self.config, self.log, self.rng = config, log, random.Random(config.seed)
        self.benchmarks = benchmarks
        self.network, self.tokenizer = language.open_folder(folder, device)
        self.allowed = {tongue: allowed(self.tokenizer, tongue) for tongue in LANGUAGES}
        self.fill = self.tokenizer.encode("\n").ids
        self.known = examples(self.rng)
        self.out = (out / "written.jsonl").open("a", encoding="utf-8")
        self.counts: Counter[str] = Counter()
        self.tokens, self.begin = 0, time.monotonic()
        self.texts: list[dict[str, Any]] = []

    def over(self, share: float = 1.0) -> bool:
        """Return whether a share of the time is over."""
        return time.monotonic() - self.begin > share * self.config.seconds

    def run(self) -> None:
        """Write texts, then lines about them and about those of scenes, then questions."""
        for row in scene_texts(self.rng):
            self._keep(row)
        drawn = seeds(self.config.texts, self.rng, scene_rows())
        parts = [[seed for seed in drawn if seed.tongue == tongue] for tongue in LANGUAGES]
        batches = [(t, part) for t, group in zip(LANGUAGES, parts, strict=True) for part in self._cut(group)]
        self.rng.shuffle(batches)
        for tongue, part in batches:
            if self.over(self.config.texts_share):
                break
            self._texts(tongue, part)
        self.log("texts", len(self.texts))
        for number, (role, share) in enumerate(ROUNDS):
            self._round(role, number, share)
        self.log("written", dict(self.counts))

    def _cut(self, items: Sequence[Any]) -> Iterator[Sequence[Any]]:
        for start in range(0, len(items), self.config.rows):
            yield items[start : start + self.config.rows]

    def _texts(self, tongue: str, part: Sequence[Seed]) -> None:
        header = text_header(tongue, self.known[0], self.rng)
        for seed, text in zip(
            part,
            self._write(header, [seed.words for seed in part], tongue, self.config.text_tokens),
            strict=True,
        ):
            why = self._fault(text, tongue, seed.words)
            self.counts[f"text {tongue}{': ' if why else ''}{why}"] += 1
            if not why:
                self._keep({"role": "text", "lang": tongue, "topic": seed.topic, "text": text})

    def _keep(self, text: Mapping[str, Any]) -> None:
        row = {"id": len(self.texts), **text}
        self.texts.append(row)
        self._save(row)

    def _round(self, role: str, number: int, share: float = 1.0) -> None:
        ordered = defaultdict(list)
        for row in sorted(self.texts, key=lambda row: len(row["text"])):
            if _share(row["id"], 100 + number) >= share:
                continue
            crossed = role not in _QUESTIONS and _share(row["id"], number) < self.config.crossed
            two = LANGUAGES[1 - LANGUAGES.index(row["lang"])] if crossed else row["lang"]
            ordered[row["lang"], two].append(row)
        batches = [(key, part) for key, rows in ordered.items() for part in self._cut(rows)]
        self.rng.shuffle(batches)
        for (one, two), part in batches:
            if self.over():
                return
            header = line_header(role, one, two, self.known, self.rng)
            heads = [line_head(role, row["text"], one, two) for row in part]
            found = self._write(header, heads, two, self.config.line_tokens)
            for row, text in zip(part, found, strict=True):
                why = self._fault(text, two, row["text"])
                self.counts[f"{role}{': ' if why else ''}{why}"] += 1
                if not why:
                    self._save({"id": row["id"], "role": role, "lang": two, "text": text})
        self.log(
            f"{role}: {self.counts[role]} lines, {self.tokens / (time.monotonic() - self.begin):.0f} tokens/s"
        )

    def _fault(self, text: str | None, tongue: str, source: str) -> str:
        if text is None:
            return "unfinished"
        return fault(text, tongue, source) or ("in a benchmark" if self.benchmarks.verdict(text) else "")

    def _save(self, row: Mapping[str, Any]) -> None:
        self.out.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _write(self, header: str, heads: Sequence[str], tongue: str, limit: int) -> list[str | None]:
        """Continue prompts. None stands for a line without an end.

        A batch that fails, for want of memory perhaps, is tried in halves; a small one is left out.
        """
        begun = time.monotonic()
        ids = [found.ids for found in self.tokenizer.encode_batch(list(heads))]
        longest = max(map(len, ids))
        # Empty lines before the last prompt make all of one length.
        rows = np.array([self.fill * (longest - len(row)) + row for row in ids])
        fits, stop = self.allowed[tongue]
        config = self.config
        sampling = Sampling(config.temperature, config.least, limit, config.chunk)
        try:
            writer = Writer(self.network, fits, stop, sampling)
            found = writer.write(self.tokenizer.encode(header).ids, rows)
        except RuntimeError as error:
            self.counts["failed batch"] += 1
            self.log("a batch failed:", str(error).splitlines()[0][:200])
            torch.cuda.empty_cache()
            if len(heads) < 256:
                return [None] * len(heads)
            half = len(heads) // 2
            parts = heads[:half], heads[half:]
            return [text for part in parts for text in self._write(header, part, tongue, limit)]
        self.tokens += sum(map(len, found))
        self.out.flush()
        if self.counts["batch"] % 10 == 0:
            self.log(f"batch of {len(heads)} prompts, {longest} tokens: {time.monotonic() - begun:.1f} s")
        self.counts["batch"] += 1
        texts = self.tokenizer.decode_batch(found)
        return [
            " ".join(text.split()) if len(row) < limit else None
            for row, text in zip(found, texts, strict=True)
        ]


def _share(number: int, salt: int) -> float:
    """Return a number from 0 to 1 that depends on the arguments alone."""
    return random.Random(number * 31 + salt).random()


def run(folder: Path, out: Path, config: EngineConfig, benchmarks: Benchmarks, device: str, log: Any) -> None:
    """Write `written.jsonl` to `out` with the model in `folder`. Text of the benchmarks is dropped."""
    engine = Engine(folder, out, config, benchmarks, device, log)
    log("the model is ready;", {k: len(v[0]) for k, v in engine.allowed.items()}, "tokens may be used")
    try:
        engine.run()
    finally:
        engine.out.close()
        (out / "counts.json").write_text(json.dumps(dict(engine.counts), indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Read what was written. A row that was cut off is left out."""
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows
