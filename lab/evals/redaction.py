"""Measure redaction: how many kinds of secrets are caught, and how often harmless text is changed.

`python -m lab.evals.redaction [FOLDER]` prints both. FOLDER contains sets of texts (`*/corpus*.jsonl`). A text that
redaction changes counts as a false alarm, although some of them contain what looks like a real secret.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memoriter.text.redaction import find_secrets, redact

# Every secret is built from parts, so that no scanner takes this file for a leak.
_A = "abcdefghij0123456789ABCDEFGHIJ0123456789"
_HEX = "0123456789abcdef0123456789abcdef"
_UUID = "12345678-90ab-4cde-8f01-234567890abc"
_SEED = "ripple lemon cactus orbit panel velvet hockey sugar tunnel maple drift anchor"
_WIDE = str.maketrans(
    {chr(code): chr(code + 0xFEE0) for code in (*range(48, 58), *range(65, 91), *range(97, 123), 95)}
)


class Kind(NamedTuple):
    """A text with a secret, and the part of it that must not remain."""

    name: str
    text: str
    secret: str


def _bare(name: str, secret: str) -> Kind:
    return Kind(name, f"We use {secret} for this.", secret)


def _worded(name: str, text: str, secret: str) -> Kind:
    return Kind(name, text.format(secret), secret)


KINDS = (
    _bare("openai", "sk-" + "proj-" + _A),
    _bare("anthropic", "sk-" + "ant-api03-" + _A),
    _bare("github classic", "ghp" + "_" + _A[:36]),
    _bare("github fine-grained", "github" + "_pat_" + _A),
    _bare("gitlab", "glpat" + "-" + _A[:20]),
    _bare("aws id", "AKIA" + "IOSFODNN7EXAMPLE"),
    _worded("aws secret", "secret: aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    _bare("slack", "xoxb" + "-123456789012-" + _A[:24]),
    _bare("slack webhook", "https://hooks.slack.com/" + "services/T000/B000/" + _A[:24]),
    _bare("discord webhook", "https://discord.com/api/" + "webhooks/123456789/" + _A),
    _bare("feishu webhook", "https://open.feishu.cn/open-apis/" + "bot/v2/hook/" + _UUID),
    _bare("dingtalk webhook", "https://oapi.dingtalk.com/robot/" + "send?access_token=" + _HEX),
    _bare("google key", "AIza" + _A[:35]),
    _bare("google oauth", "ya29." + _A),
    _bare("google client secret", "GOCSPX-" + _A[:28]),
    _bare("stripe", "sk" + "_live_" + _A[:24]),
    _bare("stripe webhook", "whsec" + "_" + _A[:32]),
    _bare("sendgrid", "SG." + _A[:22] + "." + _A + "abc"),
    _bare("twilio", "SK" + _HEX),
    _bare("npm", "npm" + "_" + _A[:36]),
    _bare("pypi", "pypi-" + "AgEIcHlwaS5vcmc" + _A * 2),
    _bare("hugging face", "hf" + "_" + _A[:34]),
    _bare("telegram", "123456789:" + "AA" + _A[:33]),
    _bare("discord", "MTIzNDU2Nzg5MDEyMzQ1Njc4" + ".GabcDe." + _A[:30]),
    _bare("digitalocean", "dop" + "_v1_" + _HEX * 2),
    _bare("shopify", "shpat" + "_" + _HEX),
    _bare("databricks", "dapi" + _HEX),
    _bare("alibaba", "LTAI" + "5tAbCdEfGhIjKlMn"),
    _bare("tencent", "AKID" + _A[:32]),
    _bare("vault", "hvs." + _A),
    _bare("groq", "gsk" + "_" + _A),
    _bare("linear", "lin_api" + "_" + _A),
    _bare("supabase", "sbp" + "_" + _A),
    _bare("azure storage", "AccountKey=" + _A * 2 + "=="),
    _bare("jwt", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0." + _A),
    _bare("card", "4111 1111 1111 1111"),
    Kind(
        "private key", "-----BEGIN RSA PRIVATE" + f" KEY-----\n{_A}\n-----END RSA PRIVATE" + " KEY-----", _A
    ),
    _worded("bearer", "Authorization: Bearer {}", "0123456789abcdef0123"),
    _worded("basic", "Authorization: Basic {}", "dXNlcjpwYXNzd29yZDEyMw=="),
    _worded("url", "postgres://bob:{}@db.local/notes", "s3cr3t"),
    _worded("password:", "password: {}", "hunter2!x"),
    _worded("password is", "my password is {}", "hunter2!x"),
    _worded("password for", "The password for prod is {}", "Tr0ub4dor&3"),
    _worded("json", '"api_key": "{}"', "q8Zr-77-kkLm"),
    _worded("env", "DB_PASSWORD={}", "tr0ub4dor&3"),
    _worded("密码是", "密码是 {}，别告诉别人", "Abc12345"),
    _worded("口令", "口令：{}", "w0rd-w0rd"),
    _worded("パスワード", "パスワードは {} です", "pa55w0rd!"),
    _worded("value with $", "password: {}", "$ecret123!"),
    _worded("value with (", "password: {}", "(Blue9horse"),
    _worded("value with {", "password = {}", "{x9!kk2Pq"),
    _worded("value with <", "password: {}", "<Abc123!xy"),
    _worded("value with *", "password: {}", "*St4r-light9"),
    _worded("value with parentheses", "password: {}", "P@ss(word)17"),
    _bare("memoriter", "mmr" + "_" + _A),
    _bare("notion", "secret" + "_" + _A + "abc"),
    _bare("mailgun", "key" + "-" + _HEX),
    _worded("heroku", "heroku auth:token {}", _UUID),
    _bare("dropbox", "sl." + _A + _A),
    _bare("azure ad", "abc8" + "Q~" + _A[:34]),
    _worded("curl -u", "curl -u admin:{} https://example.org", "hunter2x"),
    _worded(".netrc", "machine example.org login anna password {}", "hunter2x"),
    _worded("cookie", "Cookie: sessionid={}; theme=dark", _HEX),
    _worded("session id", "the link has JSESSIONID={}", _HEX),
    _worded("kube", "client-key-data: {}", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt"),
    _worded("seed phrase", "My seed phrase is {}", _SEED),
    _worded("助记词", "钱包助记词：{}", _SEED),
    _bare("full-width", ("ghp" + "_" + _A[:36]).translate(_WIDE)),
    _bare("zero-width", "g\u200bh\u200bp" + "_" + _A[:36]),
)


def caught() -> list[str]:
    """Return the kinds of which nothing remains."""
    return [kind.name for kind in KINDS if kind.secret not in redact(kind.text)]


def texts_of(folder: Path) -> Iterator[str]:
    """Yield every string of the texts in a folder of sets."""
    for file in sorted(folder.glob("*/corpus*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)
                yield "\n".join(value for value in record.values() if isinstance(value, str))


def main() -> int:
    """Print the figures."""
    found = caught()
    print(f"caught: {len(found)} of {len(KINDS)} kinds")
    for kind in KINDS:
        if kind.name not in found:
            print(f"  missed: {kind.name}")
    if len(sys.argv) > 1:
        texts = list(texts_of(Path(sys.argv[1])))
        changed = [text for text in texts if find_secrets(text)]
        print(f"changed: {len(changed)} of {len(texts)} texts ({len(changed) / max(1, len(texts)):.2%})")
        for text in changed[:40]:
            print(
                "  ", *(f"{one.kind}: {text[one.start : one.end][:60]!r}" for one in find_secrets(text)[:3])
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
