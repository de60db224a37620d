"""Vectors that may be stored are finite and of length one or zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from memoriter.embedding.vectors import clean, validate
from memoriter.errors import EmbeddingError


def test_what_is_not_finite_becomes_zero_and_the_rest_is_normalised() -> None:
    rows = clean([[3, 4, np.nan], [np.inf, 0, -2], [0, 0, 0], [-np.inf, np.nan, np.inf]])
    np.testing.assert_allclose(rows, [[0.6, 0.8, 0], [0, 0, -1], [0, 0, 0], [0, 0, 0]], atol=1e-7)
    assert rows.dtype == np.float32


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(1, 6)), elements=st.floats(width=64))
)
def test_any_numbers_become_rows_of_length_one_or_zero(matrix: np.ndarray) -> None:
    rows = clean(matrix)
    assert np.isfinite(rows).all()
    kept = (np.nan_to_num(matrix, nan=0, posinf=0, neginf=0) != 0).any(axis=1)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), kept.astype(float), atol=1e-5)


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[1.0, 2.0]], "the embedder returned 1 vectors for 2 texts"),
        ([[1.0], [2.0]], "the embedder returned vectors of 1 dimensions, but 2 were announced"),
        ([1.0, 2.0], "the embedder returned an array of shape (2,), not one vector a text"),
        ([[1.0, 2.0], [1.0]], "the embedder returned vectors of different lengths"),
        ([["a", "b"], ["c", "d"]], "the embedder returned <U1 where numbers were expected"),
        (None, "the embedder returned object where numbers were expected"),
    ],
)
def test_what_is_not_a_vector_a_text_is_refused_in_one_sentence(matrix: object, sentence: str) -> None:
    with pytest.raises(EmbeddingError) as caught:
        validate(matrix, 2, 2)
    assert str(caught.value) == sentence


def test_no_texts_have_no_vectors() -> None:
    assert validate([], 0, 3).shape == (0, 3)
