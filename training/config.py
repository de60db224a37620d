"""Everything that can be set, in one place, as frozen dataclasses.

The defaults are the configuration of the committed weights; `TOY` is the same pipeline at a size
that a CPU finishes in about a minute.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

# Sources left out although the data files carry them, with the reason.
LEFT_OUT: dict[str, str] = {
    "vue": "no licence file was found for the Chinese translation",
    "friendsqa": "transcripts of a television series, which the repository's licence cannot cover",
}

# Documents: neighbouring lines are paragraphs of one text.
DOCUMENTS = ("lctt", "javaguide", "howtocook", "k8s_en", "mdn_en", "drcd", "counselchat")
# Dialogues: neighbouring lines are turns of one conversation.
DIALOGUES = (
    "sgd", "taskmaster", "topicalchat", "qmsum", "xpersona",
    "smile", "cpsycoun", "emollm", "kdconv", "crosswoz",
)  # fmt: skip
# Parallel documents: both sides can be joined, paragraph by paragraph.
PARALLEL_DOCUMENTS = ("k8s", "mdn", "react")


@dataclass(frozen=True)
class DataConfig:
    """What is read and how it is cut and joined."""

    seed: int = 20261115
    max_lines: int = 0  # per file; 0 = all
    # Lengths are in units of `corpus.length`: about one token each.
    long_min: int = 150
    long_max: int = 450
    long_share: float = 1.0  # share of the possible long texts that are kept
    shingle: int = 8  # words or Han characters in one shingle of the overlap check
    near_duplicate: float = 0.5  # share of a line's shingles found in one benchmark
    restatements: int = 30_000
    keyword_queries: int = 30_000


@dataclass(frozen=True)
class StudentConfig:
    """The shape of the student."""

    layers: int = 5
    hidden: int = 384
    heads: int = 12
    max_length: int = 512
    english_pieces: int = 22_500


@dataclass(frozen=True)
class ListConfig:
    """Ranked candidate lists that the cross-encoder scores."""

    queries: int = 160_000
    parallel_queries: int = 50_000
    size: int = 16
    chunk: int = 1_024  # queries mined at a time
    max_tokens: int = 320  # of a document in front of the cross-encoder
    remine_queries: int = 30_000
    remine_at: float = 0.45  # share of the steps after which the student itself mines


@dataclass(frozen=True)
class TrainConfig:
    """One training run."""

    seed: int = 7
    steps: int = 1_700
    warmup: int = 200
    learning_rate: float = 6e-4
    final_rate: float = 0.02  # of the learning rate, at the last step
    weight_decay: float = 0.01
    clip: float = 1.0
    ema: float = 0.998
    temperature: float = 0.05
    mono_en: int = 768  # texts a step: distillation
    mono_zh: int = 1_024
    long: int = 48  # long texts a step and language
    pairs: int = 640  # parallel pairs a step
    asks: int = 320  # natural query/text pairs a step
    lists: int = 88  # English lists a step
    parallel_lists: int = 64  # lists whose sides may be Chinese
    carry_chinese: bool = True  # False: parallel lists stay English
    use_lists: bool = True
    use_long: bool = True
    compile: bool = True  # on a GPU
    weights: dict[str, float] = field(
        default_factory=lambda: {
            "target_en": 1.5,
            "target_zh": 1.0,
            "target_pair": 1.5,
            "spread_en": 1.0,
            "spread_zh": 1.2,
            "spread_pair": 0.6,
            "pair": 0.4,
            "ask": 0.4,
            "list": 0.7,
            "list_parallel": 0.7,
        }
    )


@dataclass(frozen=True)
class Config:
    """The whole pipeline."""

    data: DataConfig = field(default_factory=DataConfig)
    student: StudentConfig = field(default_factory=StudentConfig)
    lists: ListConfig = field(default_factory=ListConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as plain values, for logs and the manifest."""
        return asdict(self)


FINAL = Config()
TOY = Config(
    data=DataConfig(max_lines=240, long_max=220, restatements=40, keyword_queries=40),
    student=StudentConfig(layers=2, english_pieces=3_000, max_length=64),
    lists=ListConfig(queries=40, parallel_queries=20, size=8, chunk=16, remine_queries=10, max_tokens=32),
    train=TrainConfig(
        steps=8, warmup=2, mono_en=16, mono_zh=16, long=2, pairs=16, asks=8, lists=4, parallel_lists=4
    ),
)

# Short runs of one length that differ in one thing each.
SHORT = TrainConfig(
    steps=600,
    warmup=80,
    ema=0.99,
    mono_en=384,
    mono_zh=384,
    long=24,
    pairs=320,
    asks=160,
    lists=48,
    parallel_lists=32,
)
ABLATIONS: dict[str, Config] = {
    "base": replace(FINAL, train=SHORT),
    "no-lists": replace(FINAL, train=replace(SHORT, use_lists=False)),
    "no-carried": replace(FINAL, train=replace(SHORT, carry_chinese=False)),
    "no-long": replace(FINAL, train=replace(SHORT, use_long=False)),
    "six-layers": replace(FINAL, student=StudentConfig(layers=6), train=SHORT),
}
CONFIGS: dict[str, Config] = {"final": FINAL, "toy": TOY, **ABLATIONS}
