"""The memory as other agent frameworks expect it: one module and one small class for each.

| module | class | framework |
| --- | --- | --- |
| `adk` | `MemoriterMemoryService` | Google ADK, `BaseMemoryService` |
| `agent_framework` | `MemoriterContextProvider` | Microsoft Agent Framework, `ContextProvider` |
| `hermes` | `MemoriterProvider` | Hermes Agent, `MemoryProvider` |
| `llama_index` | `MemoriterBlock` | LlamaIndex, `BaseMemoryBlock` |
| `strands` | `MemoriterStore` | Strands Agents, `MemoryStore` |

What a framework adds to a prompt automatically is a recall: untrusted text is never in it, and the ledger records it.
"""

from __future__ import annotations

from memoriter.extension import Extension

extension = Extension(name="frameworks")
