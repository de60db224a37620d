"""Who summarises and extracts? A language model, if the owner named one; otherwise nobody.

`Chat` is a Protocol of three members: an OpenAI-compatible server, Anthropic's, or `Nobody`. The vendors' own clients
do timeouts and retries; `Budgeted` holds any of them to a number of tokens a day. Nothing is spent unless switched on,
and every caller must be able to do without: what fails here is a `ChatError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from memoriter.errors import ChatError, ChatUnavailable

__all__ = ["Chat", "Deferred", "Nobody", "Reply", "open_chat"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered, and what it cost."""

    text: str
    input_tokens: int
    output_tokens: int


class Chat(Protocol):
    """Something that answers."""

    @property
    def name(self) -> str:
        """Provider and model, as it is written under what was made with it."""
        ...

    def complete(self, system: str, user: str, *, max_tokens: int) -> Reply:
        """Answer one prompt; raises `ChatError`."""
        ...

    def close(self) -> None:
        """Give back connections."""
        ...


class NoChat:
    """The model of those who named none."""

    name = "none"

    def complete(self, system: str, user: str, *, max_tokens: int) -> Reply:  # noqa: ARG002
        raise ChatUnavailable("No language model is configured (llm.provider).")

    def close(self) -> None:
        """There is nothing to give back."""


class Deferred:
    """A model that is opened when it is first asked: a client costs a second, and may not be installed at all."""

    def __init__(self, name: str, opening: Callable[[], Chat]) -> None:
        self.name = name
        self._opening = opening
        self._chat: Chat | None = None

    def complete(self, system: str, user: str, *, max_tokens: int) -> Reply:
        """Answer one prompt; raises `ChatError`, also when the model cannot be opened."""
        if self._chat is None:
            self._chat = self._opening()
        return self._chat.complete(system, user, max_tokens=max_tokens)

    def close(self) -> None:
        """Close the model, if it was opened."""
        if self._chat is not None:
            self._chat.close()


def open_chat(
    provider: str,
    *,
    model: str = "",
    base_url: str | None = None,
    api_key: str | None = None,
    timeout_s: float = 60.0,
    retries: int = 2,
) -> Chat:
    """The model that the settings name. Nothing is asked of it yet."""
    if provider == "none":
        return NoChat()
    if not model:
        raise ChatUnavailable(f"llm.model must name a model of {provider}.")
    try:
        if provider == "openai":
            from memoriter.llm.openai import OpenAIChat

            return OpenAIChat(model, base_url=base_url, api_key=api_key, timeout_s=timeout_s, retries=retries)
        if provider == "anthropic":
            from memoriter.llm.anthropic import AnthropicChat

            return AnthropicChat(
                model, base_url=base_url, api_key=api_key, timeout_s=timeout_s, retries=retries
            )
    except ImportError as error:
        raise ChatUnavailable(
            f"The client of {provider} is not installed: pip install 'memoriter[{provider}]'."
        ) from error
    raise ChatError(f"There is no llm.provider {provider!r}: openai, anthropic or none.")
