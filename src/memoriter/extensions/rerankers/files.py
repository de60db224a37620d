"""Cross-encoders from files on this machine: an ONNX folder, or a GGUF file. Nothing here uses the network."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoriter.config import Settings
from memoriter.embedding import local
from memoriter.errors import EmbedderUnavailable, EmbeddingError, first_line
from memoriter.extensions.llama_cpp.gguf import answer_of, open_xllamacpp, read_header
from memoriter.extensions.rerankers.reading import OwnReranker
from memoriter.extensions.rerankers.server import scores_of
from memoriter.extensions.rerankers.settings import RerankerSettings
from memoriter.extensions.vendors.embedder import client_library, shorten

#: Tokens of a query with a text. Searches read a few lines around the match, so more are never needed.
TOKENS = 512
QUERY_TOKENS, TEXT_TOKENS = 96, 320
#: llama.cpp's number for models that return one score for a pair.
RANK_POOLING = 4


def open_onnx(settings: Settings) -> OwnReranker:
    """Return the reranker of the ONNX folder that the settings name."""
    chosen = settings.section(RerankerSettings)
    return OwnReranker(lambda: OnnxScores(_path(chosen, "onnx")), chosen)


def open_gguf(settings: Settings) -> OwnReranker:
    """Return the reranker of the GGUF file that the settings name."""
    chosen = settings.section(RerankerSettings)
    return OwnReranker(lambda: GgufScores(_path(chosen, "gguf")), chosen)


def _path(settings: RerankerSettings, name: str) -> Path:
    if settings.path is None:
        raise EmbedderUnavailable(f"search.reranker is `{name}`, but reranker.path is not set")
    return settings.path.expanduser()


class OnnxScores:
    """A cross-encoder in ONNX with its `tokenizer.json`."""

    def __init__(self, folder: Path) -> None:
        tokenizers = client_library("tokenizers", "tokenizers")
        path = folder / "tokenizer.json"
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:
            # tokenizers raises plain Exception.
            raise EmbedderUnavailable(f"{path} is not a tokenizer: {first_line(error)}") from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKENS, strategy="only_second")
        self._session = local.open_session(folder / "model.onnx")
        self._inputs = {one.name for one in self._session.get_inputs()}
        self._output = self._session.get_outputs()[0].name

    def __call__(self, query: str, texts: Sequence[str]) -> Iterator[float]:
        """Yield the score of each text. A single pair needs no padding."""
        start = shorten(local.well_formed(query), QUERY_TOKENS)
        for text in texts:
            yield self._score(start, local.well_formed(text))

    def _score(self, query: str, text: str) -> float:
        import numpy as np

        pair = self._tokenizer.encode(query, text)
        known = {
            "input_ids": pair.ids,
            "attention_mask": pair.attention_mask,
            "token_type_ids": pair.type_ids,
        }
        feeds = {name: np.asarray([known[name]], dtype=np.int64) for name in self._inputs & known.keys()}
        found = local.run(self._session, self._output, feeds).reshape(-1)
        if len(found) not in (1, 2):
            raise EmbeddingError(
                f"the model has {len(found)} outputs for a pair; a reranker has one, or two for no and yes"
            )
        score = float(found[-1] - found[0]) if len(found) == 2 else float(found[0])
        if not math.isfinite(score):
            raise EmbeddingError("the model returned a value that is not a number")
        return score


class GgufScores:
    """A cross-encoder in a GGUF file, run by llama.cpp."""

    def __init__(self, path: Path) -> None:
        head = read_header(path)
        family = head.get("general.architecture", "")
        context = min(int(head.get(f"{family}.context_length", TOKENS)), TOKENS)
        self._server: Any = open_xllamacpp(path, context, RANK_POOLING, extra="gguf")

    def __call__(self, query: str, texts: Sequence[str]) -> Iterator[float]:
        start = shorten(local.well_formed(query), QUERY_TOKENS)
        for text in texts:
            documents = [shorten(local.well_formed(text), TEXT_TOKENS)]
            answer = answer_of(self._server.handle_rerank({"query": start, "documents": documents}))
            yield scores_of(answer, 1)[0]
