"""One sample of every form of every kind of secret, and what only looks like one."""

from __future__ import annotations

import re

import pytest

from memoriter.text.redaction import find_secrets, redact, redact_part, without_private
from memoriter.text.secret_forms import PREFIXES, Secret

BODY = "a1B2c3D4e5F6a7B8c9D0e1F2a3B4c5D6e7F8a9B0c1D2e3F4a5B6c7D8e9F0a1B2"
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"
WORDS = "apple banana cherry grape lemon mango olive peach pear plum quince"
#: By kind: texts that are secrets as a whole.
TOKENS = {
    "anthropic key": [f"sk-ant-{BODY[:16]}"],
    "openai key": [f"sk-{BODY[:20]}", f"sk-proj-{BODY[:20]}"],
    "github token": [*(f"gh{kind}_{BODY[:30]}" for kind in "pousr"), f"github_pat_{BODY[:22]}"],
    "gitlab token": [
        f"gl{kind}-{BODY[:20]}" for kind in ("pat", "ptt", "dt", "rt", "cbt", "ft", "soat", "imt", "agent")
    ],
    "aws key": [f"{prefix}{BODY[:16].upper()}" for prefix in ("AKIA", "ASIA", "ABIA", "ACCA")],
    "slack token": [*(f"xox{kind}-{BODY[:16]}" for kind in "abceoprs"), f"xapp-{BODY[:16]}"],
    "webhook": [
        f"https://hooks.slack.com/services/{BODY[:20]}",
        f"https://hooks.slack.com/workflows/{BODY[:20]}",
        f"https://discord.com/api/webhooks/12345/{BODY[:20]}",
        f"https://ptb.discordapp.com/api/webhooks/12345/{BODY[:20]}",
        f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={BODY[:10]}",
        f"https://oapi.dingtalk.com/robot/send?access_token={BODY[:20]}",
        f"https://open.feishu.cn/open-apis/bot/v2/hook/{BODY[:20]}",
        f"https://open.larksuite.com/open-apis/bot/v2/hook/{BODY[:20]}",
    ],
    "google key": [f"AIza{BODY[:35]}"],
    "google token": [f"ya29.{BODY[:20]}", f"GOCSPX-{BODY[:20]}"],
    "stripe key": [f"{kind}k_{mode}_{BODY[:16]}" for kind in "rsp" for mode in ("live", "test")],
    "webhook key": [f"whsec_{BODY[:20]}"],
    "sendgrid key": [f"SG.{BODY[:16]}.{BODY[:30]}"],
    "twilio key": [f"SK{HEX[:32]}"],
    "npm token": [f"npm_{BODY[:30]}"],
    "pypi token": [f"pypi-{BODY[:40]}"],
    "hugging face token": [f"hf_{BODY[:30]}"],
    "telegram token": [f"12345678:AA{BODY[:30]}"],
    "discord token": [f"{first}{BODY[:22]}.{BODY[:6]}.{BODY[:27]}" for first in "MNO"],
    "digitalocean token": [f"do{kind}_v1_{HEX}" for kind in "opr"],
    "shopify token": [f"shp{kind}_{HEX[:32]}" for kind in ("at", "ca", "pa", "ss")],
    "databricks token": [f"dapi{HEX[:32]}", f"dapi{HEX[:32]}-2"],
    "alibaba key": [f"LTAI{BODY[:12]}"],
    "tencent key": [f"AKID{BODY[:13]}"],
    "memoriter token": [f"mmr_{BODY[:30]}"],
    "notion token": [f"secret_{BODY[:32]}"],
    "mailgun key": [f"key-{HEX[:32]}", "key-3ax6xnjp29jd6fds4gc373sgvjxteol0"],
    "heroku key": [f"HRKU-{BODY[:30]}"],
    "dropbox token": [f"sl.{BODY[:40]}"],
    "azure secret": [f"aB38Q~{BODY[:31]}"],
    "vault token": [f"hv{kind}.{BODY[:20]}" for kind in "sbr"],
    "key": [
        f"{prefix}{BODY[:22]}"
        for prefix in (
            *("gsk_", "xai-", "pplx-", "tvly-", "r8_", "lin_api_", "ntn_", "sbp_", "glsa_", "sntrys_", "sntryu_"),
            *("NRAK-", "PMAK-", "pscale_tkn_", "pscale_pw_", "dp.pt.", "jina_", "nvapi-", "sq0atp-", "sq0csp-"),
            *("EAAA", "AGE-SECRET-KEY-1"),
        )
    ],
    "azure key": [f"{name}={BODY[:40]}==" for name in ("AccountKey", "SharedAccessKey", "sig")],
    "jwt": [f"eyJ{BODY[:8]}.{BODY[:8]}.{BODY[:8]}"],
    "card number": [
        *("341111111111111", "371111111111114", "4111111111111111", "4111111111111111110"),
        *("5111111111111118", "5211111111111117", "5311111111111116", "5411111111111115", "5511111111111114"),
        *("2221111111111112", "2720111111111118", "6011111111111117", "6511111111111112", "3511111111111119"),
        *("6211111111111115", "62111111111111119", "621111111111111112", "6211111111111111116"),
        *("4111 1111 1111 1111", "4111-1111-1111-1111"),
    ],
}  # fmt: skip
#: Texts with a secret in them: before it, the secret, after it, and its kind.
NAMED = [
    ("mot de passe du compte : ", "Ch1en-Roux", "", "secret"),
    ("la contraseña del correo es ", "Gato$Rojo31", "", "secret"),
    ("Das Kennwort für den Router wurde auf ", "nord-8812-Tor", " geändert", "secret"),
    ("wallet seed: ", f"{WORDS} raisin", "", "seed phrase"),
    ("the heroku key is ", "01234567-89ab-cdef-0123-456789abcdef", " now", "heroku key"),
    ("curl -u anna:", "hunter2", " https://x.org", "password"),
    ("curl --user=anna:", "hunter2", "", "password"),
    ("machine x.org login anna password ", "hunter2", "", "password"),
    ("default login anna password ", "hunter2", "", "password"),
    ("Cookie: ", "sid=abcdefgh; theme=d", "", "cookie"),
    ("set-cookie: ", "sid=abcdefgh", "", "cookie"),
    ("sessionid=", BODY[:16], "", "cookie"),
    ("connect.sid=", BODY[:16], "", "cookie"),
    ("client-key-data: ", BODY[:20], "", "private key"),
    *((f"{name}: ", f"{WORDS} zebra", "", "seed phrase") for name in (
        "seed phrase", "recovery words", "backup phrase", "mnemonic", "助记词", "助記詞",
    )),
    ("Authorization: Bearer ", f"{BODY[:16]}==", "", "bearer token"),
    ("authorization: basic ", BODY[:16], "", "bearer token"),
    ("postgres://anna:", "hunter2", "@host/db", "password"),
    *((f"{name}: ", "hunter2!", "", "secret") for name in (
        "password", "passwd", "passphrase", "passcode", "pass", "pwd", "secret", "api key", "access_key", "token",
        "auth-token", "client secret", "aws_secret_access_key", "private_key_id",
    )),
    ("the password for prod is ", "hunter2!", ", keep it", "secret"),
    *((f"{name}：", "hunter2!", "", "secret") for name in (
        "密码", "口令", "密钥", "私钥", "令牌", "密碼", "金鑰", "權杖", "暗号", "パスワード", "비밀번호",
    )),
    ("密码是", "hunter2!", "", "secret"),
    ("secret: aws_secret_access_key = ", "abcd1234/efgh", "", "secret"),
    *(("password: ", value, "", "secret") for value in ("abcd1234", "1234-5678", "abcd!efgh", "aab112")),
]  # fmt: skip
HARMLESS = [
    *(f"password: {value}" for value in (
        "[redacted secret]", "%abc123!", "...abc123", "…abc123", "process.env1x", "os.abc123", "env.abc123",
        "${PASS_1}", "$(pass 1)", "$PASSWORD", "{{ pass1 }}", "<your-password>", "****1a", "get_pass1(x)", "conf[1a2b",
        "abcdefgh", "12345", "aa11aa", "ab1ab1", "well-known", "snake_case_name", "a1b2",
    )),
    *(f"curl -u anna:{value} https://x.org" for value in ("[redacted password]", "$PASS", "<pass>", "{pass}")),
    *(f"default login anna password {value}" for value in ("[redacted", "$PASS", "<pass>", "{pass}")),
    *(f"https://anna:{value}@x.org" for value in ("[redacted", "<pass>", "$PASS", "{pass}", "***")),
    "Bearer abcdefghijklmnopqrst",
    *("5011111111111119", "5611111111111113", "2220111111111113", "2721111111111117", "6311111111111114"),
    *("331111111111113", "361111111111116", "3611111111111118", "4111111111111112", "41111111111114"),
    *("411111111111116", "41111111111111113", "411111111111111118", "3411111111111110", "34111111111113"),
    *("621111111111112", "511111111111115", "51111111111111112", "65111111111111112", "651111111111115"),
    *("7111111111111114"),
    f"mnemonic: {WORDS}",
    *("notes/2026/path-to-glory-v2-draft-2026-11-18.md", "https://example.org/path-with-words-2026-11-18"),
]  # fmt: skip


@pytest.mark.parametrize("text", [text for texts in TOKENS.values() for text in texts])
def test_every_form_of_a_key_is_redacted_as_a_whole(text: str) -> None:
    assert re.fullmatch(r"use (?:\w+=)?\[redacted [a-z ]+\] now", redact(f"use {text} now"))


@pytest.mark.parametrize(("before", "secret", "after", "kind"), NAMED)
def test_a_named_secret_is_found_at_its_place(before: str, secret: str, after: str, kind: str) -> None:
    assert find_secrets(before + secret + after) == [Secret(len(before), len(before) + len(secret), kind)]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("ＡＫＩＡ0123456789ABCDEF", "[redacted aws key]"),
        ("ａｋｉａ password： ｈｕｎｔｅｒ２", "ａｋｉａ password： [redacted secret]"),
        ("AKIA%3012&#95;", "AKIA%3012&#95;"),
        ("AK\ufeffIA0123\u200b4567\u200d89AB\u00adCD\u2060EF", "[redacted aws key]"),
    ],
)
def test_a_disguise_does_not_hide_a_secret(text: str, redacted: str) -> None:
    assert redact(f"use {text} now") == f"use {redacted} now"


def test_of_two_secrets_that_overlap_the_first_and_longer_one_is_reported() -> None:
    inner = f"sk-ant-{BODY[:20]}"
    assert redact(f"postgres://anna:{inner}@host and {inner}") == (
        "postgres://anna:[redacted anthropic key]@host and [redacted anthropic key]"
    )
    assert (
        redact("ghp_" + BODY[:30] + " AKIA" + BODY[:16].upper())
        == "[redacted github token] [redacted aws key]"
    )
    assert redact(f"password: {inner}!!x1") == "password: [redacted secret]"


def test_the_end_of_a_secret_is_not_left_because_another_rule_found_its_beginning() -> None:
    assert redact("AUTH_KEY=9d278692-991b-40e1-a9d8-4c79ad66f530:fx") == "AUTH_KEY=[redacted secret]"
    long = "Abc9" * 800
    assert redact(f"password: {long}") == "password: [redacted secret]"


def test_a_secret_may_start_where_another_ends() -> None:
    webhook = f"https://oapi.dingtalk.com/robot/send?access_token={BODY[:20]}"
    key = "-----BEGIN PRIVATE KEY-----\nabcdef\n-----END PRIVATE KEY-----"
    assert redact(webhook + key) == "[redacted webhook][redacted private key]"


def test_pieces_of_at_least_six_characters_of_a_secret_are_found_in_a_part() -> None:
    whole = "-----BEGIN PRIVATE KEY-----\nabcdef\nghijk\n-----END PRIVATE KEY-----"
    assert redact_part("abcdef and ghijk", whole) == "[redacted private key] and ghijk"
    assert redact_part("nothing", "nothing at all") == "nothing"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a<private>b<private>c</private>d</private>e", "ae"),
        ("a<private>b", "a"),
        ("a</private>b<private>c</private>d", "abd"),
        ("a<private>b</private></private>c<PRIVATE >d</private >e", "ace"),
        ("a", "a"),
    ],
)
def test_private_spans_may_be_nested_unclosed_or_stray(text: str, kept: str) -> None:
    assert without_private(text) == kept


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_key_with_a_published_prefix_is_redacted(prefix: str) -> None:
    key = f"{prefix}Ab3dEf6hIj9kLm2nOp5qRs8tUv1w"
    assert key not in redact(f"Use {key} for it.")
