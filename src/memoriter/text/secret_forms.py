# ruff: noqa: E501 - a table is easier to read in long lines
"""The forms of secrets that no vendor publishes: by their place in a text, by their shape and by a check digit.

Every pattern has a bounded length. Hints are lower-case texts without which a rule is not tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple


class Secret(NamedTuple):
    """The position and kind of a secret in a text."""

    start: int
    end: int
    kind: str


IsSecret = Callable[[str], bool]

#: Compiles a pattern when it is first tried, because most texts need few of them.
compiled = cache(re.compile)


class Rule(NamedTuple):
    """One form of a secret. The group ``s`` of the pattern is replaced, or the whole match."""

    kind: str
    hints: tuple[str, ...]
    pattern: str
    judge: IsSecret | None = None

    def find(self, text: str, start: int = 0, end: int | None = None) -> Iterator[Secret]:
        """Yield the secrets of this form."""
        pattern = compiled(self.pattern)
        group: str | int = "s" if "s" in pattern.groupindex else 0
        for match in pattern.finditer(text, start, len(text) if end is None else end):
            if self.judge is None or self.judge(match.group(group)):
                yield Secret(*match.span(group), self.kind)


# ---- judges ---------------------------------------------------------------------------------------------------

_DIGITS = re.compile("[0-9]+")
#: Lower-case letters that could be a word: a vowel, and no four consonants in a row.
_WORD = re.compile(r"(?=[a-z]{0,12}?[aeiouy])(?!(?:[a-z]{0,12}?)[bcdfghjklmnpqrstvwxz]{4})[a-z]{4,}")


def is_random(text: str) -> bool:
    """Return whether letters of both cases and digits alternate as they do at random, and not as in names.

    >>> is_random("aw5u3qrk9PI8F7ThABXHoj"), is_random("AbstractProxyFactoryBean2")
    (True, False)
    """
    letters = re.findall("[A-Za-z]", text)
    upper = sum(map(str.isupper, letters))
    return (
        sum(map(str.isalnum, text)) >= 20
        and _DIGITS.search(text) is not None
        and 3 <= upper <= len(letters) - 3
        and sum(map(len, _WORD.findall(text))) <= 0.35 * len(letters)
    )


def has_both(value: str) -> bool:
    """Return whether letters and digits are mixed."""
    characters = set(value)  # far fewer than a long value has
    return any(map(str.isalpha, characters)) and any(map(str.isdigit, characters))


def has_two(value: str) -> bool:
    """Return whether letters, digits and signs are mixed, or the cases of letters."""
    characters = set(value)
    kinds = (
        any(map(str.isdigit, characters)),
        any(map(str.isalpha, characters)),
        not all(map(str.isalnum, characters)),
    )
    return sum(kinds) >= 2 or len(re.findall("[a-z][A-Z]", value)) >= 3


#: Variables, templates, stars, addresses, paths and function calls in place of a value.
_PLACEHOLDER = re.compile(
    r"\[redacted|%|\.\.\.|…|process\.|os\.|env\.|\$\{|\$\(|\$[A-Za-z_]\w{0,60}$|\{\{|\{[A-Za-z_. ]{0,60}(?:![rsa])?\}?$|<[A-Za-z_ -]{0,60}>?$|\*{2,}|\([A-Za-z ]{0,60}\)?$"
    r"|[A-Za-z_][\w.]{0,60}[(\[]|(?:https?|file)://|[~./]{0,3}/[\w.-]{1,60}/|@[\w.-]{1,60}(?:[:/]|$)"
)
_PHRASE = re.compile(r"[A-Za-z]+[-./'’][A-Za-z]+.?|_?[A-Za-z]+(?:[._]{1,2}[A-Za-z]+)+.?")


def is_plain_value(value: str) -> bool:
    """Return whether a value is neither a placeholder nor a phrase."""
    return not _PLACEHOLDER.match(value) and len(set(value)) > 3 and not _PHRASE.fullmatch(value)


def is_machine_made(value: str) -> bool:
    """Return whether a program made a value: 16 letters and digits or more that do not form words.

    >>> is_machine_made("0f3a9c8e7b6d5a4f"), is_machine_made("release-notes-2026-final")
    (True, False)
    """
    letters = sum(map(str.isalpha, value))
    if sum(map(str.isalnum, value)) < 16 or not is_plain_value(value):
        return False
    groups = len(_DIGITS.findall(value))
    words = sum(map(len, _WORD.findall(value.lower() if value.isupper() else value)))
    if groups:
        return (
            groups >= 3 or words <= 0.35 * letters or (sum(map(str.isdigit, value)) >= 4 and value.isalnum())
        )
    return len(value) >= 20 and words <= 0.5 * letters and value.isalnum()


def _no_variable(value: str) -> bool:
    return not value.startswith(("[redacted", "$", "<", "{", "*", "%"))


def _has_digit(value: str) -> bool:
    return any(c.isdigit() for c in value)


# ---- the shape of a token -------------------------------------------------------------------------------------

#: Beginnings of tokens that gitleaks does not know, or only beside the name of their vendor. The others are in `secret_rules.json`.
PREFIXES = {
    **dict.fromkeys(
        (
            "sk-", "sk_", "sk.", "pk_", "rk_", "gsk_", "csk-", "xai-", "fc-", "r8_", "tvly-", "nvapi-", "jina_", "lsv2_", "pcsk_", "sbp_", "nfp_", "rnd_", "napi_", "vcp_", "vercel_", "hcaik_", "phc_", "phx_", "bkua_", "squ_",
            "sqp_", "sqa_", "CCIPAT_", "ATBB", "ATATT3x", "ATCTT3x", "cio", "oy2", "EAAA", "EAAC", "EAAG", "EAAM", "IGQVJ", "xprv", "dp.", "st.", "sl.", "1//0", "key-", "ak_", "tfp_", "CFPAT-", "dckr_pat_", "dckr_oat_", "tskey-", "figd_",
            "xsmtpsib-", "secret_", "access-production-", "access-sandbox-", "rzp_live_", "rzp_test_", "sdk-", "sntrys_", "whsec_", "sq0csp-", "lip_", "fo1_", "fm2_", "ops_", "AKCp", "EZAK", "NRAK-", "NRII-", "NRIQ-", "NRJS-", "PMAK-", "cnvca", "Mid-server-", "ovsxp_", "waka_", "xaat-", "xapt-", "KEY0",
        ),
        "key",
    ),
    **dict.fromkeys(("AKIA", "ASIA", "ABIA", "ACCA"), "aws key"),
    **dict.fromkeys(("ya29.", "GOCSPX-"), "google token"),
    **dict.fromkeys(("xoxa-", "xoxb-", "xoxc-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), "slack token"),
    **dict.fromkeys(("hvs.", "hvb.", "hvr."), "vault token"),
    "sk-ant-": "anthropic key", "AIza": "google key", "LTAI": "alibaba key", "AKID": "tencent key", "mmr_": "memoriter token", "HRKU-": "heroku key", "SG.": "sendgrid token", "pypi-": "pypi token", "glptt-": "gitlab token",
}  # fmt: skip


_BODY = r"(?P<body>(?!--)[A-Za-z0-9_-][A-Za-z0-9_.+/-]{10,2000}[A-Za-z0-9_=-])"


def shape(prefixes: dict[str, str]) -> str:
    """Return the pattern of tokens that begin like this, or with a short word and a separator."""
    known = "|".join(map(re.escape, sorted(prefixes, key=len, reverse=True)))
    return (
        rf"(?<![A-Za-z0-9_/+.%@-])_{{0,3}}(?:(?P<known>{known})|(?P<prefix>(?:[A-Za-z][A-Za-z0-9]{{0,11}}[_.-]){{1,3}}))"
        rf"{_BODY}"
    )


def glued_shape(prefix: str) -> str:
    """Return the pattern of tokens that begin like this right after other text: a sign, a digit or one letter."""
    return rf"{'' if len(prefix) >= 6 else '(?<![A-Za-z]{2})'}{re.escape(prefix)}{_BODY}"


def is_glued(match: re.Match[str]) -> bool:
    """Return whether a match of `glued_shape` is a token: a part of it is as random as no word or name is."""
    runs = re.findall("[A-Za-z0-9]{16,}", match["body"])
    return (
        is_random(match["body"])
        or _UUID.search(match["body"].split("/")[0]) is not None
        or any(len(_DIGITS.findall(run)) >= 3 and is_machine_made(run) for run in runs)
    )


#: The end of a line inside a value, perhaps between quoted parts of it.
_LINE_END = re.compile(
    r"""(?<=[A-Za-z0-9_+/=-]{4})["']?[ \t]?[+\\=]?\r?\n[ \t>]{0,20}\+? ?["']?(?=(?P<next>[A-Za-z0-9_+/=.-]{6,2000}))"""
)


def line_ends(text: str) -> list[re.Match[str]]:
    """Return the ends of lines after which the text goes on with letters and digits that form no words."""
    return [end for end in _LINE_END.finditer(text) if _goes_on(end["next"])] if "\n" in text else []


def _goes_on(value: str) -> bool:
    letters = re.findall("[A-Za-z]", value)
    changes = len(re.findall("[0-9]+|[a-z][A-Z]", value))
    if len(letters) < 2 or changes < 2 or not (has_both(value) or changes >= 4):
        return False
    upper = " ".join(re.findall("[A-Z]{4,}", value)).lower()
    words = sum(map(len, [*_WORD.findall(value), *_WORD.findall(upper)]))
    return words <= 0.5 * len(letters) or (changes >= 4 and value.isalnum())


#: Parts of a prefix that say what follows.
_KEYISH = re.compile(
    r"(?:^|[_.-])(?:api|tkn|sec|pat|live|prod|production|sandbox|sk|ak|access|private|pw)[_.-]|(?:key|token|secret|auth|cred)[_.-]",
    re.IGNORECASE,
)
#: Prefixes of hashes, objects, requests, files and host names, which are not secret.
_OBJECTS = re.compile(
    r"(?:sha\d*|md5|h1|v\d+|ssh|msg|toolu|tooluse|call|thread|run|step|asst|file|batch|resp|rs|ws|req|chatcmpl|cmpl|org|proj|user|usr|cus|sub|pi|pm|ch|cs|price|prod|plan|si|in|ii|il|evt|txn|seti|src|acct|card|py|tr|po"
    r"|we|img|dsc|vid|tmp|log|uuid|urn|doi|com|www|net|io|commit|image|trace|span|session|sess|conv|conversation|id|ts|tag|hash|layer|blob|tree|doc|cache|page|asset|node|task|job|build|test|data|chunk|main|app|index|pod|pvc|vm|vol|snap|snapshot|backup|device|order|item|invoice|customer|account|event|message|request|group|team|note|entry|key|host|api|worker|upload|report|client|server|ip)[_.-]",
    re.IGNORECASE,
)
#: A short prefix before one case and digits: `rootly_…`, `FLWSECK-…`. A suffix such as `.png` makes it a file.
_ONE_CASE = re.compile(
    r"(?:(?:[a-z][a-z0-9]{1,9}_){1,3}(?:[a-z0-9]{32,80}|[A-Z0-9]{32,100})(?:_[a-z0-9]{4,40})?|[A-Z]{3,8}-[a-z0-9]{16,80}(?:-[A-Z])?|[a-z][a-z0-9]{2,7}\.[A-Z0-9]{8,24}\.[A-Z0-9]{32,80})"
)


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)


def is_shaped(match: re.Match[str]) -> bool:
    """Return whether a match of `shape` looks random. Hashes, words and names in code do not."""
    body, prefix = match["body"], match["prefix"] or ""
    private = match[0][0] == "_" != match[0][-1]  # a name in code, not emphasis
    if prefix and (private or (_OBJECTS.fullmatch(prefix) and "_secret_" not in body)):
        return False
    if is_random(re.split("[_.-]", match[0], maxsplit=1)[-1]):
        return True
    groups = len(_DIGITS.findall(body))
    if uuid := _UUID.search(match[0]):
        before = match[0][: uuid.start()]
        return bool(match["known"] or _KEYISH.search(before)) or before.endswith("_")
    if match["known"]:
        runs = re.findall("[A-Za-z0-9]{12,}", body)
        return groups >= (3 if sum(map(str.isalnum, body)) >= 24 else 4) or any(
            len(re.findall("[0-9]+|[a-z][A-Z]", run)) >= 2 or (len(run) >= 16 and _DIGITS.search(run))
            for run in runs
        )
    if keyish := _KEYISH.search(prefix):
        secret = match[0][keyish.end() :]  # a part of it may look like one more word of the prefix
        mixed = len(re.findall("[a-z][A-Z]|[A-Z][a-z]", secret)) >= 6 and is_machine_made(secret)
        if sum(map(str.isalnum, secret)) >= 16 and len(re.findall("[A-Za-z]", secret)) >= 4:
            return mixed or len(_DIGITS.findall(secret)) >= 3
    return groups >= 4 and _ONE_CASE.fullmatch(match[0].strip("_")) is not None


# ---- values that a name announces -----------------------------------------------------------------------------

#: Words that name a password. Digits alone count after them, and a value right beside them.
_PASSWORDS = (
    r"pass(?:words?|wd|phrase|code|wort)|pwd|\bpw\b|(?<![a-zA-Z])pass|(?-i:(?<=[a-z])Pass)|kennwort|wachtwoord|lösenord(?:et)?|mot de passe|contraseña|requirepass|bindpw|\bclave|senha|\bparola"
    r"|пароль|hasło|heslo|jelszó|salasana|passord|adgangskode|kodeord|şifrem?|पासवर्ड|كلمة المرور|كلمة السر|סיסמה|รหัสผ่าน|mật khẩu|密码|密碼|口令|暗号|パスワード|비밀번호|(?P<short>\bpin(?:[ -]?(?:code|number)| ?码)?(?![a-z])|提取码)|验证码|驗證碼|恢复码|verification code|\botp\b"
)
_KEYS = r"(?:secret[ _-]?)?(?:access[ _-]?)?key(?:[ _-]id)?|secret|token|credentials?|codes?|密钥|私钥|令牌|金鑰|權杖|凭证|憑證"
#: Where a name may begin, and the words one of which must come before it. A key and a code alone are not secret.
NAME_HINTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "pass", "pwd", "bindpw", "pw:", "pw ", "pw=", "kennwort", "wachtwoord", "lösenord", "contraseña", "clave", "senha", "parola", "пароль", "hasło", "heslo", "jelszó", "salasana", "şifre", "mật khẩu", "adgangskode", "kodeord", "पासवर्ड", "كلمة المرور", "كلمة السر", "סיסמה", "รหัสผ่าน", "pin", "otp",
            "verification code", "requirepass", "mot de passe", "密", "口令", "暗号", "パスワード", "비밀번호", "验证码", "驗證碼", "恢复码", "提取码", "secret", "token", "credential", "私钥", "令牌", "金鑰", "權杖", "凭证", "憑證",
        ),
        (),
    ),
    "key": (
        "api", "app", "access", "secret", "private", "auth", "encryption", "signing", "master", "license", "licence", "product", "preshared", "security", "account", "storage", "admin", "service", "shared", "subscription",
        "deploy", "server", "client", "apiv3",
    ),
    "code": ("recovery", "backup", "scratch"),
}  # fmt: skip
_VERBS = r"\b(?:wurde\sauf|is|was|are|set|reset|to|as|ist|lautet|est|es|é|è|är|er|on|jest|je|là|है|هي|هو)(?!\w)(?:\s(?:now|set|changed|reset|updated))?(?:\s(?:to|as)\b)?"
_SIGN = (
    rf"\s{{0,12}}(?:=>|->|→|:=|[!=]={{1,2}}|[:=：＝>|][*_]{{0,2}}|】|\bvalue=|{_VERBS}[:：]?|(?:[\u4e00-\u9fff]{{0,5}}?[，,]?)(?:是|为|為|は|는|[改换設设]成了?|用)[:：]?|[\u4e00-\u9fff]{{1,4}}[:：]|[\u2190-\u2bff\U0001f300-\U0001faff]{{1,3}})\s{{0,12}}"
    r"(?:[|>][+-]?\n\s{1,20}|```\w{0,10}\n)?"  # a block of YAML or Markdown
    r"""|["']\s{0,2}(?:,|\{\s{0,2}default\s{0,2}=)\s{0,2}(?=["'])|\((?=["'])|['’]s\s"""  # an argument
)
_VALUE = r"""[\\"'`“「‘]{0,3}(?P<s>(?:<(?![^\s<>]{1,100}>))?[^\s"'`“”‘’「」，。；、：！？（）<>|\\\u4e00-\u9fff]{3,400})"""
#: The end of a value that is longer. It is read once, however many names the value contains.
VALUE_REST = r"""[^\s"'`“”‘’「」，。；、：！？（）<>|\\\u4e00-\u9fff]{0,3600}"""
NAME = (
    rf"""(?i)(?:(?P<password>{_PASSWORDS})|{_KEYS})[\\"'`*\]]{{0,4}}"""
    rf"""(?:(?:\s(?:for|of|to|on|at|in|für|von|vom|zum|de|du|des|del|della|di|do|da|para|pour|van|voor|от|для|к)\s(?:[^\n:=,.;]|\.(?=\w)){{1,40}}?)?(?:{_SIGN})|(?P<beside>\s{{1,2}}|(?<=[\u3040-\u9fff])(?=[!-~]))){_VALUE}"""
)
#: After a value: "… as the database password", "… 是我的密码".
LINK = r"""["'`]?(?:\s(?:as|is)(?:\s(?:the|my|our|your|a|new|old)){0,2}(?:\s[\w-]{1,20}){0,2}\s|\s?(?:作为|当作?|是|做)[\u4e00-\u9fff]{0,8})$"""


def trimmed(value: str) -> str:
    """Return a value without the punctuation that follows it."""
    return value.rstrip(",;.:)]}*")


def looks_secret(value: str, match: re.Match[str]) -> bool:
    """Return whether a value after a name (`NAME`) looks like a secret, not like prose, code or a placeholder."""
    if value.isdigit():  # a shorter number may be the code of a door, which people want to remember
        return bool(match["password"]) and len(value) >= (4 if match["short"] else 6)
    if match["short"]:
        return len(value) <= 8 and value.isalnum() and (has_both(value) or match["short"] == "提取码")
    if len(value) < 5 or not is_plain_value(value):
        return False
    if match["beside"] is None:
        if len(value) <= 5:
            return bool(match["password"]) and has_both(value)
        return has_two(value) or is_machine_made(value)
    return has_both(value) if match["password"] else is_machine_made(value)


# ---- values that their place reveals --------------------------------------------------------------------------

#: Rules for values of 14 characters or more, without spaces.
TOKEN_RULES = (
    Rule(
        "webhook",
        ("hook", "robot/send"),
        (
            r"(?a)https://(?:(?:\w{1,10}\.)?discord(?:app)?\.com/api/webhooks/\d{5,30}/[\w-]{20,120}|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_+-]{20,200}|hooks\.zapier\.com/hooks/catch/\d{3,12}/\w{4,20}"
            r"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=[\w-]{10,80}|oapi\.dingtalk\.com/robot/send\?access_token=\w{20,100}|hook\.[a-z0-9]{2,5}\.make\.com/[a-z0-9]{20,60}"
            r"|[\w.-]{4,100}/(?:[\w.-]{1,40}/){0,4}(?:web)?hooks?/(?:[\w@-]{1,80}/){0,4}(?=[\w-]{0,120}\d)[\w-]{16,120})"
        ),
    ),
    Rule("jwt", ("eyj",), r"(?<![A-Za-z0-9]{2})eyJ[A-Za-z0-9_-]{8,2000}+\.[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{8,2000}+(?:\.[A-Za-z0-9_-]{8,8000}+){0,2}"),
    Rule("key", ("/v",), r"(?i)https?://[\w.-]{4,100}/(?:api/)?v\d{1,2}/(?P<s>[A-Za-z0-9_-]{20,120})(?![A-Za-z0-9:@-])", is_machine_made),
    Rule("key", ("login ", "authtoken ", "authenticate ", "unseal "), r"(?i)(?:login|authtoken|authenticate|unseal)(?:\s--?[\w-]{1,30}){0,3}\s{1,3}(?P<s>[A-Za-z0-9_+/=-]{20,200})(?![A-Za-z0-9:@.])", is_machine_made),
    Rule("key", ("=",), r"""(?<![A-Za-z0-9_$])(?![A-Z0-9_]{0,60}(?:ID|HASH|SHA|SHA256|DIGEST|ETAG|COMMIT|REV|REF|VERSION|TAG|NONCE|CHECKSUM|INTEGRITY|FINGERPRINT|PATH|FILE|NAME|PUBLIC\w{0,10})=)[A-Z][A-Z0-9_]{2,60}=["']?(?P<s>[A-Za-z0-9_+/=-]{20,400})(?![A-Za-z0-9:/@.])""", is_random),
    Rule("key", ("prod:", "dev:", "preview:"), r"(?<![A-Za-z0-9])(?:prod|dev|preview):[a-z0-9-]{3,60}\|(?P<s>[A-Za-z0-9+/=_-]{40,400})"),
    Rule("nats seed", ("su", "sa", "so", "sn", "sc"), r"(?<![A-Za-z0-9])S[UAONC][A-Z2-7]{56}(?![A-Za-z0-9])"),
    Rule("telegram token", (":aa",), r"(?<![A-Za-z0-9_])\d{8,10}:AA[A-Za-z0-9_-]{30,40}(?![A-Za-z0-9_-])"),
    Rule("azure key", ("accesskey=", "accountkey=", "sig="), r"(?<![A-Za-z0-9_])(?:AccountKey|SharedAccessKey|sig)=(?P<s>[A-Za-z0-9+/%]{40,120}={0,2})"),
    Rule("mailchimp key", ("-us",), r"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}(?!\d)"),
    Rule("braintree token", ("access_token$",), r"access_token\$(?:production|sandbox)\$[0-9a-z]{8,20}\$[0-9a-f]{32}"),
    Rule("password hash", ("$",), r"\$(?:2[aby]|[156789]|y|apr1|argon2id?|krb5[a-z]{2,8}|pbkdf2[a-z0-9-]{0,12}|scrypt)\$[A-Za-z0-9./$=,+@:*-]{20,2000}"),
    Rule(
        "secret",
        ("_key", "_pat", "_auth", "_cred", "_ak", "_sk", "_private", "_seed", "_pw"),
        r"""(?<![A-Za-z0-9])[A-Z][A-Z0-9]{0,30}(?:_[A-Z0-9]{1,30}){0,6}_(?:KEY|PAT|AUTH|CREDS?|CREDENTIALS?|AK|SK|PRIVATE|SEED|PW)["']?\s{0,2}[:=]\s{0,2}["']?(?P<s>[^\s"']{12,400})""",
        lambda value: has_both(value) and is_plain_value(value),
    ),
    Rule("key", ('"auth"', "'auth'"), r"""["']auth["']\s{0,2}:\s{0,2}["'](?P<s>[A-Za-z0-9+/=]{16,400})["']""", _has_digit),
    Rule("key", ("key=", "code=", "signature=", "auth=", "credential=", "appid=", "app_id=", "access=", "sig="), r"(?i)[?&](?:[\w-]{0,30}key|code|app_?id|access|sig|[\w-]{0,20}signature|[\w-]{0,20}auth)=(?P<s>[A-Za-z0-9%._~+/=-]{16,400})", _has_digit),
    Rule("private key", ("client-key-data",), r"client-key-data:\s{0,4}(?P<s>[A-Za-z0-9+/=]{20,20000})"),
    Rule("cookie", ("sid=", "sessid=", "sessionid=", "session=", "session_id=", "session-id=", "session_token=", "session-token="), r"(?i)(?:sess(?:ion)?[A-Za-z0-9_.-]{0,20}|connect\.sid)=(?P<s>[A-Za-z0-9%._-]{16,200})", _has_digit),
    Rule(
        "bearer token",
        ("bearer", "authorization"),
        r"""(?i)(?<![a-z])(?:bearer(?:\s{1,3}|[\w-]{0,8}\(["'])|authorization["']?\s{0,2}[:=]\s{0,2}["']?(?:[a-z][\w-]{1,30}\s{1,3})?(?:(?:token|key|credential|apikey)=["]?)?)(?P<s>[A-Za-z0-9._~+/:-]{12,2000}={0,2})""",
        _has_digit,
    ),
)  # fmt: skip
#: A key after a name. A match begins with one of the hints.
NAMED_KEY = Rule(
    "key",
    ("key", "secret", "token", "private", "access", "auth", "api", "pat"),
    (
        r"(?i)(?:(?<!cache[ _-])(?<!object[ _-])(?<!primary[ _-])(?<!public[ _-])(?<!sort[ _-])(?<!foreign[ _-])(?<!partition[ _-])(?<!idempotency[ _-])(?<!routing[ _-])(?<!host[ _-])(?<!s3[ _-])(?<!pub)(?<!hot)key(?:\s\d{1,2}(?=:))?"
        r"""|secret|token|private|(?<!last[ _-])access|(?<![a-z])auth|(?<![a-z])(?:api|pat)(?![a-z]))[\\"'`*\]]{0,4}(?:\s{0,12}(?:[:=：＝]|->|=>|\bis\b|是|为)?\s{0,12}|[_.-])[\\"'`]{0,3}"""
        r"(?P<s>(?!AAAA[BCE])[A-Za-z0-9+/][A-Za-z0-9_+/.-]{15,3000}={0,2})(?![A-Za-z0-9:/@=])"
    ),
    is_machine_made,
)  # fmt: skip
#: Rules for long tokens without a prefix.
LONG_RULES = (
    Rule("discord token", (), r"(?<![A-Za-z0-9])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}"),
    Rule("key", (), r"(?<![A-Za-z0-9])(?:[0-9a-f]{32}FFFFNRAL|AA[0-9a-f]{40}-NRMA|1000(?:\.[0-9a-f]{32}){2}|00[A-Za-z0-9]{13}![A-Za-z0-9_.]{80,120}|5A(?i:ep)861[A-Za-z0-9._=]{80,200})(?![A-Za-z0-9])"),
    Rule("key", (), r"(?<![A-Za-z0-9/+_-])sk[A-Za-z0-9]{80,300}(?![A-Za-z0-9/+_=-])", is_random),
    Rule("azure key", (), r"(?<![A-Za-z0-9])(?:[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}|[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{20,30})(?![A-Za-z0-9])"),
    Rule("wallet key", (), r"(?<![A-Za-z0-9])[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![A-Za-z0-9])", is_random),
)  # fmt: skip
PROSE_RULES = (
    Rule(
        "private key",
        ("private key", "private-lines"),
        (
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----)){0,20000}+-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:(?:\\n|\s){0,4}+[A-Za-z0-9+/=]{16,100}+){0,400}+)"  # cut off before its end
            r"|Private-Lines: \d{1,3}(?:\s{1,2}[A-Za-z0-9+/=]{16,100}+){1,100}+"
        ),
    ),
    Rule("password", ("://",), r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\[\]]{0,100}:(?P<s>[^\s/@]{1,200})@", _no_variable),
    Rule("key", ("://",), r"://(?P<s>[A-Za-z0-9_.~-]{16,400})@", is_machine_made),
    Rule("password", ("password", "pwd"), r"(?i)(?<=;)\s{0,2}(?:password|pwd)\s{0,2}=\s{0,2}(?P<s>[^;\"'\s]{3,200})", _no_variable),
    Rule("password", ("password", "pwd"), r"(?i)(?<![\w.])(?:password|pwd)\s{0,2}=\s{0,2}(?P<s>[^;\"'\s]{3,200})(?=;\s{0,2}[a-z][a-z _-]{1,30}=)", _no_variable),
    Rule("password", ("password", "passwort", "密码", "密碼"), r"""(?i)(?:passwor[dt]\s(?:is|was|ist)|密[码碼][是为])\s{0,2}["'“「](?P<s>(?!(?:required|optional|string|password|none|null|empty|incorrect|invalid|wrong|weak|strong|expired|changed|hidden|secret)["'”」])[^\s"'“”「」]{4,60})["'”」]"""),
    Rule("password", ("wifi:",), r"WIFI:(?:[A-Z]:[^;\n]{0,60};){0,4}P:(?P<s>[^;\n]{3,80});"),
    Rule(
        "password",
        ("curl", "lftp", "mysql", "sshpass", "docker login", "htpasswd", "redis-cli", "net user", "openssl", "cmdkey", "login ", "ldap", "smbclient", "identified by", "securestring", "unzip ", "7z", "az login"),
        (
            r"(?i)(?<![\w.])(?:"
            r"""curl\s[^\n]{0,200}?(?:-u|--user)[ =]{0,2}["']?[^\s:"']{1,100}:"""
            r"|lftp\s[^\n]{0,40}?-u\s{1,3}[^\s,]{1,60},|(?:machine\s{1,4}\S{1,200}|default)\s{1,8}login\s{1,4}\S{1,100}\s{1,8}password\s{1,4}"
            r"""|mysql\w{0,10}\s[^\n]{0,60}?(?<=\s)-p(?=["']?[^\s"'])|sshpass\s{1,3}-p\s{0,3}|docker\s{1,3}login\s[^\n]{0,80}?-p\s{1,3}"""
            r"|htpasswd\s{1,3}-\w{0,4}b\w{0,3}\s{1,3}\S{1,100}\s{1,3}\S{1,60}\s{1,3}|redis-cli\s[^\n]{0,60}?-a\s{1,3}|net user \S{1,40}\s{1,3}"
            r"""|openssl\s[^\n]{0,80}?pass:|cmdkey\s[^\n]{0,80}?/pass:|ldap\w{1,10}\s[^\n]{0,80}?-w\s{1,3}|smbclient\s[^\n]{0,80}?-U\s{1,3}[^\s%]{1,60}%"""
            r"""|unzip\s[^\n]{0,40}?-P\s{0,2}|7z\w?\s[^\n]{0,40}?(?<=\s)-p|az login\s[^\n]{0,120}?(?<=\s)-p\s{1,3}|identified by\s{1,3}(?=['\x22])|ConvertTo-SecureString\s{1,3})["']?(?P<s>[^\s"'/][^\s"']{2,200})"""
        ),
        _no_variable,
    ),
    Rule("cookie", ("cookie:",), r"(?i)(?<!\w)(?:set-)?cookie:\s{0,3}(?P<s>[\w.-]{1,60}=[^\s;,]{8,1000}(?:;\s?[\w.-]{1,60}=[^\s;,]{1,1000}){0,30})"),
    Rule(
        "seed phrase",
        ("seed phrase", "seed word", "recovery phrase", "recovery word", "backup phrase", "backup word", "seed:", "mnemonic", "助记词", "助記詞"),
        (
            r"(?:(?i:(?:seed|recovery|backup)\s{1,3}(?:phrase|words?)|\bseed(?=:)|mnemonic)|助记词|助記詞)[^\n:：=]{0,30}?(?:[:：=]|\b(?:is|are)\b|是)[:：\s]{0,4}"
            r"""["'“]?(?P<s>(?:\d{0,2}\.? ?[a-z]{3,8}[ ,\n]{1,3}){11,23}[a-z]{3,8})"""
        ),
    ),
    Rule("code", ("code is", "code:"), r"(?i)\b(?:your|verification|security|login|sms|one-time|2fa) (?:[a-z]{1,12} )?code(?:\sis|:)\s{0,2}(?P<s>\d{6,8})(?!\d)"),
    Rule("security code", ("cvv", "cvc", "安全码"), r"(?i)(?:(?<![a-z])cv[vc]2?\b|安全码)[^\n\d]{0,12}(?P<s>\d{3,4})(?!\d)"),
    Rule("security number", ("ssn", "social security"), r"(?i)\b(?:ssn|social security)\b[^\n\d]{0,24}(?P<s>\d{3}-\d{2}-\d{4})(?!\d)"),
)  # fmt: skip


# ---- numbers with a check digit -------------------------------------------------------------------------------

_CARDS: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...] = (
    (("34", "37"), (15,)),
    (("4",), (16, 19)),
    (tuple(map(str, [*range(51, 56), *range(2221, 2721)])), (16,)),
    (("6011", "65", "35"), (16,)),
    (("62",), (16, 17, 18, 19)),
)


def _is_card(number: str) -> bool:
    """Return whether this is a card number, by prefix, length and check digit."""
    digits = [int(c) for c in number if c.isdigit()]
    head = number.replace(" ", "").replace("-", "")
    lengths = next((sizes for prefixes, sizes in _CARDS if head.startswith(prefixes)), ())
    doubled = (d if i % 2 == 0 else sum(divmod(2 * d, 10)) for i, d in enumerate(reversed(digits)))
    return len(digits) in lengths and sum(doubled) % 10 == 0


def _is_iban(number: str) -> bool:
    """Return whether this is an international bank account number, by its check digits."""
    plain = number.replace(" ", "")
    right = len(plain) >= 20 or plain.startswith(("NO", "BE", "DK", "FI", "FO", "GL", "NL", "MK", "SI"))
    return right and int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def _is_resident(number: str) -> bool:
    """Return whether this is the number of a Chinese identity card, by its check digit."""
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(digit) * weight for digit, weight in zip(number, weights, strict=False))
    return number[-1].upper() == "10X98765432"[total % 11]


#: A text without this has none of these numbers.
NUMBER = re.compile(r"[0-9](?:[ -]?[0-9A-Z]){12}")
NUMBER_RULES = (
    Rule("card number", (), r"[0-9](?<![A-Za-z0-9_.-].)(?:[ -]?[0-9]){12,18}(?![A-Za-z0-9_-]|\.[0-9])", _is_card),
    Rule("bank account", (), r"[A-Z](?<![A-Za-z0-9].)[A-Z][0-9]{2}(?: ?[0-9A-Z]{4}){2,7}+(?: ?[0-9A-Z]{1,3})?(?![A-Za-z0-9])", _is_iban),
    Rule("identity number", (), r"[1-8](?<![A-Za-z0-9_.-].)[0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])[0-3][0-9][0-9]{3}[0-9Xx](?![A-Za-z0-9_-])", _is_resident),
)  # fmt: skip
