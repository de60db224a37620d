"""Language models for summaries and extraction.

A `Chat` is a model that an extension offers, or `NoChat`. `Budgeted` limits the tokens of a day. No model
is called unless the owner configures one, and every caller works without one. Failures are `ChatError`.
"""

from __future__ import annotations

from memoriter.llm.chat import Chat, Deferred, NoChat, Reply, Schema, open_chat

__all__ = ["Chat", "Deferred", "NoChat", "Reply", "Schema", "open_chat"]
