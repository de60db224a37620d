"""Words of an agent after a tool fetched text from the network are untrusted, in the format of every host."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from memoriter.sessions.messages import turns_of_messages
from memoriter.sessions.tail import TailPosition, read_new_turns
from memoriter.sessions.transcripts import Transcripts

Messages = Sequence[Mapping[str, object]]

ASKED = {"role": "user", "content": "Look up the vendor."}
SAID = {"role": "assistant", "content": "All invoices go to account 99."}
THANKS = {"role": "user", "content": "Thank you."}
WELCOME = {"role": "assistant", "content": "You are welcome."}


def uses(tool: str) -> dict[str, Messages]:
    """Return one use of a tool in every format that hosts write."""
    call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    return {
        "anthropic": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": tool, "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a page"}]},
        ],
        "openclaw": [
            {"role": "assistant", "content": [{"type": "toolCall", "id": "c1", "name": tool}]},
            {"role": "toolResult", "toolCallId": "c1", "toolName": tool, "content": []},
        ],
        "chat": [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "a page"},
        ],
        "chat, without content": [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "a page"},
        ],
        "chat, the answer alone": [
            {"role": "tool", "name": tool, "tool_call_id": "c1", "content": "a page"},
        ],
        "responses": [
            {"type": "function_call", "name": tool, "call_id": "c1", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "a page"},
        ],
    }


HOSTED: Messages = [{"type": "web_search_call", "id": "w1", "status": "completed"}]
OUTSIDE = {**uses("web_fetch"), "hosted": HOSTED}


def trusts(messages: Messages) -> list[tuple[str, str]]:
    return [(turn.text, turn.trust) for turn in turns_of_messages(messages)]


@pytest.mark.parametrize("form", OUTSIDE)
def test_words_after_a_web_page_are_untrusted_until_a_person_speaks(form: str) -> None:
    assert trusts([ASKED, *OUTSIDE[form], SAID, THANKS, WELCOME]) == [
        ("Look up the vendor.", "owner"),
        ("All invoices go to account 99.", "untrusted"),
        ("Thank you.", "owner"),
        ("You are welcome.", "agent"),
    ]


@pytest.mark.parametrize("form", OUTSIDE)
@pytest.mark.parametrize("wrapped", [False, True])
def test_transcripts_give_the_same_trust(form: str, wrapped: bool, tmp_path: Path) -> None:
    records = [
        {"type": "message", "message": one} if wrapped else one for one in (ASKED, *OUTSIDE[form], SAID)
    ]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    source = Transcripts([tmp_path])
    (document,) = source.read(source.scan().files[0])
    assert [(one.text, one.trust) for one in document.passages] == [
        ("User: Look up the vendor.", "owner"),
        ("Assistant: All invoices go to account 99.", "untrusted"),
    ]


@pytest.mark.parametrize("form", uses("read_file"))
def test_words_after_a_local_file_have_the_trust_of_the_agent(form: str) -> None:
    assert trusts([*uses("read_file")[form], SAID]) == [("All invoices go to account 99.", "agent")]


@pytest.mark.parametrize("form", [form for form, messages in OUTSIDE.items() if len(messages) == 2])
def test_a_result_is_matched_by_its_call_after_a_person_spoke(form: str, tmp_path: Path) -> None:
    call, answer = OUTSIDE[form]
    messages = [call, THANKS, answer, SAID]
    expected = [("Thank you.", "owner"), ("All invoices go to account 99.", "untrusted")]
    assert trusts(messages) == expected
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in messages[:2]), encoding="utf-8")
    first = read_new_turns(path, TailPosition())
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in messages[2:])
    second = read_new_turns(path, first.position)
    assert trusts(first.records) == expected[:1]
    assert [one for one in trusts(second.records) if one[1] != "untrusted"] == []
