"""The contract of every embedder. Add an embedder to `EMBEDDERS` to run these tests with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoriter.embedding import Batched, Embedder
from memoriter.embedding.guarded import Guarded
from memoriter.testing import FailingEmbedder, HashEmbedder

EMBEDDERS: dict[str, Callable[[pytest.FixtureRequest], Embedder]] = {
    "hash": lambda _: HashEmbedder(),
    "failing later": lambda _: FailingEmbedder(after=10_000, dims=16),
    "tiny local": lambda request: request.getfixturevalue("tiny"),
    "local": lambda request: request.getfixturevalue("real"),
    "batched": lambda _: Batched(HashEmbedder(), items=3, tokens=64),
    "guarded": lambda _: Guarded(HashEmbedder()),
}

TEXTS = ["The database backup runs at night.", "数据库备份每晚运行。", "", "GitHub备份", "x9", " \n\t"]


@pytest.fixture(scope="module", params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return EMBEDDERS[request.param](request)


def test_rows_are_float32_with_the_dimensions_of_the_identity(embedder: Embedder) -> None:
    rows = embedder.embed(TEXTS)
    assert (rows.shape, rows.dtype) == ((len(TEXTS), embedder.identity.dimensions), np.float32)


def test_rows_have_length_one_and_rows_of_blank_texts_are_zero(embedder: Embedder) -> None:
    norms = np.linalg.norm(embedder.embed(TEXTS), axis=1)
    expected = [float(bool(text.strip())) for text in TEXTS]
    np.testing.assert_allclose(norms, expected, atol=1e-5)


def test_equal_texts_have_equal_rows_at_any_position(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    alone = np.concatenate([embedder.embed([text]) for text in TEXTS])
    backwards = embedder.embed(TEXTS[::-1])[::-1]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, backwards)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, embedder.identity.dimensions)


def test_a_query_has_one_vector_of_the_same_dimensions(embedder: Embedder) -> None:
    vector = embedder.embed_query("When does the backup run?")
    assert (vector.shape, vector.dtype) == ((embedder.identity.dimensions,), np.float32)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert not embedder.embed_query("").any()


def test_a_very_long_text_has_a_vector(embedder: Embedder) -> None:
    text = "数据库备份 the database backup runs at night. " * 4_000
    assert np.linalg.norm(embedder.embed([text])) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(embedder.embed_query(text)) == pytest.approx(1, abs=1e-5)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_text_has_a_valid_vector(embedder: Embedder, text: str) -> None:
    rows = np.stack([embedder.embed([text])[0], embedder.embed_query(text)])
    assert np.isfinite(rows).all()
    assert all(norm == pytest.approx(1, abs=1e-5) or norm == 0 for norm in np.linalg.norm(rows, axis=1))


def test_texts_with_common_words_are_closer(embedder: Embedder) -> None:
    near, far = embedder.embed(["the database backup runs at night", "apple pie with cinnamon"])
    query = embedder.embed_query("database backup at night")
    assert near @ query > far @ query


def test_the_identity_is_complete(embedder: Embedder) -> None:
    identity = embedder.identity
    assert identity == embedder.identity
    assert identity.provider
    assert identity.model
    assert identity.dimensions > 0
