"""Traditional and simplified Chinese have the same tokens. Displayed text stays as written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.text import query_terms, snippet, tokenize
from memoriter.text.tokens import fold_variants, to_simplified

PAIRS = [
    ("資料庫備份", "资料库备份"),
    ("聯絡電話與發票", "联络电话与发票"),
    ("週末遊臺北", "周末游台北"),
    ("頭髮、乾淨、幹部", "头发、干净、干部"),
    ("裏面和裡面", "里面和里面"),
    ("瞭解後回覆妳", "了解后回复你"),
]


@pytest.mark.parametrize(("traditional", "simplified"), PAIRS)
def test_traditional_and_simplified_text_give_the_same_tokens(traditional: str, simplified: str) -> None:
    assert tokenize(traditional) == tokenize(simplified)
    assert query_terms(traditional) == query_terms(simplified)


def test_question_words_are_removed_in_both_scripts() -> None:
    assert (
        query_terms("為什麼沒有備份資料庫呢")
        == query_terms("为什么没有备份资料库呢")
        == ["备份", "份资", "资料", "料库"]
    )


def test_terms_as_written_keep_their_characters() -> None:
    assert query_terms("備份，１號", as_written=True) == ["備份", "1", "號"]


@given(st.text())
def test_a_folded_text_is_as_long_as_before_and_folding_it_again_changes_nothing(text: str) -> None:
    once = fold_variants(text)
    assert len(once) == len(text)
    assert fold_variants(once) == once


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("資料庫的覆蓋範圍", "资料库的复盖范围"),
        ("著名的覆盖范围", "著名的覆盖范围"),
        ("backup of 2026", "backup of 2026"),
        ("東京の図書館はいつ閉まる？", "東京の図書館はいつ閉まる？"),
        ("電車データ", "電車データ"),
        ("", ""),
    ],
)
def test_only_a_text_in_traditional_characters_is_simplified(text: str, simple: str) -> None:
    assert to_simplified(text) == simple


def test_every_character_of_the_table_is_in_one_group() -> None:
    table = Path(__file__).parents[2] / "src/memoriter/text/variants.txt"
    groups = [line for line in table.read_text("utf-8").splitlines() if not line.startswith("#")]
    characters = "".join(groups)
    assert len(set(characters)) == len(characters) > 5000
    assert [fold_variants(group) for group in groups] == [group[0] * len(group) for group in groups]


def test_a_snippet_is_cut_around_the_original_words() -> None:
    text = "天氣很好。" * 40 + "資料庫每晚備份。" + "天氣很好。" * 40
    assert "資料庫每晚備份" in snippet(text, query_terms("资料库备份"), 40)


@pytest.mark.parametrize("query", ["资料库密码", "資料庫密碼"])
def test_a_note_is_found_in_both_scripts_and_shown_as_written(
    query: str, open_memory: Callable[..., Memory], note: Callable[[str, str], Path]
) -> None:
    note("memory/traditional.md", "資料庫的密碼放在保險箱裡。\n")
    note("memory/simplified.md", "资料库的密码放在保险箱里。\n")
    for number in range(8):
        note(f"memory/{number}.md", f"今天下雨，第 {number} 天。\n")
    memory = open_memory(embedding__provider="none")
    memory.sync()
    found = {hit.path: hit.snippet for hit in memory.search(query).hits}
    assert found == {
        "memory/traditional.md": "資料庫的密碼放在保險箱裡。",
        "memory/simplified.md": "资料库的密码放在保险箱里。",
    }
