"""Write `src/memoriter/text/secret_rules.json` from the rules of gitleaks.

`python -m lab.secret_rules gitleaks.toml` reads `config/gitleaks.toml` of https://github.com/gitleaks/gitleaks at
`COMMIT` (MIT licence, copied into the resource) and translates each rule:

- from RE2 to `re`: inline flags, `\\z`, POSIX classes and unbounded repeats;
- a rule of the common form "name of a vendor, separator, value" keeps its name and its value only. The separator, which
  in prose may be a verb, is in `redaction.py`;
- a token with a beginning of its own is found inside other text, too, because people and terminals join words to it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

COMMIT = "b58d3f102cf3a2c84cb7f923d05c25c9b1aed84b"
SHA256 = "e163e53b9e7e8a8511e77271e2b323ed057759542a6d988258afe3a1fa329caf"
TARGET = Path(__file__).parents[1] / "src/memoriter/text/secret_rules.json"
LICENCE = """MIT License

Copyright (c) 2019 Zachary Rice

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""

#: Rules that are left out, and why.
SKIPPED = {
    "generic-api-key": "assignments in code and prose have rules of their own",
    "hashicorp-tf-password": "assignments in code and prose have rules of their own",
    "kubernetes-secret-yaml": "only for YAML files, takes quadratic time",
    "curl-auth-header": "takes quadratic time; headers have rules of their own",
    "curl-auth-user": "takes quadratic time; has a rule of its own",
    "private-key": "takes quadratic time; a key that is cut off has a rule of its own",
    "jwt": "the rule of our own also finds encrypted ones",
    "pkcs12-file": "names a file",
    "sidekiq-sensitive-url": "passwords in addresses have a rule of their own",
}
#: Identifiers that are public.
_PUBLIC = re.compile(r"-(?:client-id|access-id|public-key|pub-key|pub-api-key|user-api-id)$")
#: Alternatives that match any commit or file.
_TOO_WIDE = {"sourcegraph-access-token": (r"|[a-fA-F0-9]{40})", ")")}
_VENDORS = {
    "new": "new relic",
    "defined": "defined networking",
    "gcp": "google",
    "huggingface": "hugging face",
}
#: Forms that need no name of a vendor beside them.
_KEYWORDS = {"airtable-personnal-access-token": ["pat"], "intra42-client-secret": ["s-s4t2"]}
#: Keywords that begin other words, too.
_AMBIGUOUS = {"sc_", "ext_", "api-", "pat.", "sat.", "live_", "test_", "ico-", "a3-", "v1.0-"}
#: Tokens whose beginning also ends words or occurs in encoded data, so that they are not found inside other text.
_ANCHORED = {
    "clickhouse-cloud-api-secret-key", "facebook-access-token", "facebook-page-access-token", "infracost-api-token",
    "sendgrid-api-token", "square-access-token", "stripe-access-token", "vault-service-token",
}  # fmt: skip
#: Rules whose groups do not mark the secret.
_WHOLE = {"microsoft-teams-webhook", "jwt-base64"}

_SEPARATOR = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
_SEPARATOR_2 = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3})(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
_END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
_START_2, _END_2 = r"""(?:^|[\\'"\x60\s>=:(,)])""", r"""(?:$|[\\'"\x60\s<),])"""
_STARTS = (r"(?i)[\w.-]{0,50}?", r"[\w.-]{0,50}?(?i:[\w.-]{0,50}?")
_NAMED = re.compile(
    rf"(?:{'|'.join(map(re.escape, _STARTS))})(?P<name>.+?)"
    rf"(?:{re.escape(_SEPARATOR)}|{re.escape(_SEPARATOR_2)})(?P<value>.+?){re.escape(_END)}"
)
_UNBOUNDED = 1_000


def translate(pattern: str) -> str:
    """Return a pattern of RE2 in the syntax of `re`, with a limit on every repeat."""
    pattern = pattern.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[A-Za-z0-9]")
    pattern = pattern.replace(_END, "(?![A-Za-z0-9_])").replace("(?P<", "(?:<")
    pattern = re.sub(r"\(\?:<\w+>", "(?:", pattern)
    pattern = pattern.replace(_START_2, "(?<![A-Za-z0-9_~.-])").replace(_END_2, "(?![A-Za-z0-9_~-])")
    pattern = re.sub(r"\{(\d+),\}", rf"{{\1,{_UNBOUNDED}}}", pattern)
    pattern = re.sub(r"(?<=[\])\w])\+(?![?+])(?![^\[\]]*\])", f"{{1,{_UNBOUNDED}}}", pattern)
    pattern = re.sub(r"(?<=\])\*(?![?+])", f"{{0,{_UNBOUNDED}}}", pattern)
    return _scoped_flags(pattern)


def _scoped_flags(pattern: str) -> str:
    """Replace `(?i)` inside a pattern by a group that ends where the enclosing group does."""
    while (at := pattern.find("(?i)", 1)) > 0:
        end, depth, inside = at + 4, 0, False
        while end < len(pattern) and not (depth == 0 and pattern[end] == ")" and not inside):
            char = pattern[end]
            if char == "\\":
                end += 1
            elif inside:
                inside = char != "]"
            elif char == "[":
                inside = True
            else:
                depth += (char == "(") - (char == ")")
            end += 1
        pattern = f"{pattern[:at]}(?i:{pattern[at + 4 : end]}){pattern[end:]}"
    return pattern


def kind_of(rule: str) -> str:
    """Return what a note says in place of the secret.

    >>> kind_of("github-fine-grained-pat"), kind_of("stripe-access-token"), kind_of("gitlab-ptt")
    ('github token', 'stripe token', 'gitlab token')
    """
    words = rule.split("-")
    nouns = {
        "key": "key",
        "secret": "secret",
        "password": "password",
        "cookie": "cookie",
        "webhook": "webhook",
    }
    noun = next((nouns[word] for word in reversed(words) if word in nouns), "token")
    return f"{_VENDORS.get(words[0], words[0])} {noun}"


def _inside_text(pattern: str) -> str:
    """Return a pattern that also matches where a letter, digit or underscore stands before or after the token."""
    pattern = re.sub(r"^(\(\?i\))?\\b(\(*)(?:\\b(?=\())?", r"\1\2", pattern)
    return re.sub(r"(?:\(\?!\[A-Za-z0-9_\]\)|\\b)$", "", pattern)


def _uncaptured(pattern: str) -> str:
    return re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern)


def convert(rules: list[dict[str, Any]]) -> dict[str, list[list[Any]]]:
    """Return the rules in two lists: tokens with a form of their own, and values after the name of a vendor."""
    tokens, named = list[list[Any]](), list[list[Any]]()
    for rule in rules:
        name = rule["id"]
        if name in SKIPPED or _PUBLIC.search(name):
            continue
        pattern, kind, least = rule["regex"], kind_of(name), rule.get("entropy", 0)
        keywords = _KEYWORDS.get(name, rule["keywords"])
        pattern = pattern.replace(*_TOO_WIDE.get(name, ("", "")))
        if form := _NAMED.match(pattern):
            value = translate("(?i)" + form["value"])[4:]
            named.append([kind, keywords, _uncaptured(form["name"]), _uncaptured(value), least])
            pattern = pattern[form.end() :].removeprefix("|")  # an alternative without a name
        if pattern:
            pattern = translate(pattern) if name in _ANCHORED else _inside_text(translate(pattern))
            tokens.append([kind, keywords, _uncaptured(pattern) if name in _WHOLE else pattern, least])
    return {"tokens": tokens, "named": named}


def prefixes(rules: list[dict[str, Any]]) -> dict[str, str]:
    """Return the fixed beginnings of tokens and their kinds, which also tokens of another length have."""
    found = dict[str, str]()
    for rule in rules:
        pattern = rule.get("regex", "").replace("\\", "")
        for word in rule.get("keywords", ()):
            if (
                word.endswith(("_", "-", "."))
                and len(word) > 2
                and word not in _AMBIGUOUS
                and not _PUBLIC.search(rule["id"])
            ):
                at = pattern.lower().find(word)
                found[pattern[at : at + len(word)] if at >= 0 else word] = kind_of(rule["id"])
    return found


def main() -> int:
    """Write the resource."""
    content = Path(sys.argv[1]).read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != SHA256:
        print(f"{sys.argv[1]} is another version: its SHA-256 is {found}.")
        return 1
    given = tomllib.loads(content.decode())["rules"]
    rules = convert(given)
    source = f"config/gitleaks.toml of gitleaks at {COMMIT}, translated by lab/secret_rules.py"
    head = json.dumps({"source": source, "licence": LICENCE, "prefixes": prefixes(given)}, indent=1)[:-2]
    lists = (
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(rule)}" for rule in some) + "\n ]"
        for name, some in rules.items()
    )
    TARGET.write_text(head + ",\n" + ",\n".join(lists) + "\n}\n", encoding="utf-8")
    print(f"{len(rules['tokens'])} tokens, {len(rules['named'])} names, {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
