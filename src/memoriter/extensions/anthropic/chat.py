"""Messages of Anthropic."""

from __future__ import annotations

from memoriter.errors import ChatError
from memoriter.extensions.vendors.chat import VendorChat, strict
from memoriter.llm.chat import Reply, Schema


class AnthropicChat(VendorChat):
    """A model of Anthropic."""

    provider = "anthropic"
    client = "Anthropic"

    def request(self, system: str, user: str, max_tokens: int, schema: Schema | None) -> Reply:
        output = {} if schema is None else {"format": {"type": "json_schema", "schema": strict(schema)}}
        message = self._client.messages.create(
            model=self._model,
            system=system,
            messages=[{"role": "user", "content": user}],
            max_tokens=max_tokens,
            extra_body={**self.options, **({"output_config": output} if output else {})},
        )
        text = "".join(block.text for block in message.content if block.type == "text")
        if not text:
            raise ChatError(f"{self.name} answered without a text.")
        usage = message.usage
        cut_off = message.stop_reason == "max_tokens"
        return Reply(text, usage.input_tokens, usage.output_tokens, cut_off=cut_off)
