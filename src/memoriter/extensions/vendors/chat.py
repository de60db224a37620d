"""A vendor's client as a `Chat`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar

from memoriter.errors import ChatError, ChatUnavailable
from memoriter.llm.chat import Reply, Schema


class VendorChat(ABC):
    """Common base of the clients: errors, and structured output where the server supports it."""

    #: The provider, which is also its package, and the class of its client. The name of its base error follows.
    provider: ClassVar[str]
    client: ClassVar[str]

    def __init__(
        self, model: str, *, base_url: str | None, api_key: str | None, timeout_s: float, retries: int
    ) -> None:
        self._package = package = import_module(self.provider)
        self.name = f"{self.provider}/{model}"
        self._model = model
        self._official = base_url is None
        self._supports_schema = True
        #: Sent with every prompt. A low temperature keeps answers to the text.
        self.options: Mapping[str, object] = {"temperature": 0.3}
        self._base_error: type[Exception] = getattr(package, f"{self.client}Error")
        try:
            self._client: Any = getattr(package, self.client)(
                # A key from the environment belongs to the vendor. It is never sent to another address.
                api_key=api_key or ("none" if base_url else None),
                base_url=base_url,
                timeout=timeout_s,
                max_retries=retries,
                http_client=package.DefaultHttpxClient(follow_redirects=False, timeout=timeout_s),
            )
        except self._base_error as error:
            raise ChatUnavailable(f"{self.name}: {error}") from error

    def close(self) -> None:
        self._client.close()

    @abstractmethod
    def request(self, system: str, user: str, max_tokens: int, schema: Schema | None) -> Reply:
        """Send one prompt. Raise whatever the client raises."""

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:
        """Answer one prompt, or raise `ChatError`. If the server rejects the schema, ask again without it."""
        if schema is not None and self._supports_schema:
            try:
                return self._call(lambda: self.request(system, user, max_tokens, schema))
            except _BadRequest:
                self._supports_schema = False
        return self._call(lambda: self.request(system, user, max_tokens, None))

    def _call(self, request: Callable[[], Reply]) -> Reply:
        try:
            return self._send(request)
        except _BadRequest as error:
            if not self.options or "temperature" not in str(error):
                raise
        self.options = {}  # some models accept no temperature
        return self._send(request)

    def _send(self, request: Callable[[], Reply]) -> Reply:
        package: Any = self._package
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
