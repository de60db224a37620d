"""How many tokens may be spent in a day, whichever process spends them.

What a call may cost at most is taken from the day's budget before it is made, and what it did not use is given back:
two processes together cannot overspend, and one that dies has spent too much on paper rather than in truth.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

from memoriter.errors import BudgetSpent, ChatError, ChatUnavailable, LockTimeout
from memoriter.files import durable
from memoriter.files.locks import file_lock
from memoriter.llm import Chat, Reply
from memoriter.text.measure import estimate_tokens

#: An estimate may be short of what a provider counts; so much is added to be on the safe side.
_MARGIN = 1.25


def local_today() -> date:
    """The day by the system's own clock and zone."""
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

    def complete(self, system: str, user: str, *, max_tokens: int) -> Reply:
        """Answer one prompt; raises `BudgetSpent` instead of asking when the day's tokens might not suffice."""
        reserved = int(estimate_tokens(system + user) * _MARGIN) + max_tokens
        day = self._book(reserved, refuse=True)
        try:
            reply = self._chat.complete(system, user, max_tokens=max_tokens)
        except ChatUnavailable:
            self._book(-reserved, day=day)  # nobody was asked, so nothing was spent
            raise
        used = reply.input_tokens + reply.output_tokens
        if used:  # a server that does not count is taken at our estimate
            self._book(used - reserved, day=day)
        return reply

    def spent(self) -> int:
        """Tokens of today."""
        day, used = self._read()
        return used if day == self._today().isoformat() else 0

    def close(self) -> None:
        """Close the model."""
        self._chat.close()

    def _book(self, tokens: int, *, refuse: bool = False, day: str = "") -> str:
        """Add to the day's tokens; what is given back after midnight belonged to another day."""
        try:
            with file_lock(self._ledger.with_name(f"{self._ledger.name}.lock")):
                return self._booked(tokens, refuse, day)
        except LockTimeout as error:
            raise ChatError(f"{self.name} is not asked: another process holds {self._ledger}.") from error

    def _booked(self, tokens: int, refuse: bool, day: str) -> str:
        today, used = self._today().isoformat(), self.spent()
        if refuse and used + tokens > self.daily_tokens:
            raise BudgetSpent(
                f"{self.name} is not asked: {used} of {self.daily_tokens} tokens (llm.daily_tokens)"
                f" are spent today, and this may take {tokens}."
            )
        if not day or day == today:
            self._write({"day": today, "used": max(0, used + tokens)})
        return today

    def _read(self) -> tuple[str, int]:
        try:
            kept = json.loads(self._ledger.read_text(encoding="utf-8"))
            return str(kept["day"]), int(kept["used"])
        except (OSError, ValueError, KeyError, TypeError):
            return "", 0

    def _write(self, kept: dict[str, object]) -> None:
        durable.write(self._ledger, json.dumps(kept).encode())
