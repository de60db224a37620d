"""Language models: the interface, and the answers to prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from memoriter.errors import ChatUnavailable

#: A JSON schema for the answer.
Schema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer and its cost."""

    text: str
    input_tokens: int
    output_tokens: int
    #: Whether the answer ended at the limit of tokens.
    cut_off: bool = False


class Chat(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """Provider and model, such as "provider/model". Notes made with the model show it."""
        ...

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:
        """Answer one prompt, or raise `ChatError`.

        With a ``schema`` the provider is asked for JSON. Servers that do not support this answer with plain text.
        """
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class NoChat:
    """The model when none is configured."""

    name = "none"

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:  # noqa: ARG002
        raise ChatUnavailable("No language model is configured (llm.provider).")

    def close(self) -> None:
        """Do nothing."""


class Deferred:
    """A model that opens with the first prompt. A client takes a second to load, and may not be installed."""

    def __init__(self, name: str, open_chat: Callable[[], Chat]) -> None:
        self.name = name
        self._open_chat = open_chat
        self._chat: Chat | None = None

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:
        """Answer one prompt, or raise `ChatError`, also when the model cannot be opened."""
        if self._chat is None:
            self._chat = self._open_chat()
        return self._chat.complete(system, user, max_tokens=max_tokens, schema=schema)

    def close(self) -> None:
        """Close the model if it is open."""
        if self._chat is not None:
            self._chat.close()
