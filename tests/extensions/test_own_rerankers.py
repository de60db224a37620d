"""Rerankers that people bring: what each kind reads, and what a search says when one fails.

The ONNX folder is the bundled model under another name. The server is a small program that speaks the interfaces of the
vendors; `make integration` asks a real llama.cpp.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from brought_rerankers import OpenWith, opener
from hypothesis import given
from hypothesis import strategies as st

from memoriter import Memory
from memoriter.config import load
from memoriter.embedding.lookup import bundled_model
from memoriter.errors import ConfigError
from memoriter.extensions.rerankers.reading import OwnReranker, standardised
from memoriter.extensions.rerankers.settings import RerankerSettings
from memoriter.search import rerank
from memoriter.search.rerank import SPREAD


@pytest.fixture
def open_with(workspace: Path, open_memory: Callable[..., Memory]) -> OpenWith:
    """A function that opens the memory with a reranker and its settings."""
    return opener(workspace, open_memory)


class Vendor:
    """A server with the `/rerank` interface. A text scores by the words that it shares with "Minka doormat"."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        #: Name of the texts in a request, of the list in an answer ("" is a bare list), and of a score.
        self.form = ("documents", "results", "relevance_score")
        self.answer: Callable[[BaseHTTPRequestHandler], bool] | None = None
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                vendor.respond(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        self.seen.append({"path": request.path, **body})
        self.headers.append(dict(request.headers))
        if self.answer and self.answer(request):
            return None
        texts, results, score = self.form
        if texts not in body:
            return send(request, 422, {"error": f"missing field `{texts}`"})
        rows = [
            {"index": number, score: sum(word in text for word in ("Minka", "doormat")) / 100}
            for number, text in reversed([*enumerate(body[texts])])
        ]
        return send(request, 200, {results: rows} if results else rows)


def send(request: BaseHTTPRequestHandler, status: int, body: object, **headers: str) -> None:
    data = json.dumps(body).encode() if not isinstance(body, bytes) else body
    request.send_response(status)
    for name, value in {"Content_Type": "application/json", **headers}.items():
        request.send_header(name.replace("_", "-"), value)
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    vendor = Vendor()
    thread = Thread(target=vendor.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield vendor
    vendor.server.shutdown()
    vendor.server.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The bundled reranker as a folder of its own."""
    embedder = bundled_model()
    assert embedder is not None
    folder = tmp_path / "cross-encoder"
    folder.mkdir()
    shutil.copy(rerank.BUNDLED / "model.onnx", folder)
    shutil.copy(embedder / "tokenizer.json", folder)
    return folder


def first(memory: Memory, query: str) -> tuple[str, str | None]:
    """The line that the query finds first, and what the search lacked."""
    found = memory.search(query, max_results=1)
    return found.hits[0].snippet, found.degraded


@pytest.mark.parametrize(
    "form",
    [
        ("documents", "results", "relevance_score"),  # Cohere, Jina, vLLM, llama.cpp
        ("documents", "data", "relevance_score"),  # Voyage
        ("texts", "", "score"),  # TEI
    ],
)
def test_the_servers_of_every_vendor_are_understood(
    open_with: OpenWith, vendor: Vendor, form: tuple[str, str, str]
) -> None:
    vendor.form = form
    memory = open_with("server", {"url": vendor.url})
    snippet, degraded = first(memory, "Who repaired the heating?")
    assert ("Minka" in snippet, degraded) == (True, None)
    first(memory, "Which plants get water?")
    assert [call["path"] for call in vendor.seen] == ["/rerank"] * len(vendor.seen)
    assert form[0] in vendor.seen[-1]
    # The form of the request is found once, not with every search.
    assert len(vendor.seen) == (3 if form[0] == "texts" else 2)


def test_an_onnx_folder_reads_the_texts(open_with: OpenWith, folder: Path) -> None:
    memory = open_with("onnx", {"path": str(folder)})
    snippet, degraded = first(memory, "备用钥匙在哪里？")
    assert ("蓝色盒子" in snippet, degraded) == (True, None)


def test_the_request_names_the_model_and_carries_the_key(open_with: OpenWith, vendor: Vendor) -> None:
    settings = {"url": f"{vendor.url}/v1/", "model": "rerank-3", "api_key": "secret-key-1"}
    memory = open_with("server", settings)
    first(memory, "the cat")
    assert (vendor.seen[0]["path"], vendor.seen[0]["model"]) == ("/v1/rerank", "rerank-3")
    assert vendor.headers[0]["Authorization"] == "Bearer secret-key-1"
    assert "secret-key-1" not in repr(memory.settings)


def test_confidence_does_not_use_scores_of_an_unknown_scale(open_with: OpenWith, vendor: Vendor) -> None:
    own = open_with("server", {"url": vendor.url})
    plain = open_with("bundled", {}, search__rerank=False)
    query = "What is the neighbour's cat called?"
    one, other = own.search(query, max_results=1), plain.search(query, max_results=1)
    assert one.hits[0].explain.logit is None
    assert [part.name for part in one.hits[0].explain.parts if part.name == "rerank"] == ["rerank"]
    assert one.hits[0].snippet == other.hits[0].snippet


def redirect(request: BaseHTTPRequestHandler) -> bool:
    send(request, 302, {}, Location="http://127.0.0.1:9/")
    return True


def reject(request: BaseHTTPRequestHandler) -> bool:
    send(request, 401, {"error": "the key secret-key-1 is wrong"})
    return True


def too_few(request: BaseHTTPRequestHandler) -> bool:
    send(request, 200, {"results": [{"index": 0, "relevance_score": 0.5}]})
    return True


def not_a_number(request: BaseHTTPRequestHandler) -> bool:
    send(request, 200, b'{"results": [{"index": 0, "relevance_score": NaN}]}')
    return True


def not_json(request: BaseHTTPRequestHandler) -> bool:
    send(request, 200, b"<html>", Content_Type="text/html")
    return True


def broken(request: BaseHTTPRequestHandler) -> bool:
    send(request, 200, b'{"results": [')
    return True


def closed(request: BaseHTTPRequestHandler) -> bool:
    request.connection.close()
    return True


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (redirect, "a redirect (status 302), which is not followed|status 302"),
        (reject, "rejected the key (status 401); check reranker.api_key"),
        (too_few, "returned 1 results for"),
        (not_a_number, "not numbers|1 results for"),
        (not_json, "text/html instead of JSON"),
        (broken, "cannot be read"),
        (closed, "cannot be reached"),
    ],
)
def test_a_server_that_fails_leaves_the_order_of_the_first_stage(
    open_with: OpenWith, vendor: Vendor, answer: Callable[[BaseHTTPRequestHandler], bool], why: str
) -> None:
    vendor.answer = answer
    settings = {"url": vendor.url, "api_key": "secret-key-1"}
    memory = open_with("server", settings)
    snippet, degraded = first(memory, "What is the neighbour's cat called?")
    assert "Minka" in snippet
    assert degraded is not None
    assert degraded.startswith("Without the reranker: ")
    assert any(part in degraded for part in why.split("|")), degraded
    assert "secret-key-1" not in degraded
    calls = len(vendor.seen)
    assert first(memory, "Which plants get water?")[1] == degraded
    assert len(vendor.seen) == calls, "during the cooldown the server is not asked"


@pytest.mark.parametrize(
    ("kind", "settings", "why"),
    [
        ("server", {}, "reranker.url is not set"),
        ("server", {"url": "http://127.0.0.1:9"}, "cannot be reached"),
        ("onnx", {}, "reranker.path is not set"),
        ("onnx", {"path": "/no/such/folder"}, str(Path("/no/such/folder"))),
        ("gguf", {}, "reranker.path is not set"),
        ("gguf", {"path": "/no/such/file.gguf"}, "cannot be read"),
    ],
)
def test_a_reranker_that_is_not_there_is_named_in_the_answer(
    open_with: OpenWith, kind: str, settings: dict[str, object], why: str
) -> None:
    memory = open_with(kind, settings)
    snippet, degraded = first(memory, "What is the neighbour's cat called?")
    assert "Minka" in snippet
    assert degraded is not None
    assert why in degraded


def test_a_file_of_another_kind_is_not_a_reranker(open_with: OpenWith, tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"no model")
    memory = open_with("gguf", {"path": str(file)})
    assert "is not a GGUF model" in (first(memory, "the cat")[1] or "")


def test_after_the_cooldown_the_server_is_asked_again(vendor: Vendor) -> None:
    now, failing = [0.0], [True]

    def score(query: str, texts: Any) -> list[float]:
        if failing[0]:
            raise ImportError("no such package")
        return [float(len(text)) for text in texts]

    reranker = OwnReranker(lambda: score, RerankerSettings(), clock=lambda: now[0])
    assert reranker.read("cat", {1: "a"}).degraded == "Without the reranker: no such package"
    failing[0] = False
    assert reranker.read("cat", {1: "a"}).degraded is not None
    now[0] = 15.1
    found = reranker.read("cat", {1: "a", 2: "abc"})
    assert found.degraded is None
    assert found.logits[2] > found.logits[1]


def test_texts_after_the_deadline_are_not_read_but_remembered_ones_are() -> None:
    now = [0.0]

    def score(query: str, texts: Any) -> Iterator[float]:
        for text in texts:
            now[0] += 1.0
            yield float(len(text))

    reranker = OwnReranker(lambda: score, RerankerSettings(timeout_s=1.5), clock=lambda: now[0])
    texts = {1: "a", 2: "ab", 3: "abc", 4: "abcd"}
    assert list(reranker.read("cat", texts).logits) == [1, 2]
    assert list(reranker.read("cat", texts).logits) == [1, 2, 3, 4]


@given(st.dictionaries(st.integers(0, 9), st.integers(-10_000, 10_000).map(float), max_size=8))
def test_scores_of_any_scale_keep_their_order(scores: dict[int, float]) -> None:
    logits = standardised(scores)
    assert sorted(scores, key=lambda row: (logits[row], row)) == sorted(
        scores, key=lambda row: (scores[row], row)
    )
    assert all(abs(logit) < 10 * SPREAD for logit in logits.values())


def test_the_file_of_a_workspace_cannot_name_a_server(tmp_path: Path) -> None:
    (tmp_path / ".memoriter.yaml").write_text("reranker:\n  url: http://203.0.113.5\n", "utf-8")
    with pytest.raises(ConfigError, match=r"reranker\.url"):
        load(cwd=tmp_path, arguments={"workspace": tmp_path, "home": tmp_path / "home"}, environ={})
