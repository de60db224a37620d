"""A vendor's service as an embedder: what all of them have in common.

A provider's module says how its client is called (`Service`); here texts are made fit to leave the machine
(secrets out, nothing blank, nothing too long) and answers are held to what was asked. Retries, deadlines and
rests are wrappers around it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from memoriter.embedding import answers
from memoriter.embedding.failures import Trouble, told
from memoriter.errors import EmbedderUnavailable
from memoriter.records import Identity
from memoriter.text.measure import estimate_tokens

if TYPE_CHECKING:
    from memoriter.embedding.protocol import Matrix

Purpose: TypeAlias = Literal["query", "document"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call to a provider may hold."""

    items: int
    tokens: int
    bytes: int = 4 * 1024 * 1024
    text_tokens: int = 8192  #: of one text; what is longer is cut


class Service(Protocol):
    """A vendor's client, called in the way that this vendor wants."""

    key: str  #: never shown
    variable: str  #: where the key is set

    @property
    def identity(self) -> Identity: ...

    @property
    def limits(self) -> Limits: ...

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float) -> Any:
        """One row a text, in their order; raises whatever the client raises."""
        ...

    def trouble(self, error: Exception) -> Trouble:
        """What can be said of the client's exception."""
        ...

    def close(self) -> None: ...


class Remote:
    """An embedder at the other end of a wire."""

    def __init__(
        self, service: Service, *, redacts: bool = True, query_s: float = 10.0, batch_s: float = 120.0
    ) -> None:
        self.service = service
        self._redacts = redacts
        self._query_s = query_s
        self._batch_s = batch_s

    @property
    def identity(self) -> Identity:
        """Whose vectors these are."""
        return self.service.identity

    @property
    def limits(self) -> Limits:
        """What one call may hold."""
        return self.service.limits

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents."""
        return self._run(texts, "document", self._batch_s)

    def embed_query(self, text: str) -> Matrix:
        """The vector of a query."""
        vector: Matrix = self._run([text], "query", self._query_s)[0]
        return vector

    def close(self) -> None:
        """Close the client's connections."""
        self.service.close()

    def fit(self, text: str) -> str:
        """The text as it may leave the machine."""
        from memoriter.text.redaction import redact  # many patterns, for those alone who send texts away

        # A lone surrogate, as a broken file may hold, has no UTF-8 form and would stop the client.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return shortened(redact(text) if self._redacts else text, self.limits.text_tokens)

    def _run(self, texts: Sequence[str], purpose: Purpose, timeout_s: float) -> Matrix:
        import numpy as np

        rows = np.zeros((len(texts), self.identity.dimensions), dtype=np.float32)
        spoken = [index for index, text in enumerate(texts) if text.strip()]
        if spoken:
            fit = [self.fit(texts[index]) for index in spoken]
            rows[spoken] = answers.sound(
                self._ask(fit, purpose, timeout_s), len(fit), self.identity.dimensions
            )
        return rows

    def _ask(self, texts: list[str], purpose: Purpose, timeout_s: float) -> Any:
        service = self.service
        try:
            return service.vectors(texts, purpose, timeout_s)
        except Exception as error:  # noqa: BLE001 - vendors' clients raise what they like
            failure = told(
                self.identity.provider,
                error,
                service.trouble(error),
                key=service.key,
                variable=service.variable,
            )
        # Outside of the handler, so that the vendor's exception, which may hold the key, is not chained to it.
        raise failure


def shortened(text: str, tokens: int) -> str:
    """The beginning of the text that is about this many tokens."""
    while (cost := estimate_tokens(text)) > tokens:
        text = text[: max(1, min(len(text) - 1, int(len(text) * tokens / cost)))]
    return text


def digest(**settings: object) -> str:
    """The part of an identity that stands for all further settings; empty when none is set."""
    given = {name: value for name, value in settings.items() if value}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest() if given else ""


def width(provider: str, model: str, dimensions: int | None, known: dict[str, int]) -> int:
    """How wide the model's vectors are, without asking anybody."""
    found = dimensions or known.get(model.removesuffix(":latest"))
    if found is None:
        raise EmbedderUnavailable(
            f"{provider}: it is not known how many dimensions the vectors of {model!r} have; "
            "set embedding.dimensions"
        )
    return found


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def client_library(package: str, extra: str) -> Any:
    """The vendor's package, imported now; where it is missing, the sentence says what to install."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise EmbedderUnavailable(missing_extra(extra)) from error


def missing_extra(extra: str) -> str:
    """How to get a provider's client."""
    return f"its client is not installed: pip install 'memoriter[{extra}]'"
