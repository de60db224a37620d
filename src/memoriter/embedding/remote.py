"""A vendor's service as an embedder: what all services have in common.

A provider's module calls the vendor's client (`Service`), which retries and times out. This module prepares the texts
(redacted, not blank, not too long) and checks the answers.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from memoriter.embedding.guarded import validate_remote
from memoriter.embedding.transport import Failure, to_error
from memoriter.errors import EmbedderUnavailable, EmbeddingError
from memoriter.records import Identity
from memoriter.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

Purpose: TypeAlias = Literal["query", "document"]
T = TypeVar("T")

#: Retries of a call with documents. With the clients' exponential pauses they span some ten seconds, enough for a short
#: outage or a rate limit. What is still missing waits for the next sync.
MAX_RETRIES = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one call to a provider."""

    items: int
    tokens: int
    bytes: int = 4 * 1024 * 1024
    #: Tokens of one text. Longer texts are cut.
    text_tokens: int = 8192


class Service(Protocol):
    """A vendor's client."""

    #: Never shown.
    key: str
    #: The environment variable of the key.
    variable: str

    @property
    def identity(self) -> Identity: ...

    @property
    def limits(self) -> Limits: ...

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Any:
        """Return one row per text, in order. Raise whatever the client raises. ``timeout_s`` is for each attempt."""
        ...

    def failure(self, error: Exception) -> Failure:
        """Return what the client's exception says."""
        ...

    def close(self) -> None: ...


class Remote:
    """An embedder at a provider. Documents are retried; queries are not, because a search waits for them."""

    def __init__(
        self,
        service: Service,
        *,
        redacts: bool = True,
        query_s: float = 10.0,
        batch_s: float = 120.0,
        retries: int = 0,
    ) -> None:
        self.service = service
        self._redacts = redacts
        self._query_s = query_s
        self._batch_s = batch_s
        self._retries = retries

    def without_retry(self) -> Remote:
        """Return the same embedder for documents that a search waits for."""
        limit_s = self._query_s
        return Remote(self.service, redacts=self._redacts, query_s=limit_s, batch_s=limit_s)

    @property
    def identity(self) -> Identity:
        """The identity of the service."""
        return self.service.identity

    @property
    def limits(self) -> Limits:
        """Limits of one call."""
        return self.service.limits

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of documents."""
        return self._run(texts, "document", self._batch_s, self._retries)

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of a query."""
        vector: Matrix = self._run([text], "query", self._query_s, 0)[0]
        return vector

    def close(self) -> None:
        """Close the client's connections."""
        self.service.close()

    def prepare(self, text: str) -> str:
        """Return the text as it may leave the machine: redacted, valid UTF-8, not too long."""
        from memoriter.text.redaction import redact  # loads many patterns, only needed for remote providers

        # A lone surrogate, as in a broken file, has no UTF-8 form and would stop the client.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return shorten(redact(text) if self._redacts else text, self.limits.text_tokens)

    def _run(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Matrix:
        import numpy as np

        rows = np.zeros((len(texts), self.identity.dimensions), dtype=np.float32)
        filled = [index for index, text in enumerate(texts) if text.strip()]
        if filled:
            prepared = [self.prepare(texts[index]) for index in filled]
            vectors = call(self.service, lambda: self.service.vectors(prepared, purpose, timeout_s, retries))
            rows[filled] = validate_remote(vectors, len(prepared), self.identity.dimensions)
        return rows


def call(service: Service, request: Callable[[], T]) -> T:
    """Call a vendor's client and turn its exceptions into EmbeddingError."""
    try:
        return request()
    except Exception as error:  # noqa: BLE001 - vendors' clients may raise anything
        failure = to_error(
            service.identity.provider,
            error,
            service.failure(error),
            key=service.key,
            variable=service.variable,
        )
    # Outside the handler, so that the vendor's exception, which may contain the key, is not chained to it.
    raise failure


def by_index(numbered: Iterable[tuple[object, Any]], count: int) -> list[Any]:
    """Return vectors sorted by their index. Each index from 0 to count - 1 must appear once."""
    pairs = list(numbered)
    numbers = [number for number, _ in pairs]
    if len(pairs) != count:
        raise EmbeddingError(f"the provider returned {len(pairs)} vectors for {count} texts")
    if any(not isinstance(number, int) for number in numbers) or set(numbers) != set(range(count)):
        raise EmbeddingError(f"the provider returned wrong indexes for {count} vectors: {numbers[:8]}")
    return [row for _, row in sorted(pairs, key=lambda pair: int(str(pair[0])))]


def check_model(requested: str, answered: object) -> None:
    """Raise EmbeddingError if the provider names another model than the requested one."""
    if not isinstance(answered, str) or not answered:
        return
    one, other = _bare_name(requested), _bare_name(answered)
    if one not in other and other not in one:
        raise EmbeddingError(
            f"the provider answered with vectors of the model {answered[:80]!r} instead of {requested!r}; "
            "if you want that model, set embedding.model to it"
        )


def _bare_name(model: str) -> str:
    return model.lower().replace("\\", "/").rpartition("/")[2].removesuffix(":latest")


def shorten(text: str, tokens: int) -> str:
    """Return the beginning of the text, up to about this many tokens."""
    while (cost := estimate_tokens(text)) > tokens:
        text = text[: max(1, min(len(text) - 1, int(len(text) * tokens / cost)))]
    return text


def digest(**settings: object) -> str:
    """Return the part of an identity that covers all further settings, or "" when none is set."""
    given = {name: value for name, value in settings.items() if value}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest() if given else ""


class UnknownDimensions(EmbedderUnavailable):
    """The dimensions of a model are neither known nor set."""


def known_dimensions(provider: str, model: str, dimensions: int | None, known: dict[str, int]) -> int:
    """Return the dimensions of the model's vectors, without calling the provider."""
    found = dimensions or known.get(model.removesuffix(":latest"))
    if found is None:
        raise UnknownDimensions(
            f"{provider}: the number of dimensions of {model!r} is unknown; set embedding.dimensions"
        )
    return found


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def require(package: str, extra: str) -> None:
    """Raise EmbedderUnavailable with the command that helps, if a package is missing."""
    if not is_installed(package):
        raise EmbedderUnavailable(missing_extra(extra))


def client_library(package: str, extra: str) -> Any:
    """Import the vendor's package, or raise EmbedderUnavailable with the command that installs it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise EmbedderUnavailable(missing_extra(extra)) from error


def missing_extra(extra: str) -> str:
    """Return how to install a provider's client."""
    return f"its client is not installed: pip install 'memoriter[{extra}]'"
