"""All configuration, as frozen dataclasses.

The defaults are the configuration of the committed weights; `TOY` is the same pipeline at a size
that a CPU finishes in about a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

# Sources in the data files that are not used, with the reason.
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
# Parallel documents: both languages can be joined, paragraph by paragraph.
PARALLEL_DOCUMENTS = ("k8s", "mdn", "react")


@dataclass(frozen=True)
class DataConfig:
    """Options for reading, splitting and joining texts."""

    seed: int = 20261115
    max_lines: int = 0  # per file; 0 = all
    # Lengths are in units of `corpus.length`: about one token each.
    long_min: int = 150
    long_max: int = 450
    long_share: float = 1.0  # share of the possible long texts to keep
    shingle: int = 8  # words or Han characters in one shingle of the overlap check
    near_duplicate: float = 0.5  # share of a line's shingles found in one benchmark
    restatements: int = 45_000
    keyword_queries: int = 30_000
    asked_queries: int = 60_000  # questions rephrased in the third person


@dataclass(frozen=True)
class StudentConfig:
    """The size of the student."""

    layers: int = 6
    hidden: int = 384
    heads: int = 12
    max_length: int = 512
    english_pieces: int = 22_500


@dataclass(frozen=True)
class ListConfig:
    """Candidate lists that the cross-encoder scores."""

    queries: int = 190_000
    parallel_queries: int = 50_000
    size: int = 16
    chunk: int = 1_024  # queries mined at a time
    max_tokens: int = 320  # of a document for the cross-encoder
    remine_queries: int = 45_000
    remine_at: tuple[float, ...] = (0.25, 0.55)  # shares of the steps after which the student mines


@dataclass(frozen=True)
class TrainConfig:
    """One training run."""

    seed: int = 7
    steps: int = 4_600
    warmup: int = 200
    learning_rate: float = 6e-4
    final_rate: float = 0.02  # of the learning rate, at the last step
    weight_decay: float = 0.01
    clip: float = 1.0
    ema: float = 0.999
    temperature: float = 0.05
    mono_en: int = 896  # texts per step, for distillation
    mono_zh: int = 1_024
    long_en: int = 112  # long texts per step
    long_zh: int = 64
    pairs: int = 640  # parallel pairs per step
    asks: int = 480  # pairs of query and text per step
    lists: int = 144  # English lists per step
    parallel_lists: int = 64  # lists that may be Chinese
    carry_chinese: bool = True  # False: parallel lists stay English
    use_lists: bool = True
    use_long: bool = True
    use_asked: bool = True  # questions rephrased in the third person, as queries and in lists
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
            "list": 1.0,
            "list_parallel": 0.5,
        }
    )
    # A weight at the last step, as a share of the weight at the first: the teachers' vectors
    # dominate at the beginning, ranking at the end.
    late: dict[str, float] = field(
        default_factory=lambda: {
            "target_en": 0.5,
            "target_zh": 0.7,
            "target_pair": 0.5,
            "spread_en": 0.5,
            "spread_pair": 0.5,
            "ask": 1.5,
            "list": 1.5,
            "list_parallel": 1.5,
        }
    )


@dataclass(frozen=True)
class RerankConfig:
    """The reranker: its size, its lists and its training run."""

    seed: int = 11
    layers: int = 4
    hidden: int = 384
    heads: int = 12
    rank: int = 256  # columns of the word table; a product widens them to `hidden`
    max_query: int = 64  # tokens
    max_text: int = 256
    queries: int = 190_000
    parallel_queries: int = 90_000
    held_out: int = 1_500  # lists of each kind that are only measured
    steps: int = 7_200
    warmup: int = 200
    learning_rate: float = 4e-4
    final_rate: float = 0.02
    weight_decay: float = 0.01
    clip: float = 1.0
    ema: float = 0.999
    lists: int = 224  # English lists per step
    parallel_lists: int = 192  # half of them Chinese to Chinese
    asks: int = 96  # Chinese queries with hard negatives per step
    absolute: float = 0.04  # weight of the squared distance to the teacher's scores
    asks_weight: float = 0.5
    asks_absolute: float = 0.1  # weight of the cross-entropy of each Chinese pair
    compile: bool = True


@dataclass(frozen=True)
class EngineConfig:
    """The data engine: how many texts it writes, and how."""

    seed: int = 17
    seconds: float = 430
    texts: int = 40_000  # beside the lines of scenes
    texts_share: float = 0.14  # of the time, for texts; the rest is for lines about them
    rows: int = 3_072  # prompts in a batch
    chunk: int = 512  # prompts that are read together
    text_tokens: int = 112
    line_tokens: int = 72
    crossed: float = 0.15  # share of the lines in the other language
    temperature: float = 0.85
    least: float = 0.06


@dataclass(frozen=True)
class JudgeConfig:
    """The judge of pairs: the first layers of the language model, with corrections of low rank."""

    seed: int = 19
    layers: int = 20
    rank: int = 16
    max_tokens: int = 160  # of each statement
    seconds: float = 140
    second_seconds: float = 45  # of the second round, which adds written pairs
    pairs: int = 192  # per step
    warmup: int = 30
    learning_rate: float = 2e-4
    budget: int = 65_536  # tokens that are scored together
    scenes: int = 90_000
    templates: int = 20_000
    attributes: int = 10_000


@dataclass(frozen=True)
class ReaderConfig:
    """The reader of changes: a cross-encoder that starts from the reranker and learns from the judge."""

    seed: int = 23
    layers: tuple[int, ...] = (6,)
    seconds: tuple[float, ...] = (260,)
    max_tokens: int = 128  # of each statement
    pairs: int = 3_072  # per step
    dropout: float = 0.15
    masked: float = 0.06  # share of the words that are hidden
    learning_rate: float = 3e-4
    weight_decay: float = 0.02
    warmup: float = 0.03  # share of the time
    ema: float = 0.998
    smooth: float = 0.02  # of known labels
    certain: float = 2.0  # score from which a judge that contradicts a request is believed
    sure: float = 0.5  # share of the judge's score where the label is known
    vectors: int = 128  # numbers of the judge's vector of a pair that the reader learns to tell
    thinking: float = 0.3  # weight of their squared distance
    kept: float = 0.2  # share of the weights before, if a reader is trained further
    ways: int = 8  # of filling the placeholders of a scene
    held_out: int = 8  # one scene in this many is only measured
    scenes: int = 600_000
    templates: int = 200_000
    attributes: int = 60_000
    measured: int = 3_000  # pairs of each source


@dataclass(frozen=True)
class TaughtConfig:
    """The reranker's second teacher: its lists, and the training run."""

    seed: int = 29
    corpus: int = 30_000  # queries of each language from the corpora
    crossed: int = 9_000  # queries with a text in the other language
    others: int = 110_000  # further texts of each language
    shortest: int = 12  # characters
    longest: int = 900
    size: int = 8  # candidates of a question
    asked: float = 0.38  # share of the written texts with a question, and with one that they do not answer
    asking: float = 0.33  # share of the time for questions
    tuning: float = 0.1  # share of the time for the teacher
    teacher_tokens: int = 224
    known: int = 120_000  # pairs of scenes that the teacher is tuned on
    anchors: int = 24_000  # pairs whose scores shall stay
    held_out: float = 0.015
    lists: int = 448  # per step
    shares: Mapping[str, float] = field(default_factory=lambda: {"scene": 3.0, "miss": 3.0, "topic": 1.5})
    masked: float = 0.04
    learning_rate: float = 2.5e-4
    weight_decay: float = 0.02
    absolute: float = 0.04
    ema: float = 0.998


@dataclass(frozen=True)
class Config:
    """The whole pipeline."""

    data: DataConfig = field(default_factory=DataConfig)
    student: StudentConfig = field(default_factory=StudentConfig)
    lists: ListConfig = field(default_factory=ListConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    rerank: RerankConfig = field(default_factory=RerankConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    reader: ReaderConfig = field(default_factory=ReaderConfig)
    taught: TaughtConfig = field(default_factory=TaughtConfig)

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as plain values, for logs and the manifest."""
        return asdict(self)


FINAL = Config()
TOY = Config(
    data=DataConfig(max_lines=240, long_max=220, restatements=40, keyword_queries=40, asked_queries=40),
    student=StudentConfig(layers=2, english_pieces=3_000, max_length=64),
    lists=ListConfig(queries=40, parallel_queries=20, size=8, chunk=16, remine_queries=10, max_tokens=32),
    train=TrainConfig(
        steps=8,
        warmup=2,
        mono_en=16,
        mono_zh=16,
        long_en=2,
        long_zh=2,
        pairs=16,
        asks=8,
        lists=4,
        parallel_lists=4,
    ),
    rerank=RerankConfig(
        layers=2,
        rank=16,
        max_text=48,
        queries=40,
        parallel_queries=20,
        held_out=4,
        steps=6,
        warmup=2,
        lists=4,
        parallel_lists=4,
        asks=4,
    ),
    engine=EngineConfig(seconds=4, texts=12, rows=6, chunk=4, text_tokens=8, line_tokens=8),
    judge=JudgeConfig(
        layers=2, rank=2, seconds=2, second_seconds=1, pairs=4, scenes=60, templates=60, budget=2_048
    ),
    reader=ReaderConfig(
        layers=(2, 3),
        seconds=(2, 2),
        pairs=16,
        ways=2,
        held_out=97,
        scenes=60,
        templates=60,
        measured=40,
    ),
    taught=TaughtConfig(corpus=20, crossed=4, others=40, known=60, anchors=40, lists=4, held_out=0.2),
)

# Short runs that differ in one setting each. They were made before the final weights were chosen,
# with lists that count more, and led to that choice.
_FIRST_WEIGHTS = FINAL.train.weights | {"list": 1.2, "list_parallel": 0.7}
_FIRST_LATE = FINAL.train.late | {"target_en": 0.25, "target_zh": 0.5, "target_pair": 0.25}
SHORT = TrainConfig(
    steps=600,
    warmup=80,
    ema=0.99,
    mono_en=448,
    mono_zh=512,
    long_en=56,
    long_zh=32,
    pairs=320,
    asks=240,
    lists=72,
    parallel_lists=32,
    weights=_FIRST_WEIGHTS,
    late=_FIRST_LATE,
)
_EVEN = replace(SHORT, weights=_FIRST_WEIGHTS | {"list": 0.7}, late={})
_SETTLED = replace(SHORT, weights=FINAL.train.weights, late=FINAL.train.late)
_BASE = replace(FINAL, lists=replace(FINAL.lists, remine_queries=15_000, remine_at=(0.45,)), train=SHORT)
ABLATIONS: dict[str, Config] = {
    "base": _BASE,
    "no-lists": replace(_BASE, train=replace(SHORT, use_lists=False)),
    "no-long": replace(_BASE, train=replace(SHORT, use_long=False)),
    "no-asked": replace(_BASE, train=replace(SHORT, use_asked=False)),
    "no-carried": replace(_BASE, train=replace(SHORT, carry_chinese=False)),
    "no-mining": replace(_BASE, lists=replace(FINAL.lists, remine_at=())),
    "even-weights": replace(_BASE, train=_EVEN),
    "five-layers": replace(_BASE, student=StudentConfig(layers=5), train=_SETTLED),
}

# Short runs of the reranker that differ in one setting each.
_QUICK = RerankConfig(steps=700, warmup=80, ema=0.99)
RERANK_ABLATIONS: dict[str, Config] = {
    f"rerank-{name}": replace(FINAL, rerank=quick)
    for name, quick in {
        "base": _QUICK,
        "full-table": replace(_QUICK, rank=0),
        "three-layers": replace(_QUICK, layers=3),
        "no-parallel": replace(_QUICK, parallel_lists=0),
        "no-absolute": replace(_QUICK, absolute=0.0, asks_absolute=0.0),
    }.items()
}
CONFIGS: dict[str, Config] = {
    "final": FINAL,
    "toy": TOY,
    **ABLATIONS,
    **RERANK_ABLATIONS,
}
