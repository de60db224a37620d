"""Where sqlite-vec's extension is, and how it is loaded. It runs no query."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import apsw

from memoriter.errors import StoreError


def load_vec0(connection: apsw.Connection) -> None:
    """Give a connection the vec0 tables. Extensions can be loaded during this call only."""
    library = _library()
    connection.enable_load_extension(True)
    try:
        connection.load_extension(library)
    except apsw.ExtensionLoadingError as error:
        raise StoreError(f"sqlite-vec cannot be loaded ({error}); use the vector engine 'scan'") from error
    finally:
        connection.enable_load_extension(False)


def _library() -> str:
    # Importing sqlite_vec would import numpy with it; only its place is wanted.
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise StoreError("the vector engine sqlite-vec is not installed: pip install 'memoriter[sqlite-vec]'")
    return str(Path(spec.origin).parent / "vec0")
