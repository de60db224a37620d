"""The memory as other agent frameworks expect it: one module and one small class for each.

| module | class | framework |
| --- | --- | --- |
| `adk` | `MemoriterMemoryService` | Google ADK, `BaseMemoryService` |
| `agent_framework` | `MemoriterContextProvider` | Microsoft Agent Framework, `ContextProvider` |
| `crewai` | `MemoriterStorage` | CrewAI, `StorageBackend` |
| `hermes` | `MemoriterProvider` | Hermes Agent, `MemoryProvider` |
| `llama_index` | `MemoriterBlock` | LlamaIndex, `BaseMemoryBlock` |
| `strands` | `MemoriterStore` | Strands Agents, `MemoryStore` |

What a framework adds to a prompt automatically is a recall: untrusted text is never in it, and the ledger records it.
"""

from collections.abc import Callable, Collection
from importlib import import_module

from memoriter.extension import Extension

extension = Extension(name="frameworks")


def on_first_use(package: str, module: str, names: Collection[str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package whose classes need their framework, so that they load on first use."""

    def load(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module}"), name)

    return load
