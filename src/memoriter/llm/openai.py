"""OpenAI's chat completions, and every server that speaks the same: vLLM, Ollama, DeepSeek, Qwen and others."""

from __future__ import annotations

import openai

from memoriter.errors import ChatError, ChatUnavailable
from memoriter.llm import Reply
from memoriter.text.redaction import redact


class OpenAIChat:
    """One model behind one address."""

    def __init__(
        self, model: str, *, base_url: str | None, api_key: str | None, timeout_s: float, retries: int
    ) -> None:
        self.name = f"openai/{model}"
        self._model = model
        # A key found in the environment belongs to OpenAI's own address, and goes to no other.
        key = api_key or ("none" if base_url else None)
        # Only OpenAI itself has renamed the limit; the servers that follow it know the old name.
        self._limit = "max_tokens" if base_url else "max_completion_tokens"
        try:
            self._client = openai.OpenAI(
                api_key=key,
                base_url=base_url,
                timeout=timeout_s,
                max_retries=retries,
                http_client=openai.DefaultHttpxClient(follow_redirects=False, timeout=timeout_s),
            )
        except openai.OpenAIError as error:
            raise ChatUnavailable(f"{self.name}: {error}") from error

    def complete(self, system: str, user: str, *, max_tokens: int) -> Reply:
        """Answer one prompt; raises `ChatError`."""
        try:
            done = self._client.chat.completions.create(
                model=self._model,
                messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
                extra_body={self._limit: max_tokens},
            )
            text = done.choices[0].message.content
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ChatUnavailable(f"{self.name} refuses the key: {redact(str(error))[:300]}") from error
        except openai.OpenAIError as error:
            raise ChatError(f"{self.name} failed: {redact(str(error))[:300]}") from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise ChatError(f"{self.name} answered what is no chat completion.") from error
        if not isinstance(text, str):
            raise ChatError(f"{self.name} answered without a text.")
        usage = done.usage
        return Reply(text, usage.prompt_tokens if usage else 0, usage.completion_tokens if usage else 0)

    def close(self) -> None:
        """Give back connections."""
        self._client.close()
