"""A vendor's service as an embedder: what all services have in common.

A vendor's module calls the vendor's client, which retries and times out. This module prepares the texts (redacted, not
blank, not too long) and checks the answers.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import ipaddress
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from memoriter.embedding.guarded import validate
from memoriter.errors import EmbedderUnavailable, EmbeddingError, WriteError, install_command
from memoriter.extensions.vendors.transport import Failure, to_error
from memoriter.files.state import read_state, write_state
from memoriter.records import Identity
from memoriter.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from memoriter.embedding.protocol import CallLimits, EmbedderSpec, JobRunner, Matrix, MetaStore

Purpose: TypeAlias = Literal["query", "document"]
T = TypeVar("T")

#: Retries of a call with documents. With the clients' exponential pauses they span some ten seconds, enough for a short
#: outage or a rate limit. What is still missing waits for the next sync.
MAX_RETRIES = 3
#: Time limit for the question for dimensions. The memory cannot open before the server has answered, so it is short.
ASK_S = 10.0
#: Plausible norms of a provider's vector. Models return about 1.
MIN_NORM, MAX_NORM = 1e-4, 1e4


class VendorEmbedder:
    """An embedder at a provider. Documents are retried; queries are not, because a search waits for them.

    A subclass names the vendor and implements `vectors` and `failure`; with a batch API also `submit`, `state`,
    `results` and `cancel`.
    """

    #: Also the name of its extra.
    provider: ClassVar[str]
    #: The vendor's client.
    package: ClassVar[str]
    #: The environment variable of the key, and all of them for people.
    variable: ClassVar[str]
    variables: ClassVar[str] = ""
    official_url: ClassVar[str | None] = None
    default_model: ClassVar[str]
    dimensions: ClassVar[Mapping[str, int]]
    limits: ClassVar[CallLimits]
    #: Tokens of one text. Longer texts are cut.
    text_tokens: ClassVar[int] = 8192
    #: Whether its servers have models of any name. They are asked for the dimensions of one that is not known.
    asks_dimensions: ClassVar[bool] = False

    def __init__(self, spec: EmbedderSpec) -> None:
        if not is_installed(self.package):
            raise EmbedderUnavailable(missing_extra(self.provider))
        self.base_url = spec.base_urls.get(self.provider, self.official_url)
        #: Never shown.
        self.key = spec.keys.get(self.provider, "")
        if self.needs_key() and not self.key:
            raise EmbedderUnavailable(f"no key: set {self.variables or self.variable}")
        self.model = spec.model or self.default_model
        #: The dimensions to request, if they differ from those of the model.
        self.shortened = self.shorten_to(spec.dimensions)
        on_this_machine = is_local(self.base_url)
        self.query_s = spec.local_query_s if on_this_machine else spec.query_s
        self.batch_s = spec.local_batch_s if on_this_machine else spec.batch_s
        self._redacts = spec.redact == "always" or (spec.redact == "remote" and not on_this_machine)
        self._retries = MAX_RETRIES if spec.retries is None else spec.retries
        self._is_named = self.provider in spec.base_urls
        self._client: Any = None
        self._lock = threading.Lock()
        # Any number will do until the server is asked: its answer is only counted.
        self.identity = Identity(self.provider, self.model, 1, self.identity_key())
        self.identity = Identity(self.provider, self.model, self._dimensions(spec), self.identity_key())

    # ---- what a vendor does --------------------------------------------------------------------------------------

    def vectors(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Any:
        """Return one row per text, in order. Raise whatever the client raises. ``timeout_s`` is for each attempt."""
        raise NotImplementedError

    def failure(self, error: Exception) -> Failure:
        """Return what the client's exception says."""
        raise NotImplementedError

    def open_client(self) -> Any:
        """Open the vendor's client."""
        raise NotImplementedError

    def needs_key(self) -> bool:
        """Return whether the service answers only with a key."""
        return True

    def shorten_to(self, dimensions: int | None) -> int | None:
        """Return the dimensions to request, if the settings name some."""
        return dimensions

    def identity_key(self) -> str:
        """Return the digest of what changes vectors, beside the model and its dimensions."""
        return ""

    def client(self) -> Any:
        """Return the vendor's client, opened with the first call."""
        with self._lock:
            if self._client is None:
                self._client = self.open_client()
            return self._client

    def close(self) -> None:
        """Close the connections. The next call opens them again."""
        client, self._client = self._client, None
        if client:
            client.close()

    # ---- the embedder --------------------------------------------------------------------------------------------

    @property
    def reason(self) -> str:
        """How the settings lead to this service."""
        is_named = self.base_url and (self._is_named or not self.key)
        return f"{self.provider}, at {self.base_url}" if is_named else f"{self.provider}, by {self.variable}"

    def embed(self, texts: Sequence[str]) -> Matrix:
        return self.run(texts, "document", self.batch_s, self._retries)

    def embed_query(self, text: str) -> Matrix:
        vector: Matrix = self.run([text], "query", self.query_s, 0)[0]
        return vector

    def without_retry(self) -> WithoutRetry:
        """Return the same embedder for documents that a search waits for."""
        return WithoutRetry(self)

    def jobs(self, meta: MetaStore, *, limit_s: float) -> JobRunner | None:
        """Return what embeds texts with the batch API, if the provider has one."""
        from memoriter.extensions.vendors.jobs import Jobs

        return Jobs(self, meta, limit_s=limit_s) if hasattr(self, "submit") else None

    def prepare(self, text: str) -> str:
        """Return the text as it may leave the machine: redacted, valid UTF-8, not too long."""
        from memoriter.text.redaction import redact  # loads many patterns, only needed for remote providers

        # A lone surrogate, as in a broken file, has no UTF-8 form and would stop the client.
        text = text.encode("utf-8", "replace").decode("utf-8")
        return shorten(redact(text) if self._redacts else text, self.text_tokens)

    def run(self, texts: Sequence[str], purpose: Purpose, timeout_s: float, retries: int) -> Matrix:
        """Embed texts with one call. Blank texts have zero rows."""
        import numpy as np

        rows = np.zeros((len(texts), self.identity.dimensions), dtype=np.float32)
        filled = [index for index, text in enumerate(texts) if text.strip()]
        if filled:
            prepared = [self.prepare(texts[index]) for index in filled]
            vectors = self.call(lambda: self.vectors(prepared, purpose, timeout_s, retries))
            rows[filled] = validate_vectors(vectors, len(prepared), self.identity.dimensions)
        return rows

    def call(self, request: Callable[[], T]) -> T:
        """Call the client and turn its exceptions into EmbeddingError."""
        try:
            return request()
        except Exception as error:  # noqa: BLE001 - vendors' clients may raise anything
            facts = self.failure(error)
            failure = to_error(self.provider, error, facts, key=self.key, variable=self.variable)
        # Outside the handler, so that the vendor's exception, which may contain the key, is not chained to it.
        raise failure

    # ---- dimensions ----------------------------------------------------------------------------------------------

    def _dimensions(self, spec: EmbedderSpec) -> int:
        """Return the dimensions of the model's vectors, without a call unless the server has models of any name."""
        found = spec.dimensions or self.dimensions.get(self.model.removesuffix(":latest"))
        if found is None and self.asks_dimensions:
            return self._ask_dimensions(spec)
        if found is None:
            raise EmbedderUnavailable(
                f"{self.provider}: the number of dimensions of {self.model!r} is unknown; set embedding.dimensions"
            )
        return found

    def _ask_dimensions(self, spec: EmbedderSpec) -> int:
        """Ask the server, and store its answer. Raises `EmbedderUnavailable` if it does not answer."""
        name = f"{self.provider} {spec.base_urls.get(self.provider, '')} {spec.model}"
        stored = read_state(spec.dimensions_file) if spec.dimensions_file else {}
        known = stored.get(name)
        if isinstance(known, int):
            return known
        try:
            found = len(self.call(lambda: self.vectors(["memoriter"], "document", ASK_S, 0))[0])
        except EmbeddingError as error:
            raise EmbedderUnavailable(
                f"the server could not be asked for the dimensions of {spec.model!r}, and embedding.dimensions is "
                f"not set: {error}"
            ) from error
        finally:
            self.close()
        if spec.dimensions_file:
            with suppress(WriteError):  # the server is asked again next time
                write_state(spec.dimensions_file, {**stored, name: found})
        return found


class WithoutRetry:
    """A vendor's embedder for documents that a search waits for."""

    def __init__(self, embedder: VendorEmbedder) -> None:
        self._embedder = embedder
        self.identity = embedder.identity
        self.embed_query = embedder.embed_query
        self.close = embedder.close

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of documents, within the time limit of a query."""
        return self._embedder.run(texts, "document", self._embedder.query_s, 0)


def is_local(url: str | None) -> bool:
    """Return whether a URL is on this machine."""
    host = (urlsplit(url).hostname or "") if url else ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def validate_vectors(rows: object, count: int, dimensions: int) -> Matrix:
    """Return a provider's rows if every number is finite and every vector has a plausible length.

    Unlike `clean`, this repairs nothing: a repaired vector would be stored permanently and match unrelated queries.
    """
    import numpy as np

    if not isinstance(rows, Sequence) and not hasattr(rows, "__array__"):
        raise EmbeddingError("the provider's answer contains no vectors")
    if isinstance(rows, Sequence) and len(rows) != count:
        raise EmbeddingError(f"the provider returned {len(rows)} vectors for {count} texts")
    # In float64, so that a number that overflows only in float32 is reported as it was sent.
    try:
        array = np.asarray(rows, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise EmbeddingError(
            "the provider returned vectors of different lengths, or values that are not numbers"
        ) from error
    validate(array, count, dimensions)
    if not np.isfinite(array).all():
        raise EmbeddingError("the provider returned numbers that are not finite")
    norms = np.linalg.norm(array, axis=-1)
    if ((norms < MIN_NORM) | (norms > MAX_NORM)).any():
        worst = norms[np.argmax(np.abs(np.log10(norms + 1e-300)))]
        raise EmbeddingError(f"the provider returned a vector of length {worst:g}")
    return array.astype(np.float32)


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


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def client_library(package: str, extra: str) -> Any:
    """Import the vendor's package, or raise EmbedderUnavailable with the command that installs it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise EmbedderUnavailable(missing_extra(extra)) from error


def missing_extra(extra: str) -> str:
    """Return how to install a provider's client."""
    return f"its client is not installed: {install_command(extra)}"
