"""llama.cpp: GGUF models on this machine as embedders."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="llama_cpp",
    embedders={
        "llama-cpp": Offer("memoriter.extensions.llama_cpp.gguf:open_gguf", extra="llama-cpp", suffix=".gguf")
    },
)
