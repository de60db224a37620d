"""The tokenizer of index and queries: examples, and properties for any text."""

from __future__ import annotations

import re
import time

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoriter.text import date_tokens, query_terms, tokenize

TOKEN_CHARACTERS = "_-./:@#+"
any_text = st.text(st.characters(codec=None)) | st.text(
    st.sampled_from(
        "aB9 _-./:@#+'’,\"\n\0年月日号的了是备份数据库ÀéßİŉΩñ한글かなカﾅ２０２６Ｇ…，🎉\u200d\ufe0f\ud800\u0301"
    )
)


def finds(query: str, document: str) -> bool:
    return not set(query_terms(query)).isdisjoint(tokenize(document))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("the backups were running slowly", ["backup", "run", "slow"]),
        ("GitHub备份", ["github", "git", "hub", "备份", "备", "份"]),
        ("ERR_CONN_42", ["err_conn_42", "err", "conn", "42"]),
        ("memory-core", ["memory-core", "memory", "core"]),
        ("src/memoriter/text", ["src/memoriter/text", "src", "memoriter", "text"]),
        ("v1.2.3", ["v1.2.3", "1.2.3", "v1"]),
        ("foo.bar()", ["foo.bar", "foo", "bar"]),
        ("user@example.org", ["user@example.org", "user", "example.org", "exampl", "org"]),
        ("camelCase", ["camelcase", "camelcas", "camel", "case"]),
        ("HTTPServer2", ["httpserver2", "http", "server"]),
        ("2026-02-08T10:30:00Z", ["2026-02-08t10:30:00z", "2026-02-08", *date_tokens("2026-02-08")]),
        ("1,000 files, 3.14, 10:30", ["1000", "file", "3.14", "10:30"]),
        ("C++ and C#", ["c++", "c#"]),
        ("Don't! It's Anna's café", ["anna", "cafe"]),
        ("and/or e.g. the IT team", ["it", "team"]),
        ("Привет हिन्दी 🎉", ["привет", "हिन्दी", "🎉"]),
        ("ＧｉｔＨｕｂ　ﾃﾞｰﾀ", ["github", "git", "hub", "デー", "ータ", "デ", "ー", "タ"]),
        ("止损", ["止损", "止", "损"]),
        ("我的猫", ["猫"]),
        ("", []),
        (" \n\t…—!?", []),
    ],
)
def test_a_text_gives_these_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("什么时候做的数据库备份？", ["做", "数据", "据库", "库备", "备份"]),
        ("我们的止损线是多少", ["止损", "损线"]),
        ("GitHub怎么备份", ["github", "git", "hub", "备份"]),
        ("喝什么茶", ["喝", "茶"]),
        ("目的是了解现在的情况", ["目的", "了解", "解现", "现在", "情况"]),
        ("What is the name of the cat?", ["name", "cat"]),
        ("backup backups BACKUP", ["backup"]),
    ],
)
def test_a_query_keeps_its_meaningful_words(text: str, terms: list[str]) -> None:
    assert query_terms(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"), [("what is it", ["what", "is", "it"]), ("怎么", ["怎么"]), ("的", ["的"])]
)
def test_a_query_of_only_stop_words_keeps_them(text: str, terms: list[str]) -> None:
    assert query_terms(text) == terms


@pytest.mark.requirement("X1")
@pytest.mark.parametrize(
    ("query", "document"),
    [
        ("数据库", "昨天我们把数据库迁移到了新的服务器"),
        ("备份", "每天凌晨用GitHub备份一次"),
        ("茶", "他送了一盒龙井茶给我"),
        ("茶", "茶叶放在柜子里"),
        ("猫", "我的猫"),
        ("err_conn_42", "It failed with ERR_CONN_42 again"),
        ("conn", "It failed with ERR_CONN_42 again"),
        ("tokens.py", "see src/memoriter/text/tokens.py"),
        ("example.org", "write to user@example.org"),
        ("1.2.3", "since v1.2.3"),
        ("github", "GitHub备份"),
        ("server", "class HTTPServer2:"),
        ("studies", "she studied"),
        ("schedule", "scheduling the meeting"),
        ("making", "we make it"),
        ("cafe", "CAFÉ"),
        ("straße", "STRASSE"),
        ("데이터", "데이터베이스 백업"),
    ],
)
def test_a_query_finds_the_document(query: str, document: str) -> None:
    assert finds(query, document)


@pytest.mark.parametrize(
    ("query", "document"), [("car", "take care"), ("even", "this evening"), ("new", "the news")]
)
def test_words_with_different_meanings_have_different_tokens(query: str, document: str) -> None:
    assert not finds(query, document)


@settings(max_examples=300, deadline=None)
@given(any_text)
def test_every_token_is_valid_for_the_index(text: str) -> None:
    for token in [*tokenize(text), *query_terms(text)]:
        assert 1 <= len(token) <= 64
        assert token == token.lower() or not token.isascii()
        assert all(char.isalnum() or char in TOKEN_CHARACTERS for char in token if char.isascii())
        assert not re.search(r'[\s"\0\ud800-\udfff]', token)


@settings(max_examples=60, deadline=None)
@given(st.lists(any_text, min_size=1, max_size=4))
def test_every_token_is_one_token_of_fts5(texts: list[str]) -> None:
    connection = apsw.Connection(":memory:")
    connection.execute(
        f"create virtual table t using fts5(x, tokenize=\"ascii tokenchars '{TOKEN_CHARACTERS}'\")"
    )
    connection.execute("create virtual table v using fts5vocab(t, instance)")
    tokens = [token for text in texts for token in tokenize(text)]
    connection.execute("insert into t values (?)", (" ".join(tokens),))
    stored = [row[0] for row in connection.execute("select term from v order by offset")]
    assert stored == tokens
    for token in set(tokens):
        assert connection.execute("select count(*) from t where t match ?", (f'"{token}"',)).fetchone() == (
            1,
        )


@settings(max_examples=200, deadline=None)
@given(any_text)
def test_a_text_finds_itself(text: str) -> None:
    tokens = set(tokenize(text))
    if tokens:
        assert tokens & set(query_terms(text))


@settings(max_examples=150, deadline=None)
@given(any_text, st.integers(1, 10))
def test_query_terms_are_distinct_bounded_and_the_same_each_time(text: str, limit: int) -> None:
    terms = query_terms(text, limit)
    assert len(terms) == len(set(terms)) <= limit
    assert terms == query_terms(text, limit)


def test_a_long_query_keeps_the_most_specific_terms() -> None:
    filler = " ".join(f"w{number}" for number in range(400))
    terms = query_terms(
        f"{filler} why does ERR_CONN_42 break the replication of the warehouse since 2026-02-08"
    )
    assert len(terms) == 64
    assert {"err_conn_42", "replication", "warehous", "@2026-02-08"} <= set(terms)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "数" * 1_000_000,
        "word " * 200_000,
        "a_" * 500_000,
        "a" + "_" * 999_999,
        "\0\"' OR (" * 100_000,
    ],
)
def test_a_query_of_a_megabyte_is_fast(text: str) -> None:
    start = time.process_time()
    assert len(query_terms(text)) <= 64
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "text",
    [
        "a" + "_" * 300_000,
        "1,000" * 60_000,
        "a.b" * 100_000,
        "May " * 75_000,
        "1月" * 150_000,
        "的" * 300_000,
    ],
)
def test_any_document_is_tokenized_in_linear_time(text: str) -> None:
    start = time.process_time()
    tokenize(text)
    assert time.process_time() - start < 30


def test_a_word_too_long_for_a_token_still_finds_itself() -> None:
    word = "Pneumono" * 20
    assert query_terms(word) == tokenize(word)
    assert query_terms(word) != query_terms(word + "x")
