"""Language models: the interface, the models that extensions offer, and the budget of a day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from memoriter.errors import BudgetSpent, ChatError, ChatUnavailable, LockTimeout
from memoriter.extension import offers, suggest
from memoriter.files.locks import file_lock
from memoriter.files.state import read_state, write_state
from memoriter.text.tokens import estimate_tokens

#: A JSON schema for the answer.
Schema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer and its cost."""

    text: str
    input_tokens: int
    output_tokens: int
    #: Whether the answer ended at the limit of tokens.
    cut_off: bool = False


class Chat(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """Provider and model, such as "provider/model". Notes made with the model show it."""
        ...

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:
        """Answer one prompt, or raise `ChatError`.

        With a ``schema`` the provider is asked for JSON. Servers that do not support this answer with plain text.
        """
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class NoChat:
    """The model when none is configured."""

    name = "none"

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:  # noqa: ARG002
        raise ChatUnavailable("No language model is configured (llm.provider).")

    def close(self) -> None:
        """Do nothing."""


class Deferred:
    """A model that opens with the first prompt. A client takes a second to load, and may not be installed."""

    def __init__(self, name: str, open_chat: Callable[[], Chat]) -> None:
        self.name = name
        self._open_chat = open_chat
        self._chat: Chat | None = None

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:
        """Answer one prompt, or raise `ChatError`, also when the model cannot be opened."""
        if self._chat is None:
            self._chat = self._open_chat()
        return self._chat.complete(system, user, max_tokens=max_tokens, schema=schema)

    def close(self) -> None:
        """Close the model if it is open."""
        if self._chat is not None:
            self._chat.close()


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
    offer = offers("chats").get(provider)
    if offer is None:
        raise ChatError(f"Unknown llm.provider {provider!r}. {suggest(provider, ('none', *offers('chats')))}")
    if not model:
        raise ChatUnavailable(f"Set llm.model to a model of {provider}.")
    try:
        chat: Chat = offer.load()(
            model, base_url=base_url, api_key=api_key, timeout_s=timeout_s, retries=retries
        )
    except ImportError as error:
        raise ChatUnavailable(f"The client of {provider} is not installed: {offer.install}.") from error
    return chat


#: The estimate may be lower than a provider's count, so it is multiplied by this factor.
_MARGIN = 1.25


def local_today() -> date:
    """Return the day in the system's time zone."""
    return date.today()  # noqa: DTZ011


class Budgeted:
    """A `Chat` that answers until the day's tokens are spent."""

    def __init__(
        self, chat: Chat, ledger: Path, *, daily_tokens: int, today: Callable[[], date] = local_today
    ) -> None:
        self.name = chat.name
        self.daily_tokens = daily_tokens
        self._chat = chat
        self._ledger = ledger
        self._today = today

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:
        """Answer one prompt, or raise `BudgetSpent` without a call if the day's tokens might not suffice."""
        reserved = int(estimate_tokens(system + user) * _MARGIN) + max_tokens
        day = self._book(reserved, refuse=True)
        try:
            reply = self._chat.complete(system, user, max_tokens=max_tokens, schema=schema)
        except ChatUnavailable:
            self._book(-reserved, day=day)  # the model was not called
            raise
        used = reply.input_tokens + reply.output_tokens
        if used:  # otherwise the server does not count, and the estimate stays
            self._book(used - reserved, day=day)
        return reply

    def spent(self) -> int:
        """Return the tokens spent today."""
        stored = read_state(self._ledger)
        used = stored.get("used")
        is_today = stored.get("day") == self._today().isoformat()
        return used if is_today and isinstance(used, int) else 0

    def close(self) -> None:
        """Close the model."""
        self._chat.close()

    def _book(self, tokens: int, *, refuse: bool = False, day: str = "") -> str:
        """Add to the day's tokens. Tokens returned after midnight belong to the day before and are dropped."""
        try:
            with file_lock(self._ledger.with_name(f"{self._ledger.name}.lock")):
                return self._book_locked(tokens, refuse, day)
        except LockTimeout as error:
            raise ChatError(
                f"{self.name} was not called: another process has locked {self._ledger}."
            ) from error

    def _book_locked(self, tokens: int, refuse: bool, day: str) -> str:
        today, used = self._today().isoformat(), self.spent()
        if refuse and used + tokens > self.daily_tokens:
            raise BudgetSpent(
                f"{self.name} was not called: {used} of {self.daily_tokens} tokens (llm.daily_tokens)"
                f" are spent today, and this call may take {tokens}."
            )
        if not day or day == today:
            write_state(self._ledger, {"day": today, "used": max(0, used + tokens)})
        return today
