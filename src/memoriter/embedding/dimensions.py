"""The dimensions of a model that is not known: the server is asked once, with one text, and the answer is stored."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from memoriter.embedding.remote import call
from memoriter.errors import EmbedderUnavailable, EmbeddingError, WriteError
from memoriter.files.state import read_state, write_state

if TYPE_CHECKING:
    from memoriter.embedding.protocol import EmbedderSpec
    from memoriter.embedding.remote import Service

#: The memory cannot open before the server has answered, so this is short.
ASK_S = 10.0


def dimensions_of(spec: EmbedderSpec, connect: Callable[[EmbedderSpec], Service]) -> int:
    """Return the dimensions of the model's vectors. Raises `EmbedderUnavailable` if the server does not answer."""
    name = f"{spec.provider} {spec.base_urls.get(spec.provider, '')} {spec.model}"
    stored = read_state(spec.dimensions_file) if spec.dimensions_file else {}
    known = stored.get(name)
    if isinstance(known, int):
        return known
    dimensions = _ask(spec, connect)
    if spec.dimensions_file:
        with suppress(WriteError):  # the server is asked again next time
            write_state(spec.dimensions_file, {**stored, name: dimensions})
    return dimensions


def _ask(spec: EmbedderSpec, connect: Callable[[EmbedderSpec], Service]) -> int:
    service = connect(replace(spec, dimensions=1))  # any number will do: the answer is only counted
    try:
        rows = call(service, lambda: service.vectors(["memoriter"], "document", ASK_S, 0))
        return len(rows[0])
    except EmbeddingError as error:
        raise EmbedderUnavailable(
            f"the server could not be asked for the dimensions of {spec.model!r}, and embedding.dimensions is not "
            f"set: {error}"
        ) from error
    finally:
        service.close()
