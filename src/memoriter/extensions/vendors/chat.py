"""A vendor's client as a `Chat`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memoriter.errors import ChatError, ChatUnavailable
from memoriter.llm.chat import Reply, Schema


class VendorChat:
    """Common base of the clients: errors, and structured output where the server supports it."""

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
