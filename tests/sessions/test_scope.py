"""Which sessions may use the memory, and that each refusal is logged once."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoriter.sessions.scope import Scope, ScopeCheck, ScopeRule, SessionKey

KINDS = [
    (None, True),
    ("agent:main:main", True),
    ("agent:main:telegram:direct:42", True),
    ("agent:main:whatsapp:dm:+15551234567", True),
    ("agent:main:telegram:direct:42:thread:7", True),
    ("3f2c1a9e-0000-4000-8000-000000000000", True),
    ("agent:main:telegram:group:42", False),
    ("AGENT:Main:Telegram:GROUP:42", False),
    ("agent:main:telegram:supergroup:42", False),
    ("agent:main:slack:channel:C1:thread:9", False),
    ("agent:main:matrix:room:!x", False),
    ("agent:main:subagent:7", False),
    ("cron:nightly", False),
    ("agent:main:telegram:direct:42:group:1", False),
    *((f"agent:main:{key}", False) for key in (
        "whatsapp:120363@g.us", "matrix:!room:example.org", "zulip:stream:general", "irc:#public", "signal:groups:7",
        "telegram:chat:-1001234", "xmpp:a@conference.example.org", "teams:19:meeting", "line:c4711", "slack:c1",
        "feishu:oc_1", "GROUP_1", "discord:guild:1:2", "mattermost:team:x",
    )),
    ("agent:main:matrix:dm:@anna:example.org", True),
    *((key, True) for key in ("work-2026", "agent:main:web", "user-7", "s1", "", "a" * 32, "Notes of May", "run-3f2a")),
    *((key, True) for key in ("组件重构", "slack-bot")),
    *((key, False) for key in (
        "mailing-list", "pr-12", "PR 7", "issue-44", "ticket_9",
        "C024BE91L", "G0123ABCD", "oc_5ce6d572455d3611", "4711@chatroom", "spaces/AAA", "12@newsletter", "GROUPCHAT",
        "channel1", "chatroom", "agent:main:C1", "agent:main:U42", "123456789012345678", "-1001234", "!abc", "#ge",
        "19_meeting_abc", "conv/7", "a@b", "R7f3kQ9", "T1Z9X8", "family group", "teamsync", "工作群", "x" * 500,
        "项目组", "討論組", "班级", "telegram-123", "Discord 42", "slack_7", "whatsapp491",
        "C0123", "oc_123456", "wg_abc", "GENERAL", "all-hands", "standup", "town-hall", "everyone", "announcements",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("key", "allowed"), KINDS)
def test_by_default_only_direct_chats_are_allowed(key: str | None, allowed: bool) -> None:
    assert Scope().allows(key) is allowed


def test_a_session_key_is_parsed() -> None:
    assert SessionKey.parse("agent:Main:Telegram:group:42") == SessionKey(
        "agent:main:telegram:group:42", "telegram:group:42", "telegram", "group"
    )
    assert SessionKey.parse("agent:main:main") == SessionKey("agent:main:main", "main", None, "direct")
    assert SessionKey.parse("cron:nightly") == SessionKey("cron:nightly", "cron:nightly", None, "unattended")
    assert SessionKey.parse("") == SessionKey("", "", None, "direct")


@pytest.mark.parametrize(
    ("rules", "key", "allowed"),
    [
        ([ScopeRule("allow", channel="slack")], "agent:main:slack:channel:C1", True),
        ([ScopeRule("allow", channel="Slack", chat_type="channel")], "agent:main:slack:channel:C1", True),
        ([ScopeRule("allow", channel="slack", chat_type="group")], "agent:main:slack:channel:C1", False),
        ([ScopeRule("allow", key_prefix="slack:channel:C1")], "agent:main:slack:channel:C1:thread:2", True),
        ([ScopeRule("allow", key_prefix="slack:channel:C1")], "agent:main:slack:channel:C2", False),
        ([ScopeRule("allow", key_prefix="agent:main:slack")], "agent:main:slack:channel:C1", True),
        ([ScopeRule("allow", key_prefix="agent:work:")], "agent:main:slack:channel:C1", False),
        ([ScopeRule("allow", chat_type="unattended")], "agent:main:cron:7", True),
    ],
)
def test_rules_by_channel_kind_and_prefix(rules: list[ScopeRule], key: str, allowed: bool) -> None:
    assert Scope(tuple(rules)).allows(key) is allowed


def test_the_first_rule_that_matches_decides() -> None:
    deny, allow = ScopeRule("deny", channel="telegram"), ScopeRule("allow", chat_type="direct")
    key = "agent:main:telegram:direct:42"
    assert not Scope((deny, allow)).allows(key)
    assert Scope((allow, deny)).allows(key)
    assert Scope((deny,), "allow").allows("agent:main:slack:group:1")


@given(st.text())
def test_any_text_is_parsed_as_a_key(key: str) -> None:
    assert Scope((), "allow").allows(key)
    assert not Scope((), "deny").allows(key)


@given(st.text(), st.sampled_from(["group", "channel"]))
def test_a_key_with_a_group_is_never_a_direct_chat(key: str, word: str) -> None:
    assert SessionKey.parse(f"agent:main:x:{word}:{key}").chat_type in ("group", "channel")


def test_a_refusal_is_logged_once_for_each_session(caplog: pytest.LogCaptureFixture) -> None:
    check = ScopeCheck()
    with caplog.at_level(logging.INFO, "memoriter"):
        for key in ("agent:main:x:group:1", "agent:main:x:group:2") * 3:
            assert not check.allows(key)
        assert check.allows("agent:main:main")
    assert [record.getMessage() for record in caplog.records] == [
        "session 'agent:main:x:group:1' may not use this memory (memory.scope); it gets empty answers",
        "session 'agent:main:x:group:2' may not use this memory (memory.scope); it gets empty answers",
    ]


def test_a_limited_number_of_refused_sessions_is_remembered() -> None:
    check = ScopeCheck()
    for number in range(3000):
        check.allows(f"agent:main:x:group:{number}")
    assert len(check._refused) == 1000
