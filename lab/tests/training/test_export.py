"""The int8 word table."""

from __future__ import annotations

import numpy as np

from lab.training.export import by_row


def test_every_row_has_its_own_scale() -> None:
    rng = np.random.default_rng(0)
    table = (rng.normal(0, 1, (50, 16)) * rng.uniform(0.01, 10, (50, 1))).astype(np.float32)
    table[3] = 0
    whole, scale = by_row(table)
    assert whole.dtype == np.int8
    assert scale.shape == (50, 1)
    assert (np.abs(whole * scale - table) <= scale / 2 + 1e-6).all()
