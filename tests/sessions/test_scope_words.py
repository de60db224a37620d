"""Every word that names a kind of chat in a session key, and every form of a key."""

from __future__ import annotations

import pytest

from memoriter.sessions.scope import ScopeCheck, ScopeRule, SessionKey

GROUPS = ("group", "groups", "supergroup", "room", "rooms", "space", "team", "guild", "server")
CHANNELS = ("channel", "channels", "stream", "topic", "public", "broadcast", "forum")
DIRECT = ("main", "direct", "dm", "dms", "im", "private")
UNATTENDED = ("subagent", "cron", "hook", "webhook", "heartbeat")
KINDS = {
    **dict.fromkeys(GROUPS, "group"),
    **dict.fromkeys(CHANNELS, "channel"),
    **dict.fromkeys(DIRECT, "direct"),
    **dict.fromkeys(UNATTENDED, "unattended"),
}


@pytest.mark.parametrize(("word", "kind"), KINDS.items())
def test_a_word_after_the_channel_decides_the_kind_of_chat(word: str, kind: str) -> None:
    key = SessionKey.parse(f"slack:{word}:42")
    assert (key.channel, key.chat_type) == ("slack", kind)


@pytest.mark.parametrize("word", ["main", "direct", "dm", "thread", *GROUPS, *CHANNELS, *UNATTENDED])
def test_a_word_for_a_kind_of_chat_is_not_a_channel(word: str) -> None:
    assert SessionKey.parse(f"{word}:42").channel is None


@pytest.mark.parametrize("shared", [*GROUPS, *CHANNELS])
def test_a_word_inside_a_part_names_a_group_too(shared: str) -> None:
    assert SessionKey.parse(f"slack:my_{shared}_1").chat_type == KINDS[shared]


@pytest.mark.parametrize(
    "shared", ["123@g.us", "!1", "#x", "&c", "+c", "@c", "-100", "a@muc.b", "a@conference.b"]
)
def test_marks_of_groups_in_ids_are_recognised(shared: str) -> None:
    assert SessionKey.parse(f"whatsapp:{shared}").chat_type == "group"


def test_the_id_of_a_person_in_a_direct_chat_may_look_like_that_of_a_group() -> None:
    assert SessionKey.parse("signal:dm:+15551234567").chat_type == "direct"


@pytest.mark.parametrize(
    ("text", "whole", "rest", "channel", "kind"),
    [
        ("agent:main:slack:dm:1", "agent:main:slack:dm:1", "slack:dm:1", "slack", "direct"),
        ("agent:main:main", "agent:main:main", "main", None, "direct"),
        ("agent:main", "agent:main", "agent:main", "agent", "direct"),
        (" Agent:X:Slack:1 ", "agent:x:slack:1", "slack:1", "slack", "unknown"),
        ("slack:x:1", "slack:x:1", "slack:x:1", "slack", "unknown"),
        ("abc", "abc", "abc", None, "direct"),
    ],
)
def test_keys_are_parsed(text: str, whole: str, rest: str, channel: str | None, kind: str) -> None:
    assert SessionKey.parse(text) == SessionKey(whole, rest, channel, kind)


def test_a_condition_that_does_not_hold_is_false() -> None:
    key = SessionKey.parse("agent:main:slack:dm:1")
    rules = [
        ScopeRule("allow", channel="telegram"),
        ScopeRule("allow", chat_type="group"),
        ScopeRule("allow", key_prefix="x"),
    ]
    assert [rule.matches(key) for rule in rules] == [False, False, False]
    assert ScopeRule("allow").matches(key) is True
    assert ScopeCheck().allows("slack:group:1") is False


def test_a_mark_of_a_group_before_the_word_for_a_direct_chat_names_a_group() -> None:
    assert SessionKey.parse("whatsapp:123@g.us:dm:1").chat_type == "group"


def test_a_long_id_under_an_agent_is_a_session_of_the_owner() -> None:
    assert SessionKey.parse(f"agent:main:{'0123456789abcdef' * 2}").chat_type == "direct"
    assert SessionKey.parse("agent:main:c1").chat_type == "unknown"
