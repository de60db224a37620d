"""The dimensions of a model that is not known: the server is asked once, with one text, and the answer is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.embedding.remote import call
from memoriter.errors import EmbedderUnavailable, EmbeddingError
from memoriter.files import durable

if TYPE_CHECKING:
    from memoriter.embedding.protocol import EmbedderSpec
    from memoriter.embedding.remote import Service

#: The memory cannot open before the server has answered, so this is short.
ASK_S = 10.0


def dimensions_of(spec: EmbedderSpec, connect: Callable[[EmbedderSpec], Service]) -> int:
    """Return the dimensions of the model's vectors. Raises `EmbedderUnavailable` if the server does not answer."""
    name = f"{spec.provider} {spec.base_urls.get(spec.provider, '')} {spec.model}"
    stored = _load(spec.dimensions_file)
    if name not in stored:
        stored[name] = _ask(spec, connect)
        if spec.dimensions_file:
            with suppress(OSError):  # the server is asked again next time
                durable.write(spec.dimensions_file, json.dumps(stored, indent=2).encode())
    return stored[name]


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


def _load(file: Path | None) -> dict[str, int]:
    try:
        found = json.loads(file.read_bytes()) if file else {}
        return {str(name): int(number) for name, number in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
