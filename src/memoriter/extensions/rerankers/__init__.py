"""Rerankers that people bring: a server with the `/rerank` interface, an ONNX folder, or a GGUF file."""

from memoriter.extension import Extension, Offer

_HERE = "memoriter.extensions.rerankers"

extension = Extension(
    name="rerankers",
    rerankers={
        "server": Offer(f"{_HERE}.server:open_server"),
        "onnx": Offer(f"{_HERE}.files:open_onnx", extra="tokenizers", package="tokenizers"),
        "gguf": Offer(f"{_HERE}.files:open_gguf", extra="gguf", package="xllamacpp"),
    },
    settings={"reranker": f"{_HERE}.settings:RerankerSettings"},
)
