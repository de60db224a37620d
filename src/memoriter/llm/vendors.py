"""The vendors' clients: OpenAI's chat completions and Anthropic's messages.

Servers with an OpenAI-compatible API (vLLM, Ollama, DeepSeek, Qwen and others) use the first. The clients retry and
time out. They are imported when a model is opened, because each takes about a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memoriter.errors import ChatError, ChatUnavailable
from memoriter.llm.chat import Chat, NoChat, Reply, Schema

#: Retries of a failed call. The clients pause between them, and a background task can wait that long.
MAX_RETRIES = 2


def open_chat(
    provider: str,
    *,
    model: str = "",
    base_url: str | None = None,
    api_key: str | None = None,
    timeout_s: float = 60.0,
    retries: int = MAX_RETRIES,
) -> Chat:
    """Open the model that the settings name, without calling it."""
    if provider == "none":
        return NoChat()
    kinds: dict[str, type[OpenAIChat] | type[AnthropicChat]]
    kinds = {"openai": OpenAIChat, "anthropic": AnthropicChat}
    if provider not in kinds:
        raise ChatError(f"Unknown llm.provider {provider!r}. Use openai, anthropic or none.")
    if not model:
        raise ChatUnavailable(f"Set llm.model to a model of {provider}.")
    try:
        return kinds[provider](
            model, base_url=base_url, api_key=api_key, timeout_s=timeout_s, retries=retries
        )
    except ImportError as error:
        raise ChatUnavailable(
            f"The client of {provider} is not installed: pip install 'memoriter[{provider}]'."
        ) from error


class _VendorChat:
    """Common base of both clients: errors, and structured output where the server supports it."""

    def __init__(self, name: str, package: Any, client: Any, base_error: type[Exception]) -> None:
        self.name = name
        self._package = package
        self._base_error = base_error
        self._client = client
        self._supports_schema = True

    def close(self) -> None:
        """Close connections."""
        self._client.close()

    def _answer(self, schema: Schema | None, request: Callable[[Schema | None], Reply]) -> Reply:
        """Send a request with the schema, and again without it if the server rejects it."""
        if schema is not None and self._supports_schema:
            try:
                return self._call(lambda: request(schema))
            except _BadRequest:
                self._supports_schema = False
        return self._call(lambda: request(None))

    def _call(self, request: Callable[[], Reply]) -> Reply:
        package = self._package
        try:
            return request()
        except (package.AuthenticationError, package.PermissionDeniedError) as error:
            raise ChatUnavailable(f"{self.name} rejected the key: {_redact_message(error)}") from error
        except (package.BadRequestError, package.UnprocessableEntityError) as error:
            raise _BadRequest(f"{self.name} failed: {_redact_message(error)}") from error
        except self._base_error as error:
            raise ChatError(f"{self.name} failed: {_redact_message(error)}") from error
        except (AttributeError, IndexError, TypeError, ValueError) as error:
            raise ChatError(f"{self.name} returned an answer that cannot be read.") from error


class OpenAIChat(_VendorChat):
    """A model of OpenAI or of an OpenAI-compatible server."""

    def __init__(
        self, model: str, *, base_url: str | None, api_key: str | None, timeout_s: float, retries: int
    ) -> None:
        import openai

        name = f"openai/{model}"
        self._model = model
        self._official = base_url is None
        try:
            client = openai.OpenAI(
                # A key from the environment belongs to OpenAI. It is never sent to another address.
                api_key=api_key or ("none" if base_url else None),
                base_url=base_url,
                timeout=timeout_s,
                max_retries=retries,
                http_client=openai.DefaultHttpxClient(follow_redirects=False, timeout=timeout_s),
            )
        except openai.OpenAIError as error:
            raise ChatUnavailable(f"{name}: {error}") from error
        super().__init__(name, openai, client, openai.OpenAIError)

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:
        """Answer one prompt, or raise `ChatError`."""

        def request(schema: Schema | None) -> Reply:
            # OpenAI has renamed the limit. Compatible servers know the old name.
            limit = "max_completion_tokens" if self._official else "max_tokens"
            completion = self._client.chat.completions.create(
                model=self._model,
                messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
                extra_body={limit: max_tokens, **self._format(schema)},
            )
            choice, usage = completion.choices[0], completion.usage
            text = choice.message.content
            if not isinstance(text, str):
                raise ChatError(f"{self.name} answered without a text.")
            asked, answered = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
            return Reply(text, asked, answered, cut_off=choice.finish_reason == "length")

        return self._answer(schema, request)

    def _format(self, schema: Schema | None) -> dict[str, Any]:
        if schema is None:
            return {}
        if not self._official:
            # More servers support JSON without a schema. The prompt describes the fields.
            return {"response_format": {"type": "json_object"}}
        named = {"name": "answer", "schema": strict(schema), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}


class AnthropicChat(_VendorChat):
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


def _redact_message(error: Exception) -> str:
    from memoriter.text.redaction import redact  # loads many patterns, only needed after a failure

    return redact(str(error))[:300]


class _BadRequest(ChatError):
    """The server rejected the request itself."""


def strict(schema: Any) -> Any:
    """Return the schema in the subset that vendors enforce: all fields required, no others, no limits of length."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    dropped = ("title", "default", "minLength", "maxLength", "minimum", "maximum", "maxItems")
    result = {name: strict(value) for name, value in schema.items() if name not in dropped}
    if isinstance(properties := schema.get("properties"), Mapping):
        # A field may have the name of a keyword, such as "title".
        result["properties"] = {name: strict(value) for name, value in properties.items()}
        result |= {"required": list(properties), "additionalProperties": False}
    return result
