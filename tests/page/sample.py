"""A memory after some weeks of use: notes, sessions, entries, recalls. For tests and screenshots."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator

from serving import Served

from memoriter.testing import sample_workspace

ENTRIES: tuple[tuple[str, str, float, tuple[str, ...]], ...] = (
    ("Prefers short answers with the command first", "user_preference", 5, ("style",)),
    ("Coffee only before noon", "user_preference", 2, ("food",)),
    ("Vegetarian, and allergic to hazelnuts", "user_preference", 5, ("food", "health")),
    ("Works in the Europe/Lisbon time zone", "fact", 4, ()),
    ("The staging server is a rented machine in Frankfurt", "project_context", 3, ("fern", "servers")),
    ("Fern's server is written in Python, the app in Kotlin", "project_context", 4, ("fern",)),
    ("Leaf diagnosis runs on the phone, as photos of homes should not leave it", "technical_decision", 5, ("fern",)),
    ("Sign-in is by e-mail link; there are no passwords", "technical_decision", 4, ("fern",)),
    ("Logs are kept for fourteen days", "technical_decision", 3, ("servers",)),
    ("Nothing is deployed on a Friday after lunch", "workflow", 4, ("deploy",)),
    ("Invoices go out on the first working day of the month, in euros", "workflow", 3, ("money",)),
    ("Runs three times a week on soft ground", "workflow", 2, ("health",)),
    ("Tomás reads messages at ten and at four; phone him when it is urgent", "relationship", 4, ("people",)),
    ("妈妈住在成都，膝盖不好，走路不能太久", "relationship", 4, ("people",)),
    ("表妹小雨在东京学建筑，六月毕业", "relationship", 3, ("people",)),
    ("每个月十号定投指数基金，金额固定", "workflow", 3, ("money",)),
    ("单只股票不超过总资产的百分之五", "technical_decision", 4, ("money",)),
    ("Knows Kotlin well, is new to Swift", "skill", 3, ()),
    ("会做酸面包，含水量百分之七十五最合适", "skill", 2, ("food",)),
    ("The half marathon in Cascais is on 18 October", "fact", 3, ("health",)),
    ("The domain fern.garden is paid for three years", "fact", 2, ("fern",)),
    ("The garden centre in Porto wants reminders to pause during holidays", "project_context", 3, ("fern",)),
)  # fmt: skip

DAY_S = 86_400.0

QUESTIONS = (
    "does she prefer short answers?",
    "can we deploy on a Friday after lunch?",
    "妈妈住在哪里？",
    "where does leaf diagnosis run, and why?",
    "when do invoices go out?",
)

SESSION = (
    ("user", "Remember that the backups of staging go to a second machine in Nuremberg."),
    ("assistant", "Noted. Shall I change the deploy script as well?"),
    ("user", "Yes. We decided to use Caddy as the reverse proxy."),
    ("assistant", "Done: the script copies to the second machine, and Caddy is in front."),
)


def fill(gateway: Served) -> None:
    """Write notes and a session, add entries, change some, and recall."""
    sample_workspace(gateway.workspace)
    gateway.write(
        "memory/projects/launch.md",
        "# Launch list\n\n- [x] Price for the garden centre\n- [ ] Screenshots in two languages\n\n"
        "| what | who | by |\n| --- | --- | ---: |\n"
        "| Store page | Tomás | 12 March |\n| Press text | Mira | 14 March |\n\n"
        "> Nothing is deployed on a Friday after lunch.\n\nSee [the app](fern.md) and <https://fern.garden>.\n",
    )
    gateway.session("2026-02-10-servers", *SESSION)
    gateway.ask("memory.sync")
    gateway.ask("entries.import", data="\n".join(exported(time.time())))
    messages = [{"role": role, "content": text} for role, text in SESSION]
    gateway.ask("capture", messages=messages, session="2026-02-10-servers")
    for question in QUESTIONS:
        gateway.ask("recall", query=question, session="2026-02-10-servers")


def exported(now: float) -> Iterator[str]:
    """Yield the entries as an export, each with the day on which it was learned."""
    for number, (text, kind, importance, tags) in enumerate(ENTRIES):
        at = now - DAY_S * (1 + 2.3 * number + number**2 % 5)
        entry = {
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, text)),
            "text": text,
            "type": kind,
            "importance": importance,
            "tags": tags,
            "source": "conversation",
            "created_at": at,
            "updated_at": at,
            "valid_from": at,
            "expires_at": now + 300 * DAY_S,
        }
        first = {"seq": number + 1, "change": number + 1, "at": at, "kind": "add", "by": "owner", "note": ""}
        yield json.dumps({"entry": entry, "history": [{**first, "entry_id": entry["id"], "after": entry}]})
