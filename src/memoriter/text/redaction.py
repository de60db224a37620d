# ruff: noqa: E501 - a table is easier to read in long lines
"""Redact secrets and remove private spans: in what is stored from a conversation, and in what agents see of notes.

Every pattern starts with a fixed prefix and has a bounded length, so the time is linear in the text. Entropy is not
used to guess secrets, because a false positive destroys a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Secret(NamedTuple):
    """The position and kind of a secret in a text."""

    start: int
    end: int
    kind: str


def redact(text: str) -> str:
    """Replace each secret with its kind. Redacting again changes nothing.

    >>> redact("push with ghp_0123456789abcdefghijABCDEFGHIJ012345, then delete it")
    'push with [redacted github token], then delete it'
    """
    parts, at = [], 0
    for secret in find_secrets(text):
        parts += [text[at : secret.start], f"[redacted {secret.kind}]"]
        at = secret.end
    return "".join([*parts, text[at:]]) if parts else text


#: A shorter piece of a secret, such as the end of a key, is not searched for.
_MIN_PIECE = 6


def redact_part(part: str, whole: str) -> str:
    """Redact a part of a text, line by line. Secrets that only the whole text reveals, such as a key, are found too.

    >>> key = "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBg\\n-----END PRIVATE KEY-----"
    >>> redact_part("MIIEvQIBADANBg\\nBuy tea.", f"{key}\\nBuy tea.")
    '[redacted private key]\\nBuy tea.'
    """
    for secret in find_secrets(whole):
        for line in whole[secret.start : secret.end].splitlines():
            if len(piece := line.strip()) >= _MIN_PIECE:
                part = part.replace(piece, f"[redacted {secret.kind}]")
    return redact(part)


def find_secrets(text: str) -> list[Secret]:
    """Find secrets in order, without overlaps. Of two that overlap, the first and longer one is returned.

    Full-width letters and invisible characters do not hide a secret.
    """
    if _DISGUISED.search(text):
        plain, places = _unmask(text)
        return [Secret(places[one.start], places[one.end - 1] + 1, one.kind) for one in _find(plain)]
    return _find(text)


_DISGUISED = re.compile(
    "[\u00ad\u200b-\u200d\u2060\ufeff\uff10-\uff19\uff21-\uff3a\uff3f\uff0d\uff41-\uff5a]"
)


def _unmask(text: str) -> tuple[str, list[int]]:
    """Return the text with plain letters and without invisible characters, and the place of each character."""
    chars, places = list[str](), list[int]()
    for place, char in enumerate(text):
        if not _DISGUISED.match(char):
            chars.append(char)
        elif char >= "\uff00" and char != "\ufeff":
            chars.append(chr(ord(char) - 0xFEE0))
        else:
            continue
        places.append(place)
    return "".join(chars), places


def _find(text: str) -> list[Secret]:
    lowered = text.lower()
    found = [
        secret
        for rule in SECRET_RULES
        if any(hint in lowered for hint in rule.hints)
        for secret in rule.find(text)
    ]
    kept: list[Secret] = []
    for secret in sorted(found, key=lambda one: (one.start, -one.end)):
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
    return kept


_PRIVATE = re.compile(r"<(/?)private\s{0,8}>", re.IGNORECASE)


def without_private(text: str) -> str:
    """Remove ``<private>…</private>`` spans. An unclosed span reaches to the end.

    >>> without_private("keep <private>PIN 4711</private> this")
    'keep  this'
    """
    kept, at, depth = [], 0, 0
    for tag in _PRIVATE.finditer(text):
        closes = bool(tag.group(1))
        if depth == 0:
            kept.append(text[at : tag.start()])
        depth = max(0, depth - 1) if closes else depth + 1
        at = tag.end()
    if depth == 0:
        kept.append(text[at:])
    return "".join(kept)


# ---- rules ----------------------------------------------------------------------------------------------------

IsSecret = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class SecretRule:
    """One kind of secret. The group ``s`` of the pattern is replaced, or the whole match."""

    kind: str
    #: Lower-case texts. A text without any of them is not searched.
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    judge: IsSecret | None = None

    def find(self, text: str) -> Iterator[Secret]:
        group: str | int = "s" if "s" in self.pattern.groupindex else 0
        at = 0
        while match := self.pattern.search(text, at):
            start, end = match.span(group)
            if self.judge is None or self.judge(match.group(group)):
                yield Secret(start, end, self.kind)
                at = max(end, match.start() + 1)
            else:
                # What is not a secret may be the name of one: `secret: aws_secret_access_key = …`.
                at = max(start, match.start() + 1)


def _token(kind: str, body: str, *hints: str) -> SecretRule:
    """Return a rule for a vendor's key, which has a known prefix and is not part of a longer word."""
    return SecretRule(kind, hints, re.compile(rf"(?<![A-Za-z0-9_]){body}(?![A-Za-z0-9_])"))


def _looks_secret(value: str) -> bool:
    """Return whether a value after ``password:`` looks like a secret, not like prose, code or a placeholder."""
    if value.startswith(("[redacted", "%", "...", "…", "process.", "os.", "env.")) or _PLACEHOLDER.match(
        value
    ):
        return False
    kinds = (
        any(c.isdigit() for c in value),
        any(c.isalpha() for c in value),
        any(not c.isalnum() for c in value),
    )
    return sum(kinds) >= 2 and len(set(value)) > 3 and not _PHRASE.fullmatch(value)


#: Variables, templates, stars and function calls in place of a value.
_PLACEHOLDER = re.compile(
    r"\$\{|\$\(|\$[A-Za-z_]{1,60}$|\{\{|\{[A-Za-z_. ]{0,60}\}?$|<[A-Za-z_ -]{0,60}>?$|\*{2,}|\([A-Za-z ]{0,60}\)?$"
    r"|[A-Za-z_][\w.]{0,60}[(\[]"
)
_PHRASE = re.compile(r"[A-Za-z]+[-./'’][A-Za-z]+.?|[A-Za-z]+(?:_[A-Za-z]+)+.?")


def _luhn(number: str) -> bool:
    """Return whether this is a card number, by prefix, length and check digit."""
    digits = [int(c) for c in number if c.isdigit()]
    head = number.replace(" ", "").replace("-", "")
    lengths = next((sizes for prefixes, sizes in _CARDS if head.startswith(prefixes)), ())
    doubled = (d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(reversed(digits)))
    return len(digits) in lengths and sum(doubled) % 10 == 0


_CARDS: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...] = (
    (("34", "37"), (15,)),
    (("4",), (13, 16, 19)),
    (tuple(map(str, [*range(51, 56), *range(2221, 2721)])), (16,)),
    (("6011", "65", "35"), (16,)),
    (("62",), (16, 17, 18, 19)),
)

# Words that name a secret, and what separates them from it.
_NAMES = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret|(?:api|access|secret|private|auth|encryption)[ _-]?key(?:[ _-]id)?"
    r"|(?:auth|access|refresh|bearer|api|bot)[ _-]?token|token|client[ _-]?secret|aws_secret_access_key"
)
_CHINESE_NAMES = "密码|口令|密钥|私钥|令牌|密碼|金鑰|權杖|暗号|パスワード|비밀번호"
_VALUE = r"""(?P<s>(?:<(?![^\s<>]{1,100}>))?[^\s"'`“”‘’，。；、<>]{5,199}[^\s"'`“”‘’，。；、<>,;.:)])"""

#: Prefixes that vendors publish for their keys and tokens. At least 22 characters follow, 16 of them letters and digits in a row.
PREFIXES = (
    *(
        "gsk_",
        "xai-",
        "pplx-",
        "tvly-",
        "r8_",
        "lin_api_",
        "ntn_",
        "sbp_",
        "glsa_",
        "glc_",
        "sntrys_",
        "sntryu_",
        "NRAK-",
        "PMAK-",
    ),
    *(
        "pscale_tkn_",
        "pscale_pw_",
        "dp.pt.",
        "jina_",
        "nvapi-",
        "sq0atp-",
        "sq0csp-",
        "EAAA",
        "EAAG",
        "AGE-SECRET-KEY-1",
    ),
    *(
        "dckr_pat_",
        "dckr_oat_",
        "tskey-",
        "pcsk_",
        "figd_",
        "ATATT3x",
        "ATBB",
        "ATCTT3x",
        "nfp_",
        "fm2_",
        "fo1_",
        "rnd_",
        "napi_",
    ),
    *(
        "lsv2_pt_",
        "lsv2_sk_",
        "ops_",
        "AKCp",
        "rubygems_",
        "squ_",
        "sqp_",
        "sqa_",
        "CCIPAT_",
        "bkua_",
        "pul-",
        "xkeysib-",
        "xsmtpsib-",
    ),
    *(
        "vercel_",
        "vcp_",
        "phc_",
        "phx_",
        "re_",
        "dop_v1_",
        "oy2",
        "patk_",
        "shippo_live_",
        "lip_",
        "EZAK",
        "CFPAT-",
        "tfp_",
        "atlasv1.",
    ),
)

SECRET_RULES: tuple[SecretRule, ...] = (
    SecretRule(
        "private key",
        ("private key",),
        re.compile(
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----)){0,20000}+-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\\n|\s){0,4}+[A-Za-z0-9+/=]{16,100}+){0,400}+)"  # cut off before its end
        ),
    ),
    _token("anthropic key", r"sk-ant-[A-Za-z0-9_-]{16,200}", "sk-ant-"),
    _token("openai key", r"sk-(?!ant-)(?:[a-z]{2,10}-)?[A-Za-z0-9_-]{20,220}", "sk-"),
    _token(
        "github token",
        r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255})",
        "gh",
        "github_pat_",
    ),
    _token("gitlab token", r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|imt|agent)-[A-Za-z0-9_-]{20,200}", "gl"),
    _token("aws key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", "akia", "asia", "abia", "acca"),
    _token("slack token", r"(?:xox[abceoprs]|xapp)-[A-Za-z0-9-]{10,250}", "xox", "xapp-"),
    SecretRule(
        "webhook",
        (
            "hooks.slack.com",
            "/api/webhooks/",
            "qyapi.weixin",
            "oapi.dingtalk",
            "open.feishu",
            "open.larksuite",
        ),
        re.compile(
            r"https://(?:hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_+-]{20,200}"
            r"|(?:\w{1,10}\.)?discord(?:app)?\.com/api/webhooks/\d{5,30}/[\w-]{20,120}"
            r"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=[\w-]{10,80}"
            r"|oapi\.dingtalk\.com/robot/send\?access_token=\w{20,100}"
            r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/[\w-]{20,80})"
        ),
    ),
    _token("google key", r"AIza[A-Za-z0-9_-]{35}", "aiza"),
    _token(
        "google token", r"(?:ya29\.[A-Za-z0-9_-]{20,300}|GOCSPX-[A-Za-z0-9_-]{20,60})", "ya29.", "gocspx-"
    ),
    _token("stripe key", r"[rsp]k_(?:live|test)_[A-Za-z0-9]{16,200}", "k_live_", "k_test_"),
    _token("webhook key", r"whsec_[A-Za-z0-9+/]{20,100}", "whsec_"),
    _token("sendgrid key", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}", "sg."),
    _token("twilio key", r"SK[0-9a-f]{32}", "sk"),
    _token("npm token", r"npm_[A-Za-z0-9]{30,60}", "npm_"),
    _token("pypi token", r"pypi-[A-Za-z0-9_-]{40,300}", "pypi-"),
    _token("hugging face token", r"hf_[A-Za-z0-9]{30,60}", "hf_"),
    _token("telegram token", r"\d{8,10}:AA[A-Za-z0-9_-]{30,40}", ":aa"),
    _token("discord token", r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}", "."),
    _token("digitalocean token", r"do[opr]_v1_[a-f0-9]{64}", "_v1_"),
    _token("shopify token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", "shp"),
    _token("databricks token", r"dapi[a-f0-9]{32}(?:-\d)?", "dapi"),
    _token("alibaba key", r"LTAI[A-Za-z0-9]{12,26}", "ltai"),
    _token("tencent key", r"AKID[A-Za-z0-9]{13,40}", "akid"),
    _token("memoriter token", r"mmr_[A-Za-z0-9_-]{30,60}", "mmr_"),
    _token("notion token", r"secret_[A-Za-z0-9]{32,60}", "secret_"),
    _token("mailgun key", r"key-(?=[a-z]{0,31}\d)[0-9a-z]{32}", "key-"),
    _token("heroku key", r"HRKU-[A-Za-z0-9_-]{30,80}", "hrku-"),
    _token("dropbox token", r"sl\.[A-Za-z0-9_-]{40,300}", "sl."),
    SecretRule(
        "heroku key",
        ("heroku",),
        re.compile(r"(?i)heroku[^\n]{0,40}?(?P<s>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})(?![0-9a-f-])"),
    ),
    SecretRule(
        "azure secret",
        ("q~",),
        re.compile(r"(?<![\w~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,40}(?![A-Za-z0-9_~-])"),
    ),
    SecretRule(
        "password",
        ("curl",),
        re.compile(
            r"""(?i)(?<![\w.])curl\s[^\n]{0,200}?(?:-u|--user)[ =]{0,2}["']?[^\s:"']{1,100}:(?P<s>[^\s"']{3,200})"""
        ),
        lambda value: not value.startswith(("[redacted", "$", "<", "{")),
    ),
    SecretRule(
        "password",
        ("machine", "default"),
        re.compile(
            r"(?i)(?<!\w)(?:machine\s{1,4}\S{1,200}|default)\s{1,8}login\s{1,4}\S{1,100}\s{1,8}password\s{1,4}(?P<s>\S{3,200})"
        ),
        lambda value: not value.startswith(("[redacted", "$", "<", "{")),
    ),
    SecretRule(
        "cookie",
        ("cookie:",),
        re.compile(
            r"(?i)(?<!\w)(?:set-)?cookie:\s{0,3}(?P<s>[\w.-]{1,60}=[^\s;,]{8,1000}(?:;\s?[\w.-]{1,60}=[^\s;,]{1,1000}){0,30})"
        ),
    ),
    SecretRule(
        "cookie",
        ("sess", "connect.sid"),
        re.compile(
            r"(?i)(?<![\w.])(?:sess(?:ion)?_?(?:id|token)|jsessionid|phpsessid|connect\.sid)=(?P<s>[A-Za-z0-9%._-]{16,200})"
        ),
    ),
    SecretRule(
        "private key",
        ("client-key-data",),
        re.compile(r"client-key-data:\s{0,4}(?P<s>[A-Za-z0-9+/=]{20,20000})"),
    ),
    SecretRule(
        "seed phrase",
        ("seed", "recovery", "mnemonic", "backup", "助记词", "助記詞"),
        re.compile(
            r"(?:(?i:(?:seed|recovery|backup)\s{1,3}(?:phrase|words?)|mnemonic)|助记词|助記詞)[^\n:：]{0,30}?(?:[:：]|\b(?:is|are)\b|是)\s{0,4}"
            r"""["'“]?(?P<s>(?:\d{0,2}\.? ?[a-z]{3,8}[ ,\n]{1,3}){11,23}[a-z]{3,8})"""
        ),
    ),
    _token("vault token", r"hv[sbr]\.[A-Za-z0-9_-]{20,200}", "hvs.", "hvb.", "hvr."),
    SecretRule(
        "key",
        tuple(prefix.lower() for prefix in PREFIXES),
        re.compile(
            rf"(?<![A-Za-z0-9_])(?:{'|'.join(map(re.escape, PREFIXES))})[A-Za-z0-9_-][A-Za-z0-9_.+/-]{{20,250}}[A-Za-z0-9_=-]"
        ),
        # Names in code have short parts; a key has a long one with a digit.
        lambda value: any(re.search(r"\d", run) for run in re.findall(r"[A-Za-z0-9]{16,}", value)),
    ),
    _token(
        "azure key",
        r"(?:AccountKey|SharedAccessKey|sig)=[A-Za-z0-9+/%]{40,120}={0,2}",
        "accesskey=",
        "accountkey=",
        "sig=",
    ),
    _token("jwt", r"eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}", "eyj"),
    SecretRule(
        "bearer token",
        ("bearer", "basic"),
        re.compile(
            r"(?i)(?<![a-z])(?:bearer|authorization: ?basic)\s{1,3}(?P<s>[A-Za-z0-9._~+/-]{16,2000}={0,2})"
        ),
        lambda value: any(c.isdigit() for c in value),
    ),
    SecretRule(
        "password",
        ("://",),
        re.compile(
            r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\[\]]{0,100}:(?P<s>[^\s/@]{1,200})@"
        ),
        lambda value: not value.startswith(("[redacted", "<", "$", "{", "*")),
    ),
    SecretRule(
        "secret",
        ("pass", "pwd", "secret", "key", "token"),
        re.compile(
            rf"""(?i)(?<![a-z])(?:{_NAMES})["'`]?(?:\s(?:for|of|to|on|at|in)\s[^\n:=,.;]{{1,40}}?)?\s{{0,3}}(?:=>|:=|[:=：＝]|\bis\b)\s{{0,3}}["'`“]?{_VALUE}"""
        ),
        _looks_secret,
    ),
    SecretRule(
        "secret",
        ("密", "口令", "私钥", "令牌", "金鑰", "權杖", "暗号", "パスワード", "비밀번호"),
        re.compile(
            rf"""(?:{_CHINESE_NAMES})\s{{0,3}}(?:[:=：＝]|是|为|為|は|는)\s{{0,3}}["'`“「]?(?P<s>[!-~]{{6,200}})"""
        ),
        _looks_secret,
    ),
    SecretRule(
        "card number",
        tuple("0123456789"),
        re.compile(r"(?<![A-Za-z0-9_.-])\d(?:[ -]?\d){12,18}(?![A-Za-z0-9_-]|\.\d)"),
        _luhn,
    ),
)
