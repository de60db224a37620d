"""Anthropic's messages."""

from __future__ import annotations

import anthropic

from memoriter.errors import ChatError, ChatUnavailable
from memoriter.llm import Reply
from memoriter.text.redaction import redact


class AnthropicChat:
    """One model behind one address."""

    def __init__(
        self, model: str, *, base_url: str | None, api_key: str | None, timeout_s: float, retries: int
    ) -> None:
        self.name = f"anthropic/{model}"
        self._model = model
        try:
            self._client = anthropic.Anthropic(
                # A key found in the environment belongs to Anthropic's own address, and goes to no other.
                api_key=api_key or ("none" if base_url else None),
                base_url=base_url,
                timeout=timeout_s,
                max_retries=retries,
                http_client=anthropic.DefaultHttpxClient(follow_redirects=False, timeout=timeout_s),
            )
        except anthropic.AnthropicError as error:
            raise ChatUnavailable(f"{self.name}: {error}") from error

    def complete(self, system: str, user: str, *, max_tokens: int) -> Reply:
        """Answer one prompt; raises `ChatError`."""
        try:
            done = self._client.messages.create(
                model=self._model,
                system=system,
                messages=[{"role": "user", "content": user}],
                max_tokens=max_tokens,
            )
            text = "".join(block.text for block in done.content if block.type == "text")
        except (anthropic.AuthenticationError, anthropic.PermissionDeniedError) as error:
            raise ChatUnavailable(f"{self.name} refuses the key: {redact(str(error))[:300]}") from error
        except anthropic.AnthropicError as error:
            raise ChatError(f"{self.name} failed: {redact(str(error))[:300]}") from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise ChatError(f"{self.name} answered what is no message.") from error
        if not text:
            raise ChatError(f"{self.name} answered without a text.")
        return Reply(text, done.usage.input_tokens, done.usage.output_tokens)

    def close(self) -> None:
        """Give back connections."""
        self._client.close()
