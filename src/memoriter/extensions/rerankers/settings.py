"""The settings of a reranker that people bring."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from memoriter.config.fields import Duration, Number, Section, Url, described


class RerankerSettings(Section):
    """Your own reranker, for `search.reranker: server`, `onnx` or `gguf`."""

    url: Url | None = described(
        None, "For `server`: the address of its `/rerank` interface, such as `http://127.0.0.1:8080/v1`."
    )
    model: str | None = described(None, "For `server`: the model, if it has several.")
    api_key: SecretStr | None = described(None, "For `server`: the key, sent as a bearer token.")
    path: Path | None = described(
        None, "For `onnx`: a folder with `model.onnx` and `tokenizer.json`. For `gguf`: a file."
    )
    weight: Number = described(
        2.0,
        "Weight of the model, relative to 1 for vectors and keywords together. The bundled one has 0.35.",
        ge=0,
        le=20,
    )
    timeout_s: Duration = described(
        2.0,
        "Seconds that the model may take for one search. A server that takes longer is left out; of a "
        "file, what was read by then counts.",
        gt=0,
        le=60,
    )
