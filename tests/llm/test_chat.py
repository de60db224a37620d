"""The vendors' own clients against a server that speaks their protocol and fails in every way."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from chat_server import Server, anthropic_body, ok, openai_body

from memoriter.errors import ChatError, ChatUnavailable
from memoriter.llm import Chat, NoChat, Reply, open_chat

PROVIDERS = {"openai": ("/v1", openai_body), "anthropic": ("", anthropic_body)}


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def chat(provider: str, server: Server) -> Iterator[Chat]:
    base = server.url + PROVIDERS[provider][0]
    opened = open_chat(provider, model="m", base_url=base, api_key="k-1", timeout_s=0.5, retries=1)
    yield opened
    opened.close()


def answer(provider: str, text: str) -> bytes:
    return PROVIDERS[provider][1](text)


def test_it_answers_and_says_what_it_cost(provider: str, chat: Chat, server: Server) -> None:
    server.answers = [ok(answer(provider, "好的。"))]
    assert chat.complete("be brief", "你好", max_tokens=50) == Reply("好的。", 11, 7)
    assert chat.name == f"{provider}/m"
    asked, headers = server.asked[0], server.headers[0]
    assert (asked["model"], asked["max_tokens"]) == ("m", 50)
    assert {"role": "user", "content": "你好"} in asked["messages"]
    assert asked.get("system", asked["messages"][0]["content"]) == "be brief"
    assert headers.get("x-api-key", headers.get("authorization", "")).endswith("k-1")


def test_a_busy_server_is_asked_again(provider: str, chat: Chat, server: Server) -> None:
    server.answers = [
        (429, {"retry-after-ms": "10", "retry-after": "0.01"}, b"{}"),
        ok(answer(provider, "done")),
    ]
    assert chat.complete("s", "u", max_tokens=5).text == "done"
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "fault",
    [
        (500, {"retry-after-ms": "5"}, b"oops"),
        (400, {}, b'{"error": {"message": "no such model"}}'),
        (200, {"content-type": "text/html"}, b"<html>sign in</html>"),
        (200, {"content-type": "application/json"}, b'{"choices": [{"mess'),
        (200, {"content-type": "application/json"}, b"{}"),
        (200, {"content-type": "application/json"}, b"[]"),
        (200, {"content-type": "application/json"}, b"null"),
        (302, {"location": "http://169.254.169.254/latest/meta-data"}, b""),
    ],
    ids=["500", "400", "html", "cut off", "empty object", "list", "null", "redirect"],
)
def test_every_fault_is_one_error_in_words(
    chat: Chat, server: Server, fault: tuple[int, dict[str, str], bytes]
) -> None:
    server.answers = [fault]
    with pytest.raises(ChatError, match="/m "):
        chat.complete("s", "u", max_tokens=5)
    assert len(server.asked) <= 2


def test_an_answer_without_text_is_an_error(provider: str, chat: Chat, server: Server) -> None:
    server.answers = [ok(openai_body(None) if provider == "openai" else anthropic_body(""))]
    with pytest.raises(ChatError, match="without a text"):
        chat.complete("s", "u", max_tokens=5)


def test_a_refused_key_is_said_and_not_shown(chat: Chat, server: Server) -> None:
    server.answers = [(401, {}, b'{"error": {"message": "bad key sk-abcdefghijklmnopqrstuvwxyz012345"}}')]
    with pytest.raises(ChatUnavailable, match="refuses the key") as told:
        chat.complete("s", "u", max_tokens=5)
    assert "abcdefghij" not in str(told.value)


def test_a_silent_server_is_given_up_in_time(chat: Chat, server: Server) -> None:
    release = threading.Event()

    def hang() -> tuple[int, dict[str, str], bytes]:
        release.wait(20)
        return ok(b"{}")

    server.answers = [hang]
    with pytest.raises(ChatError, match="failed"):
        chat.complete("s", "u", max_tokens=5)
    release.set()


def test_nobody_listens(provider: str) -> None:
    chat = open_chat(
        provider, model="m", base_url="http://127.0.0.1:9", api_key="k", timeout_s=0.5, retries=0
    )
    with pytest.raises(ChatError, match="failed"):
        chat.complete("s", "u", max_tokens=5)
    chat.close()


def test_a_key_of_the_environment_goes_to_no_other_address(
    provider: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    server.answers = [ok(answer(provider, "x"))]
    chat = open_chat(provider, model="m", base_url=server.url + PROVIDERS[provider][0], retries=0)
    chat.complete("s", "u", max_tokens=5)
    chat.close()
    assert "from-the-environment" not in str(server.headers)


def test_without_a_provider_nobody_answers() -> None:
    chat = open_chat("none")
    assert isinstance(chat, NoChat)
    with pytest.raises(ChatUnavailable, match="No language model is configured"):
        chat.complete("s", "u", max_tokens=5)
    chat.close()


def test_wrong_settings_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChatUnavailable, match=r"llm\.model"):
        open_chat("openai")
    with pytest.raises(ChatError, match=r"no llm\.provider 'mars'"):
        open_chat("mars", model="m")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ChatUnavailable):
        open_chat("openai", model="m")
    monkeypatch.setitem(__import__("sys").modules, "memoriter.llm.anthropic", None)
    with pytest.raises(ChatUnavailable, match=r"memoriter\[anthropic\]"):
        open_chat("anthropic", model="m")
