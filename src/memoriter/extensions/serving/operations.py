"""The operations `tokens.*`: the tokens that programs use to call the gateway.

They create no token with the access `admin`: a program that has one for a moment could otherwise keep it for ever. The
command `memoriter token create` can.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from memoriter.config.fields import described
from memoriter.errors import BadArgument
from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Arguments, Call, Shape, operation

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.server.http.auth import Tokens


class TokenJson(Shape):
    """A token, without its secret."""

    id: str
    name: str
    access: str
    agents: list[str] = Field(description="Empty: every agent.")
    created_at: float


class TokensResult(Shape):
    """The tokens of this home."""

    tokens: list[TokenJson] = Field(default=[])


class CreateArguments(Arguments):
    name: str = Field(max_length=100, description="What the token is for.")
    access: Literal["read", "write"] = described("write", "What the token permits.")
    agents: list[str] = described([], "Only these agents. Empty: every agent.", max_length=100)


class CreatedResult(Shape):
    """A new token. It cannot be read again."""

    id: str = ""
    token: str = ""


class RevokeArguments(Arguments):
    id: str = Field(max_length=64, description="The id of the token.")


class RevokedResult(Shape):
    """A token that no longer works."""

    revoked: str = ""


@operation("tokens.list", owner_only=True)
def tokens(call: Call[NoArguments]) -> TokensResult:
    """List the tokens that programs use to call the gateway, without their secrets."""
    with open_tokens(call.memory.settings) as known:
        found = known.list()
    return TokensResult(tokens=[TokenJson.model_validate(token) for token in found])


@operation("tokens.create", read_only=False, owner_only=True)
def create(call: Call[CreateArguments]) -> CreatedResult:
    """Create a token that may read, or read and write, for all agents or for some. It is shown once."""
    asked, settings = call.arguments, call.memory.settings
    known = {settings.agent, *settings.gateway.agents}
    if unknown := [name for name in asked.agents if name not in known]:
        raise BadArgument(f"There is no agent {unknown[0]!r} here.", "agents")
    if not asked.name.strip():
        raise BadArgument("Give the token a name, so that you recognise it later.", "name")
    with open_tokens(settings) as known_tokens:
        token, secret = known_tokens.create(asked.access, agents=asked.agents, name=asked.name.strip())
    return CreatedResult(id=token.id, token=secret)


@operation("tokens.revoke", read_only=False, destructive=True, owner_only=True)
def revoke(call: Call[RevokeArguments]) -> RevokedResult:
    """Revoke a token. The next request with it is rejected."""
    with open_tokens(call.memory.settings) as known:
        return RevokedResult(revoked=known.revoke(call.arguments.id).id)


@contextmanager
def open_tokens(settings: Settings) -> Iterator[Tokens]:
    """Open the tokens of a home."""
    from memoriter.memory import gateway_files
    from memoriter.server.http.auth import Tokens

    with gateway_files(settings) as folder:
        yield Tokens(folder)
