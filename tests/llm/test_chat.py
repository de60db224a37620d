"""The vendors' clients with a server that speaks their protocols and fails in many ways."""

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


def test_an_answer_has_its_cost(provider: str, chat: Chat, server: Server) -> None:
    server.answers = [ok(answer(provider, "好的。"))]
    assert chat.complete("be brief", "你好", max_tokens=50) == Reply("好的。", 11, 7)
    assert chat.name == f"{provider}/m"
    asked, headers = server.asked[0], server.headers[0]
    assert (asked["model"], asked["max_tokens"]) == ("m", 50)
    assert {"role": "user", "content": "你好"} in asked["messages"]
    assert asked.get("system", asked["messages"][0]["content"]) == "be brief"
    assert headers.get("x-api-key", headers.get("authorization", "")).endswith("k-1")


@pytest.mark.requirement("D2")
def test_the_temperature_is_low_unless_the_model_rejects_it(
    provider: str, chat: Chat, server: Server
) -> None:
    rejected = (
        b'{"error": {"message": "Unsupported value: temperature does not support 0.3 with this model."}}'
    )
    server.answers = [
        ok(answer(provider, "one")),
        (400, {"content-type": "application/json"}, rejected),
        ok(answer(provider, "two")),
        ok(answer(provider, "three")),
    ]
    assert [chat.complete("s", "u", max_tokens=5).text for _ in range(3)] == ["one", "two", "three"]
    assert [asked.get("temperature") for asked in server.asked] == [0.3, 0.3, None, None]


def test_a_call_to_a_busy_server_is_retried(provider: str, chat: Chat, server: Server) -> None:
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
def test_every_fault_is_a_chat_error(
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


def test_a_rejected_key_is_reported_and_not_shown(chat: Chat, server: Server) -> None:
    server.answers = [(401, {}, b'{"error": {"message": "bad key sk-abcdefghijklmnopqrstuvwxyz012345"}}')]
    with pytest.raises(ChatUnavailable, match="rejected the key") as caught:
        chat.complete("s", "u", max_tokens=5)
    assert "abcdefghij" not in str(caught.value)


def test_a_server_that_hangs_times_out(chat: Chat, server: Server) -> None:
    release = threading.Event()

    def hang() -> tuple[int, dict[str, str], bytes]:
        release.wait(20)
        return ok(b"{}")

    server.answers = [hang]
    with pytest.raises(ChatError, match="failed"):
        chat.complete("s", "u", max_tokens=5)
    release.set()


def test_an_unreachable_server_is_an_error(provider: str) -> None:
    chat = open_chat(
        provider, model="m", base_url="http://127.0.0.1:9", api_key="k", timeout_s=0.5, retries=0
    )
    with pytest.raises(ChatError, match="failed"):
        chat.complete("s", "u", max_tokens=5)
    chat.close()


def test_a_key_from_the_environment_is_not_sent_to_another_address(
    provider: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-the-environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment")
    server.answers = [ok(answer(provider, "x"))]
    chat = open_chat(provider, model="m", base_url=server.url + PROVIDERS[provider][0], retries=0)
    chat.complete("s", "u", max_tokens=5)
    chat.close()
    assert "from-the-environment" not in str(server.headers)


def test_without_a_provider_there_is_no_answer() -> None:
    chat = open_chat("none")
    assert isinstance(chat, NoChat)
    with pytest.raises(ChatUnavailable, match="No language model is configured"):
        chat.complete("s", "u", max_tokens=5)
    chat.close()


def test_wrong_settings_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChatUnavailable, match=r"llm\.model"):
        open_chat("openai")
    with pytest.raises(ChatError, match=r"Unknown llm\.provider 'mars'"):
        open_chat("mars", model="m")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ChatUnavailable):
        open_chat("openai", model="m")
    monkeypatch.setitem(__import__("sys").modules, "anthropic", None)
    with pytest.raises(ChatUnavailable, match=r"pip install 'anthropic>=[\d.]+'"):
        open_chat("anthropic", model="m")


SCHEMA = {
    "type": "object",
    "title": "Answer",
    "properties": {"title": {"type": "string", "minLength": 1}, "points": {"type": "array", "default": []}},
}
STRICT = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "points": {"type": "array"}},
    "required": ["title", "points"],
    "additionalProperties": False,
}


def test_a_schema_becomes_the_structured_output_of_the_provider(
    provider: str, chat: Chat, server: Server
) -> None:
    server.answers = [ok(answer(provider, "{}"))]
    chat.complete("s", "u", max_tokens=5, schema=SCHEMA)
    request = server.asked[0]
    if provider == "anthropic":
        assert request["output_config"] == {"format": {"type": "json_schema", "schema": STRICT}}
    else:
        assert request["response_format"] == {"type": "json_object"}


def test_openai_itself_gets_the_whole_schema(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
    server.answers = [ok(openai_body("{}"))]
    chat = open_chat("openai", model="m", api_key="k")
    chat.complete("s", "u", max_tokens=5, schema=SCHEMA)
    chat.close()
    assert server.asked[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": STRICT, "strict": True},
    }


def test_a_server_without_structured_output_is_called_without_it(
    provider: str, chat: Chat, server: Server
) -> None:
    unsupported = (400, {}, b'{"error": {"message": "unknown field"}}')
    server.answers = [unsupported, ok(answer(provider, "{}"))]
    for _ in range(2):
        assert chat.complete("s", "u", max_tokens=5, schema=SCHEMA).text == "{}"
    structured = ["response_format" in request or "output_config" in request for request in server.asked]
    assert structured == [True, False, False]


def test_an_answer_that_ended_at_the_limit_says_so(provider: str, chat: Chat, server: Server) -> None:
    body = answer(provider, "好的").replace(b'"stop"', b'"length"').replace(b'"end_turn"', b'"max_tokens"')
    server.answers = [ok(body)]
    assert chat.complete("be brief", "你好", max_tokens=50) == Reply("好的", 11, 7, cut_off=True)
