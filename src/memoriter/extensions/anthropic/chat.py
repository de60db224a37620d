"""Messages of Anthropic."""

from __future__ import annotations

from memoriter.errors import ChatError, ChatUnavailable
from memoriter.extensions.vendors.chat import VendorChat, strict
from memoriter.llm.chat import Reply, Schema


class AnthropicChat(VendorChat):
    """A model of Anthropic."""

    def __init__(
        self, model: str, *, base_url: str | None, api_key: str | None, timeout_s: float, retries: int
    ) -> None:
        import anthropic

        name = f"anthropic/{model}"
        self._model = model
        try:
            client = anthropic.Anthropic(
                # A key from the environment belongs to Anthropic. It is never sent to another address.
                api_key=api_key or ("none" if base_url else None),
                base_url=base_url,
                timeout=timeout_s,
                max_retries=retries,
                http_client=anthropic.DefaultHttpxClient(follow_redirects=False, timeout=timeout_s),
            )
        except anthropic.AnthropicError as error:
            raise ChatUnavailable(f"{name}: {error}") from error
        super().__init__(name, anthropic, client, anthropic.AnthropicError)

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:
        """Answer one prompt, or raise `ChatError`."""

        def request(schema: Schema | None) -> Reply:
            output = {"output_config": {"format": {"type": "json_schema", "schema": strict(schema)}}}
            message = self._client.messages.create(
                model=self._model,
                system=system,
                messages=[{"role": "user", "content": user}],
                max_tokens=max_tokens,
                extra_body=output if schema is not None else None,
            )
            text = "".join(block.text for block in message.content if block.type == "text")
            if not text:
                raise ChatError(f"{self.name} answered without a text.")
            usage = message.usage
            cut_off = message.stop_reason == "max_tokens"
            return Reply(text, usage.input_tokens, usage.output_tokens, cut_off=cut_off)

        return self._answer(schema, request)
