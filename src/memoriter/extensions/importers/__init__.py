"""Importers of other memories and of chats: one module for each program, and one for those that keep Markdown files."""

from memoriter.extension import Extension, Offer

_HERE = "memoriter.extensions.importers"

extension = Extension(
    name="importers",
    importers={
        "basic-memory": Offer(f"{_HERE}.notes:BASIC_MEMORY"),
        "chatgpt": Offer(f"{_HERE}.chatgpt:CHATGPT", summary="ChatGPT"),
        "claude": Offer(f"{_HERE}.claude:CLAUDE", summary="Claude"),
        "claude-mem": Offer(f"{_HERE}.claude_mem:CLAUDE_MEM"),
        "everos": Offer(f"{_HERE}.everos:EVEROS"),
        "hermes": Offer(f"{_HERE}.hermes:HERMES"),
        "hindsight": Offer(f"{_HERE}.hindsight:HINDSIGHT"),
        "letta": Offer(f"{_HERE}.letta:LETTA", summary="Letta"),
        "mem0": Offer(f"{_HERE}.mem0:MEM0", summary="mem0"),
        "mempalace": Offer(f"{_HERE}.notes:MEMPALACE"),
        "memsearch": Offer(f"{_HERE}.notes:MEMSEARCH"),
        "supermemory": Offer(f"{_HERE}.supermemory:SUPERMEMORY", summary="supermemory"),
        "zep": Offer(f"{_HERE}.zep:ZEP", summary="Zep"),
    },
)
