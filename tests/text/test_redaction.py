"""Secrets are redacted; text that only looks like a secret is not (X11)."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.evals.secrets import kinds, ordinary
from memoriter.text.redaction import find_secrets, redact, without_private

A40 = "abcdefghij0123456789ABCDEFGHIJ0123456789"
HEX32 = "0123456789abcdef0123456789abcdef"

#: Built from parts, so that no scanner takes this file for a leak.
SECRETS = {
    "openai key": ["sk-" + A40[:20] + "T3BlbkFJ" + A40[:20]],
    "anthropic key": ["sk-" + "ant-api03-" + A40],
    "github token": ["ghp" + "_" + A40[:36], "gho" + "_" + A40[:36], "github" + "_pat_" + A40],
    "gitlab token": ["glpat" + "-" + A40[:20]],
    "aws token": ["AKIA" + "IOSFODNN7EXAMPLE", "ASIA" + "IOSFODNN7EXAMPL2"],
    "aws key": ["AKIA" + "0123456789ABCDEF"],
    "slack token": ["xoxb" + "-123456789012-" + A40[:24], "xapp" + "-1-A012-345-" + HEX32],
    "webhook": ["https://hooks.slack.com/" + "services/T000/B000/" + A40[:24]],
    "google key": ["AIza" + A40[:35]],
    "google token": ["ya29." + A40, "GOCSPX-" + A40[:28]],
    "stripe token": ["sk" + "_live_" + A40[:24], "rk" + "_test_" + A40[:24]],
    "sendgrid token": ["SG." + A40[:22] + "." + A40 + "abc"],
    "twilio key": ["SK" + HEX32],
    "npm token": ["npm" + "_" + A40[:36]],
    "pypi token": ["pypi-" + "AgEIcHlwaS5vcmc" + A40 + A40],
    "hugging face token": ["hf" + "_" + A40[:34]],
    "telegram token": ["123456789:" + "AA" + A40[:33]],
    "digitalocean token": ["dop" + "_v1_" + HEX32 * 2],
    "shopify token": ["shpat" + "_" + HEX32],
    "databricks token": ["dapi" + HEX32],
    "alibaba key": ["LTAI" + "5tAbCdEfGhIjKlMn"],
    "tencent key": ["AKID" + A40[:32]],
    "vault token": ["hvs." + A40],
    "key": [
        "gsk" + "_" + A40,
        "xai-" + A40,
        "nvapi-" + A40,
        "sk-" + A40,
        "sk-" + "proj-" + A40 + "_-x",
        "zorp" + "_aw5u3qrk9PI8F7ThABXHoj",
    ],
    "bank account": ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"],
    "identity number": ["11010519491231002X"],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0." + A40],
    "card number": ["4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005", "6222020000000000000"],
}

WORDED = [
    ("password: hunter2!x", "hunter2!x"),
    ('"api_key": "q8Zr-77-kkLm"', "q8Zr-77-kkLm"),
    ("DB_PASSWORD=tr0ub4dor&3", "tr0ub4dor&3"),
    ("my passphrase is c0rrect-h0rse", "c0rrect-h0rse"),
    ("Authorization: Bearer 0123456789abcdef0123", "0123456789abcdef0123"),
    ("postgres://bob:s3cr3t@db.local/notes", "s3cr3t"),
    ("redis://:onlypass@cache:6379", "onlypass"),
    ("密码是 Abc12345，别告诉别人", "Abc12345"),
    ("口令：w0rd-w0rd", "w0rd-w0rd"),
    ("パスワードは pa55w0rd! です", "pa55w0rd!"),
    ("AccountKey=" + A40 + A40 + "==", A40 + A40 + "=="),
    ("数据库的密码改成了 Abc12345", "Abc12345"),
    ("密码是 123456", "123456"),
    ("PGPASSWORD=tr0ub4dor psql", "tr0ub4dor"),
    ("mysql -u root -ptr0ub4dor app", "tr0ub4dor"),
    ("<password>tr0ub4dor</password>", "tr0ub4dor"),
    ("I changed the admin password to tr0ub4dor", "tr0ub4dor"),
    ("My PIN is 4711", "4711"),
]

#: What people write every day and must not lose.
HARMLESS = [
    "the password is stored in the vault, ask Anna",
    "token: string; password: required",
    "api_key = os.environ['OPENAI_API_KEY']",
    "password = getpass()",
    "export TOKEN=${GITHUB_TOKEN}",
    "set password: <your password>",
    "The secret is well-known: write it down.",
    "key: primary-key, secret: none",
    "密码是存在保险箱里的，不要写下来",
    "密码：见内网文档",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b fixes it",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "phone +1 202-555-0173, 13800138000, order 1234567890123456",
    "timestamp 1770364143489123456 and 2026-02-08T10:00:00Z",
    "https://example.com:8080/path?token=abc",
    "git@github.com:owner/repo.git and user@example.com",
    "task-force, risk-averse, ask-me-anything-about-desk-organisation",
    "the bearer of bad news travels far",
    "-----BEGIN CERTIFICATE----- is not secret",
    "sk-learn is scikit-learn; akita; asian; skip-connections-in-a-residual-network",
    "ISBN 978-3-16-148410-0, IBAN DE89 3704 0044 0532 0130 01",
    "小区大门的密码是 4482",
    "The PIN is your birthday. Your PIN is required, pin it to your board.",
    "transfer MT2025120518056789 arrived",
    "test_http2_server_push_promise_with_priority_123 fails in AbstractSingletonProxyFactoryBean2",
    "call_aw5u3qrk9PI8F7ThABXHojeB timed out, pi_3MtwBwLkdIwHu7ix28a3tqPa needs confirmation",
    "sha512-aw5u3qrk9PI8F7ThABXHojeBaw5u3qrk9PI8F7ThABXHojeB== and subnet-0123456789abcdef0",
    "圆周率 3.14159265358979323846",
    "password: $PASSWORD, token: {token}, secret: (see vault), api_key: *****",
    "the password for the wifi is on the fridge",
    "Cookie: two eggs and flour",
    "login page, password field, machine room",
    "全角ＡＢＣ１２３ stays",
    "the recovery phrase is kept in the safe",
]


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in SECRETS.items() for text in texts]
)
def test_a_vendors_secret_is_replaced_by_its_kind(kind: str, text: str) -> None:
    assert redact(f"use {text}, please") == f"use [redacted {kind}], please"
    assert redact(f"用{text}。") == f"用[redacted {kind}]。"


@pytest.mark.parametrize(("text", "secret"), WORDED)
def test_a_named_secret_is_removed_and_its_name_stays(text: str, secret: str) -> None:
    cleaned = redact(text)
    assert secret not in cleaned
    assert cleaned.startswith(text.split(secret, maxsplit=1)[0])


@pytest.mark.parametrize(("part", "least"), [("development", 0.97), ("held_out", 0.95)])
def test_most_kinds_of_secrets_are_found_in_every_sentence(part: str, least: float) -> None:
    every = kinds(part)
    found = [kind for kind in every if not kind.missed]
    assert len(found) >= least * len(every)


def test_ordinary_text_is_hardly_ever_changed() -> None:
    texts = list(ordinary())
    assert len(texts) >= 2_000
    assert len([text for text in texts if find_secrets(text)]) <= 0.005 * len(texts)


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_is_not_changed(text: str) -> None:
    assert redact(text) == text


def test_a_password_is_removed_wherever_it_is_repeated() -> None:
    assert redact("tr0ub4dor&3 it is; my password is tr0ub4dor&3") == (
        "[redacted secret] it is; my password is [redacted secret]"
    )
    assert (
        redact("use tr0ub4dor3 as the database password") == "use [redacted secret] as the database password"
    )


def test_a_private_key_is_removed_even_if_it_is_cut_off() -> None:
    head, tail = "-----BEGIN RSA PRIVATE" + " KEY-----", "-----END RSA PRIVATE" + " KEY-----"
    body = "\n".join([A40] * 8)
    assert (
        redact(f"key:\n{head}\nProc-Type: 4,ENCRYPTED\n\n{body}\n{tail}\ndone")
        == "key:\n[redacted private key]\ndone"
    )
    assert redact(f"{head}\n{body}\nand then prose") == "[redacted private key]\nand then prose"
    assert redact(f"{head}\\n{A40}\\n{tail}") == "[redacted private key]"


ADVERSARIAL = [
    "eyJ" * 33_000,
    ("-----BEGIN PRIVATE" + " KEY-----") * 3_800,
    ("-----BEGIN PRIVATE" + " KEY-----") + "A" * 100_000,
    "password:" * 11_000,
    "password is " * 8_000,
    "1 " * 50_000,
    "1" * 100_000,
    "sk-" * 33_000,
    "://a:" * 20_000,
    "https://" * 12_000,
    "a.b-" * 25_000,
    "MNO" * 33_000,
    "bearer " * 14_000,
    "密码是" * 30_000,
    "<private>" * 11_000,
    "curl -u " * 12_000,
    "machine a login " * 6_000,
    "cookie: a=" * 10_000,
    "seed phrase is a " * 6_000,
    "password for a " * 7_000,
    "secret: " * 12_000,
    "secret: a_b " * 8_000,
    "heroku 1-" * 11_000,
    "abc8Q~" * 16_000,
    "client-key-data: " * 6_000,
    "\u200bｇｈｐ" * 20_000,
    "<private" + " " * 100_000,
    "密码是 a1b2c3d4 " * 40_000,
    " ".join(f"password: a1b2c3{number}" for number in range(20_000)),
    "secret_token_" * 20_000,
    "api_key=" * 250_000,
]


@pytest.mark.parametrize("text", ADVERSARIAL, ids=lambda text: text[:12])
def test_redaction_takes_linear_time(text: str) -> None:
    def seconds(given: str) -> float:
        started = time.process_time()
        without_private(redact(given))
        return time.process_time() - started

    assert seconds(text) < 20, "about 50 ms on a quiet core; minutes where it grows with the square"


def test_a_long_value_is_removed_whole_and_so_is_what_its_end_announces() -> None:
    long = "a1B2c3" * 300
    assert redact(f"password={long} and tea") == "password=[redacted secret] and tea"
    assert redact(f"password={long}_password: h4nd5aw tea").endswith(" tea")
    assert "h4nd5aw" not in redact(f"password={long}_password: h4nd5aw tea")


@given(st.text(alphabet=st.sampled_from("sk-ghp_A0b1 :=password密码是<>/.@\n4") | st.characters()))
def test_redaction_is_idempotent_for_any_text(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    places = find_secrets(text)
    assert all(left.end <= right.start for left, right in itertools.pairwise(places))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a <private>b</private> c", "a  c"),
        ("a <PRIVATE>b</Private >c", "a c"),
        ("a <private>b", "a "),
        ("a <private>b <private>c</private> d</private> e", "a  e"),
        ("b</private> c", "b c"),
        ("<private>x</private>y<private>z</private>", "y"),
        ("nothing here", "nothing here"),
        ("我喜欢茶<private>身份证 4401</private>。", "我喜欢茶。"),
    ],
)
def test_private_spans_are_removed(text: str, kept: str) -> None:
    assert without_private(text) == kept
