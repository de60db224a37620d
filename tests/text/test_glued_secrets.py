"""A secret is found when other text is joined to it, when it is escaped, coloured, or split over lines."""

from __future__ import annotations

import pytest

from memoriter.text.redaction import find_secrets, redact

BODY = "a1B2c3D4e5F6a7B8c9D0e1F2a3B4c5D6e7F8"
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
UUID = "9d278692-991b-40e1-a9d8-4c79ad66f530"
TOKENS = [
    f"ghp_{BODY}", f"ghp_{BODY[:30]}", f"github_pat_{BODY[:22]}_{BODY}", f"glpat-{BODY[:20]}", f"sk-{HEX}",
    f"sk-or-v1-{HEX}{HEX}", f"sk-lf-{UUID}", f"sk_live_{BODY[:24]}", f"AKIA{'ABCDEFGHIJKLMNOP'}", f"AIza{BODY[:35]}",
    f"xoxb-123456789012-123456789012-{BODY[:24]}", f"hf_{BODY[:34]}", f"npm_{BODY}", f"dapi{HEX}", f"sbp_{HEX}0a1b2c3d",
    f"fc-{HEX}", f"key-{HEX}", f"pul-{HEX}0a1b2c3d", f"dop_v1_{HEX}{HEX}", f"rubygems_{HEX}{HEX[:16]}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJ{BODY[:20]}.{BODY}", f"hvs.{BODY[:24]}", f"mmr_{BODY}",
]  # fmt: skip
AROUND = {
    "a letter": "k{}", "an upper-case letter": "K{}", "a digit": "7{}", "an underscore": "_{}", "emphasis": "_{}_",
    "strong emphasis": "__{}__", "a name": "my_{}", "a sign": "@{}", "a plus": "+{}", "a path": "see a/{}/b",
    "an address": "git clone https://{}@git.example.org/a.git", "a quote": '"{}"', "typographic quotes": "“{}”",
    "Chinese": "令牌{}不要外传", "Japanese": "キーは{}です", "zero-width characters": "a\u200b{}\u200b b",
    "a letter after it": "{}k", "a word after it": "{}_old", "JSON in JSON": r'"x\n{}\n"', "an escaped tab": r"a\t{}",
    "an escaped quote": r"\u0022{}\u0022", "an encoded quote": "a=%22{}%22", "a colour": "\x1b[32m{}\x1b[0m",
    "an escaped colour": r"\u001b[1;31m{}\u001b[0m", "YAML": "k: {}", "an assignment": "X={}", "a query": "https://x.org/?a={}&b=1",
    "code": "`{}`", "a link": "[a]({})",
}  # fmt: skip
BREAKS = {
    "a line": "\n", "an indented line": "\n    ", "a line of Windows": "\r\n", "a quoted line": "\n> ",
    "quoted-printable": "=\n", "a shell": "\\\n", "parts of a string": '" +\n    "', "an escape": r"\n",
}  # fmt: skip


@pytest.mark.parametrize("around", [pytest.param(text, id=name) for name, text in AROUND.items()])
@pytest.mark.parametrize("token", TOKENS)
def test_other_text_around_a_token_does_not_hide_it(token: str, around: str) -> None:
    assert token[-12:] not in redact(around.replace("{}", token))


@pytest.mark.parametrize("end", [pytest.param(text, id=name) for name, text in BREAKS.items()])
@pytest.mark.parametrize(
    "token", [f"ghp_{BODY}", f"glpat-{BODY[:20]}", f"sk-ant-api03-{BODY}{BODY}", f"sk-{HEX}"]
)
def test_the_end_of_a_line_does_not_hide_the_rest_of_a_token(token: str, end: str) -> None:
    middle = len(token) // 2
    cleaned = redact(f'The value "{token[:middle]}{end}{token[middle:]}" is new.')
    assert token[middle - 8 : middle] not in cleaned
    assert token[-8:] not in cleaned
    assert cleaned.endswith('" is new.')


@pytest.mark.parametrize(
    "after", ["Thanks for it.", "2026-11-18 is the day.", "Anna has the other one.", "MAX_ITEMS is 3"]
)
def test_the_line_after_a_token_stays(after: str) -> None:
    assert redact(f"Use ghp_{BODY}\n{after}") == f"Use [redacted github token]\n{after}"


@pytest.mark.parametrize(
    "text",
    [
        f"task-{HEX}", f"risk-{UUID}", f"The disk-{HEX[:24]} is full.",
        "network_test_configuration", "task_live_performance",
        "https://files.example.org/a/sk-toggleable__control-label-arrow2", "_lib.X509_STORE_CTX_get_error",
        "_WIN32_CLIENT_RELEASES.get", "PROTOCOL_TLSv1\nPROTOCOL_TLSv1_1\nPROTOCOL_TLSv1_2",
        r"C:\new\table\report-2026-final.txt",
        "data:application/octet-stream;base64,AAEAAAALAIAAAwAwT1MvMg8SBfAAAAC8AAAAYGNtYXAXVtKJ",
        f"user@host:~/{HEX[:12]}",
        "\x1b[32m12 passed\x1b[0m, 1 skipped in 3.21s", f"{HEX}\n{HEX[::-1]}\n", "100%25 of the 2%20 files",
    ],
)  # fmt: skip
def test_names_and_ids_that_end_like_a_prefix_stay(text: str) -> None:
    assert not find_secrets(text)
