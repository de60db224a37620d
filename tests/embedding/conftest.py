"""The bundled model, if there is one, and a tiny model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_model

from memoriter.embedding.local import LocalEmbedder
from memoriter.embedding.lookup import bundled_model

# Read during collection, because the environment is cleared while tests run.
NAMED = os.environ.get("MEMORITER_TEST_MODEL")


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The model that MEMORITER_TEST_MODEL names, or the bundled one."""
    folder = Path(NAMED) if NAMED else bundled_model()
    assert folder, "the package contains no model"
    return folder


@pytest.fixture(scope="session")
def real(model_folder: Path) -> Iterator[LocalEmbedder]:
    embedder = LocalEmbedder(model_folder, threads=2)
    yield embedder
    embedder.close()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    tiny_model.write(folder)
    tiny_model.write_manifest(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Iterator[LocalEmbedder]:
    embedder = LocalEmbedder(tiny_folder, threads=2)
    yield embedder
    embedder.close()
