"""Reading, cleaning and joining of the sources."""

from __future__ import annotations

import lzma
import random
from pathlib import Path

import pytest

from lab.training import corpus
from lab.training.config import LEFT_OUT, DataConfig


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("sgd", "Mia: Playing I like it on TV", "Playing I like it on TV"),
        ("smile", "用户：我明白了，谢谢你。", "我明白了，谢谢你。"),
        ("lctt", "大公司们为什么要重复造轮子 ###", "大公司们为什么要重复造轮子"),
        ("lctt", "[#]: collector: (someone)", ""),
        ("react", "What's next? {/whats-next/}", "What's next?"),
        ("mdn_en", "ok", ""),
        ("cedict", "前传", "前传"),
    ],
)
def test_clean(source: str, text: str, expected: str) -> None:
    assert corpus.clean(source, text) == expected


def test_length_counts_han_characters_and_words() -> None:
    assert corpus.length("我昨天去了海边") == 7
    assert corpus.length("we went home") == 3


def test_joined_stays_within_its_bounds() -> None:
    config = DataConfig(long_min=20, long_max=40)
    texts = ["one two three four five six seven"] * 30
    stretches = list(corpus.joined(texts, config, random.Random(1)))
    assert stretches
    for stretch in stretches:
        assert 20 <= sum(corpus.length(texts[i]) for i in stretch) <= 40
        assert stretch == list(range(stretch[0], stretch[-1] + 1))


def test_read_skips_excluded_sources(tmp_path: Path) -> None:
    doubtful = next(iter(LEFT_OUT))
    path = tmp_path / "pairs.tsv.xz"
    with lzma.open(path, "wt", encoding="utf-8") as out:
        out.write(f"{doubtful}\tsome English text\t一些中文的文字\n")
        out.write("tatoeba\tI am very tired.\t我很累了。\n")
    assert list(corpus.read(path, DataConfig())) == [corpus.Line("tatoeba", "I am very tired.", "我很累了。")]
