"""The daily limit of tokens: enforced before a call, stored on disk, returned when unused."""

from __future__ import annotations

import json
import os
import stat
from datetime import date
from pathlib import Path

import pytest

from memoriter.errors import BudgetSpent, ChatError, ChatUnavailable
from memoriter.llm import Deferred, Reply, Schema
from memoriter.llm.chat import Budgeted


class Counting:
    name = "fake/m"

    def __init__(self, cost: tuple[int, int] = (10, 10)) -> None:
        self.cost, self.calls, self.fails = cost, 0, False

    def complete(self, system: str, user: str, *, max_tokens: int, schema: Schema | None = None) -> Reply:
        self.calls += 1
        if self.fails:
            raise ChatError("no")
        return Reply("x", *self.cost)

    def close(self) -> None:
        pass


DAYS = [date(2026, 2, 8)]


def budgeted(chat: Counting, tmp_path: Path, limit: int = 100) -> Budgeted:
    return Budgeted(chat, tmp_path / "agent/tokens.json", daily_tokens=limit, today=lambda: DAYS[-1])


def test_used_tokens_are_counted_across_restarts(tmp_path: Path) -> None:
    chat = Counting()
    budgeted(chat, tmp_path).complete("s", "u", max_tokens=50)
    again = budgeted(chat, tmp_path)
    assert again.spent() == 20
    assert json.loads((tmp_path / "agent/tokens.json").read_text()) == {"day": "2026-02-08", "used": 20}
    if os.name == "posix":  # elsewhere the home is private as a whole
        assert stat.S_IMODE((tmp_path / "agent/tokens.json").stat().st_mode) == 0o600


def test_a_call_that_might_cost_too_much_is_not_made(tmp_path: Path) -> None:
    chat = Counting((30, 30))
    budget = budgeted(chat, tmp_path)
    budget.complete("s", "u", max_tokens=50)
    with pytest.raises(BudgetSpent, match=r"60 of 100 tokens \(llm\.daily_tokens\)"):
        budget.complete("s", "u", max_tokens=50)
    assert (chat.calls, budget.spent()) == (1, 60)
    budget.complete("s", "u", max_tokens=30)
    with pytest.raises(BudgetSpent):
        budget.complete("s", "字" * 100, max_tokens=1)


def test_a_new_day_starts_with_nothing_spent(tmp_path: Path) -> None:
    chat = Counting((40, 40))
    budget = budgeted(chat, tmp_path)
    budget.complete("s", "u", max_tokens=50)
    DAYS.append(date(2026, 2, 9))
    try:
        budget.complete("s", "u", max_tokens=50)
        assert budget.spent() == 80
    finally:
        DAYS.pop()


def test_a_failed_call_stays_booked_because_it_may_have_been_billed(tmp_path: Path) -> None:
    chat = Counting()
    chat.fails = True
    budget = budgeted(chat, tmp_path)
    with pytest.raises(ChatError):
        budget.complete("s", "u", max_tokens=50)
    assert budget.spent() >= 50


def test_the_estimate_counts_if_the_server_reports_no_usage(tmp_path: Path) -> None:
    budget = budgeted(Counting((0, 0)), tmp_path)
    budget.complete("s", "u", max_tokens=50)
    assert budget.spent() >= 50


def test_a_broken_ledger_is_replaced(tmp_path: Path) -> None:
    budget = budgeted(Counting(), tmp_path)
    budget.complete("s", "u", max_tokens=50)
    (tmp_path / "agent/tokens.json").write_text("{broken")
    budget.complete("s", "u", max_tokens=50)
    assert budget.spent() == 20


def test_a_model_that_cannot_be_opened_costs_nothing(tmp_path: Path) -> None:
    def opening() -> Counting:
        raise ChatUnavailable("not installed")

    budget = Budgeted(Deferred("openai/m", opening), tmp_path / "tokens.json", daily_tokens=100)
    with pytest.raises(ChatUnavailable, match="not installed"):
        budget.complete("s", "u", max_tokens=50)
    assert budget.spent() == 0
    budget.close()
