"""Stored vectors are finite and have length one or zero."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from memoriter.embedding.guarded import clean, validate
from memoriter.errors import EmbeddingError


@pytest.mark.requirement("B5")
def test_non_finite_numbers_become_zero_and_rows_are_normalised() -> None:
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
    ("matrix", "message"),
    [
        ([[1.0, 2.0]], "the embedder returned 1 vectors for 2 texts"),
        ([[1.0], [2.0]], "the embedder returned vectors with 1 dimensions instead of 2"),
        ([1.0, 2.0], "the embedder returned an array of shape (2,) instead of one vector per text"),
        ([[1.0, 2.0], [1.0]], "the embedder returned vectors of different lengths"),
        ([["a", "b"], ["c", "d"]], "the embedder returned <U1 instead of numbers"),
        (None, "the embedder returned object instead of numbers"),
    ],
)
def test_anything_but_one_vector_per_text_is_rejected(matrix: object, message: str) -> None:
    with pytest.raises(EmbeddingError) as caught:
        validate(matrix, 2, 2)
    assert str(caught.value) == message


def test_no_texts_have_no_vectors() -> None:
    assert validate([], 0, 3).shape == (0, 3)
