"""Chat completions of OpenAI, and of servers with a compatible API (vLLM, Ollama, DeepSeek, Qwen and others)."""

from __future__ import annotations

from typing import Any

from memoriter.errors import ChatError
from memoriter.extensions.vendors.chat import VendorChat, strict
from memoriter.llm.chat import Reply, Schema


class OpenAIChat(VendorChat):
    """A model of OpenAI or of an OpenAI-compatible server."""

    provider = "openai"
    client = "OpenAI"

    def request(self, system: str, user: str, max_tokens: int, schema: Schema | None) -> Reply:
        # OpenAI has renamed the limit. Compatible servers know the old name.
        limit = "max_completion_tokens" if self._official else "max_tokens"
        completion = self._client.chat.completions.create(
            model=self._model,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
            extra_body={limit: max_tokens, **self.options, **self._format(schema)},
        )
        choice, usage = completion.choices[0], completion.usage
        text = choice.message.content
        if not isinstance(text, str):
            raise ChatError(f"{self.name} answered without a text.")
        asked, answered = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
        return Reply(text, asked, answered, cut_off=choice.finish_reason == "length")

    def _format(self, schema: Schema | None) -> dict[str, Any]:
        if schema is None:
            return {}
        if not self._official:
            # More servers support JSON without a schema. The prompt describes the fields.
            return {"response_format": {"type": "json_object"}}
        named = {"name": "answer", "schema": strict(schema), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
