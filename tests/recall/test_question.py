"""The query of a conversation: the user's newest message, and words that recur in the last messages."""

from __future__ import annotations

import pytest

from memoriter.recall.inject import MAX_MESSAGES, MAX_QUERY_CHARS, MAX_RECURRING_WORDS, question

Message = dict[str, object]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


@pytest.mark.requirement("D8")
def test_the_newest_message_comes_first_then_recurring_words() -> None:
    messages = [
        user("The heron databases 数据库备份 and Oslo"),
        assistant("About the heron database 数据库备份: yes"),
        user("So the heron has a database 数据库备份 then, not Oslo"),
        user("On which day of the week does it run?"),
    ]
    newest, *again = question(messages).partition("run?")
    words = "".join(again[1:]).split()
    assert newest == "On which day of the week does it "
    assert {"heron", "database", "备份"} <= set(words)
    assert not {"Oslo", "About", "yes"} & set(words)
    assert len(words) <= MAX_RECURRING_WORDS


def test_recalled_blocks_are_not_part_of_the_question() -> None:
    put_in = (
        '<relevant-memories recall="x">heron</relevant-memories> <system-reminder>heron</system-reminder>'
    )
    assert question(
        [*[user(f"{put_in}heron?")] * 2, user(f"{put_in}When does the train to Lyon leave?")]
    ) == ("When does the train to Lyon leave?")


def test_a_short_message_is_joined_with_the_one_before() -> None:
    assert question([user("Shall we move the backups to Porto?"), assistant("Yes."), user("And why?")]) == (
        "Shall we move the backups to Porto?\nAnd why?"
    )


def test_only_recent_and_trusted_messages_count() -> None:
    old = [user("The heron"), assistant("the heron")] * 2
    page = {"role": "assistant", "content": [{"type": "tool_use", "name": "web_fetch"}]}
    poison = [page, *[assistant("evil account")] * 4]
    asked = [user(f"Number {word} of them, please?") for word in ("one", "two", "three", "four", "five")]
    words = question([*old, *poison, *asked, *asked]).split()
    assert MAX_MESSAGES == 10
    assert "heron" not in words
    assert "evil" not in question([*poison, user("Where do the invoices of March go?")]).split()


def test_an_empty_and_a_very_long_question() -> None:
    assert question([]) == question([assistant("Hello, hello.")]) == ""
    assert len(question([user("word " * 10_000)])) <= MAX_QUERY_CHARS
