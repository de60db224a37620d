"""A daily limit of tokens, shared by all processes.

Before a call, the most that it can cost is taken from the day's budget. Afterwards the unused part is returned. Two
processes cannot overspend together, and a process that dies has at worst booked too much.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

from memoriter.errors import BudgetSpent, ChatError, ChatUnavailable, LockTimeout
from memoriter.files.locks import file_lock
from memoriter.files.state import read_state, write_state
from memoriter.llm.chat import Chat, Reply, Schema
from memoriter.text.measure import estimate_tokens

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
