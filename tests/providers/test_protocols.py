"""Each vendor's client with a server that speaks its protocol: requests, answers and retries."""

from __future__ import annotations

import gc
import logging
import threading
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from vendors import DIMS, KEY, Vendors, url, vector

from memoriter.embedding import Choice, Embedder, EmbedderSpec, resolve
from memoriter.errors import EmbedderBusy, EmbeddingError, QuotaSpent

Make = Callable[..., Embedder]


@pytest.fixture
def choose(vendors: Vendors, provider: str) -> Iterator[Callable[..., Embedder]]:
    """Make the provider's embedder, and close it at the end."""
    opened: list[Embedder] = []

    def make(**more: object) -> Embedder:
        embedder = chosen(provider, **more).embedder
        assert embedder is not None
        opened.append(embedder)
        return embedder

    yield make
    for embedder in opened:
        embedder.close()


def chosen(provider: str, **more: object) -> Choice:
    spec = EmbedderSpec(
        provider,
        dimensions=DIMS,
        base_urls={provider: url(provider)},
        keys={provider: KEY},
        **{"retries": 0, **more},  # type: ignore[arg-type]
    )
    return resolve(spec)


def test_vectors_belong_to_their_texts(vendors: Vendors, provider: str, choose: Make) -> None:
    embedder = choose()
    texts = ["the heron flies", "", "苍鹭在飞", "a \ud800 surrogate"]
    rows = embedder.embed(texts)
    expected = [vector(texts[0]), [0.0] * DIMS, vector(texts[2]), vector("a ? surrogate")]
    np.testing.assert_allclose(rows, expected, atol=1e-6)
    np.testing.assert_allclose(embedder.embed_query("heron"), vector("heron"), atol=1e-6)


def test_vectors_of_openai_itself_come_in_base64(vendors: Vendors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoriter.extensions.openai.embeddings.OFFICIAL", url("openai"))
    embedder = chosen("openai").embedder
    assert embedder is not None
    np.testing.assert_allclose(embedder.embed(["the heron flies"]), [vector("the heron flies")], atol=1e-6)
    assert vendors.requests[0][2]["encoding_format"] == "base64"
    embedder.close()


@pytest.mark.requirement("B4")
def test_each_vendor_gets_the_request_that_it_expects(vendors: Vendors, provider: str, choose: Make) -> None:
    embedder = choose()
    embedder.embed(["the heron"])
    embedder.embed_query("heron")
    (path, headers, document), (_, _, query) = vendors.requests
    auth = headers.get("x-goog-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    assert headers["accept-encoding"] == "identity"
    assert (path, auth) == EXPECTED[provider][:2]
    path_in_body = EXPECTED[provider][2]
    assert [_part(document, path_in_body), _part(query, path_in_body)] == EXPECTED[provider][3]


def _part(body: dict, names: tuple) -> object:  # type: ignore[type-arg]
    for name in names:
        body = body[name]
    return body


EXPECTED: dict[str, tuple] = {  # type: ignore[type-arg]
    "openai": ("/v1/embeddings", KEY, ("dimensions",), [DIMS, DIMS]),
    "voyage": ("/voyage/v1/embeddings", KEY, ("input_type",), ["document", "query"]),
    "gemini": (
        "/v1/models/gemini-embedding-001:batchEmbedContents",
        KEY,
        ("requests", 0, "taskType"),
        ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"],
    ),
    "ollama": ("/api/embed", "", ("input", 0), ["search_document: the heron", "search_query: heron"]),
}


@pytest.mark.parametrize("provider", ["openai", "voyage"])  # the answers of the others have no indexes
def test_the_answer_may_come_in_any_order(vendors: Vendors, choose: Make) -> None:
    vendors.fault = "shuffled"
    embedder = choose()
    np.testing.assert_allclose(
        embedder.embed(["a1", "b2", "c3"]), [vector(t) for t in ("a1", "b2", "c3")], atol=1e-6
    )


def test_simultaneous_calls_leave_no_connection_open(vendors: Vendors, provider: str, choose: Make) -> None:
    embedder, together = choose(), threading.Barrier(6)

    def ask() -> None:
        together.wait()
        embedder.embed(["heron"])

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        embedder.close()
        gc.collect()
    assert [str(warning.message) for warning in recorded if warning.category is ResourceWarning] == []


@pytest.mark.requirement("X11")
def test_secrets_do_not_leave_the_machine(vendors: Vendors, provider: str, choose: Make) -> None:
    text = "push with ghp_0123456789abcdefghijABCDEFGHIJ012345, then rest"
    for redact in ("remote", "never"):
        embedder = choose(redact=redact)
        embedder.embed([text])
        embedder.embed_query(text)
    bare = [sent.partition(": ")[2] if provider == "ollama" else sent for sent in vendors.texts]
    clean = "push with [redacted github token], then rest"
    assert bare == [clean, clean, text, text]


@pytest.mark.parametrize("fault", ["429", "quota"])
def test_a_rate_limit_is_not_a_spent_quota(vendors: Vendors, provider: str, choose: Make, fault: str) -> None:
    vendors.fault = fault
    with pytest.raises(EmbeddingError) as caught:
        choose().embed(["a1"])
    if fault == "quota":
        assert isinstance(caught.value, QuotaSpent)
    else:
        assert isinstance(caught.value, EmbedderBusy)
        # Ollama's client drops the headers of a failure.
        assert caught.value.retry_after_s == (None if provider == "ollama" else 7)


@pytest.mark.requirement("A9")
@pytest.mark.parametrize("fault", ["500", "429", "refused"])
def test_the_vendors_client_retries_documents_a_few_times_and_queries_never(
    vendors: Vendors,
    provider: str,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    choice = chosen(provider, retries=2)
    assert choice.embedder is not None
    vendors.fault = fault
    with caplog.at_level(logging.INFO), pytest.raises(EmbedderBusy):
        choice.embedder.embed(["the heron"])
    # Ollama's package does not retry.
    retries = 0 if provider == "ollama" else 2
    assert len(pauses) == retries
    assert max(pauses, default=0) <= 60
    assert vendors.calls() == (0 if fault == "refused" else retries + 1)
    before = vendors.calls()
    with pytest.raises(EmbeddingError):
        choice.embedder.embed_query("heron")
    assert vendors.calls() - before <= 1
    assert len(pauses) == retries
    assert KEY not in caplog.text
    choice.embedder.close()


def test_documents_that_a_search_waits_for_are_not_retried(
    vendors: Vendors, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    choice = chosen(provider, retries=2)
    assert choice.without_retry is not None
    vendors.fault = "500"
    with pytest.raises(EmbedderBusy):
        choice.without_retry.embed(["the heron"])
    assert (vendors.calls(), pauses) == (1, [])
    choice.without_retry.close()


@pytest.mark.parametrize("provider", ["openai", "voyage", "gemini"])  # the package of Ollama does not retry
def test_a_retry_that_succeeds_returns_the_vectors(
    vendors: Vendors, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def heal(_: float) -> None:
        vendors.fault = None

    monkeypatch.setattr("time.sleep", heal)
    embedder = chosen(provider, retries=2).embedder
    assert embedder is not None
    vendors.fault = "503"
    np.testing.assert_allclose(embedder.embed(["the heron"]), [vector("the heron")], atol=1e-6)
    assert vendors.calls() == 2
    embedder.close()
