"""ChatGPT: import of its exports."""

from __future__ import annotations

from memoriter.extension import Extension, Offer

extension = Extension(
    name="chatgpt", importers={"chatgpt": Offer("memoriter.extensions.chatgpt.conversations:CHATGPT")}
)
