"""Redact secrets and remove private spans: in what is stored from a conversation, and in what agents see of notes.

`secret_rules.json` has the forms of the keys and tokens of vendors, from gitleaks (`lab/secret_rules.py` writes it).
`secret_forms` has the others. Text without the hints of a rule is not searched, so ordinary text costs little.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from memoriter.text import secret_forms as forms
from memoriter.text.secret_forms import Rule, Secret, compiled


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
#: Announced values whose other places are searched for.
_MAX_REPEATED = 200


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
    """Find secrets in order, without overlaps. Two that overlap are one, of the kind of the first.

    Full-width letters, invisible characters, letters of other scripts, encoded characters, colours of a terminal and
    the end of a line do not hide a secret.
    """
    disguised = list(_DISGUISED.finditer(text)) if _ODD.search(text) else []
    plain, places = _without(text, disguised) if disguised else (text, None)
    found = _find(plain)
    starts = {one.start for one in found}
    if ends := [end for end in forms.line_ends(plain) if end.end() not in starts]:
        joined, parts = _without(plain, ends)
        whole = [parts.original(one) for one in _find(joined)]
        at = [end.start() for end in ends]
        found = _apart(
            found + [one for one in whole if bisect_left(at, one.start) < bisect_left(at, one.end)]
        )
    return [one if places is None else places.original(one) for one in found]


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


# ---- what is stored -------------------------------------------------------------------------------------------


def clean_name(name: str) -> str:
    """Return the name of a session, a source or an item as it is stored.

    A secret in it is replaced by its kind, and a digest keeps different names apart. The shape of a token alone does
    not make a name secret, because names often have one.
    """
    secrets = [secret for secret in find_secrets(name) if secret.kind != "key"]
    public = without_private(name)
    if not secrets and public == name:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{redact(public)} {digest}"


def stored_names(name: str) -> tuple[str, ...]:
    """Return the names under which something may be stored: older versions stored names as they were."""
    return tuple(dict.fromkeys((clean_name(name), name)))


#: Members whose values programs look up again, and content that only its vendor can read.
_ID = re.compile(r"(?:^|_)ids?$|Id$|^(?:type|role|status|object|model|signature|encrypted_content)$")


def clean_values(value: Any, name: str = "") -> Any:
    """Return a JSON value without secrets and private spans. A member's name may tell that its value is secret.

    >>> clean_values({"password": "hunter2", "text": "tea <private>and rum</private>"})
    {'password': '[redacted secret]', 'text': 'tea '}
    """
    root = [value]
    waiting: list[tuple[Any, Any, str]] = [(root, 0, name)]  # no recursion: a value may be nested deeply
    while waiting:
        holder, at, name = waiting.pop()
        one = holder[at]
        if isinstance(one, str):
            holder[at] = _clean_text(one, name)
        elif isinstance(one, Mapping):
            cleaned = [(clean_name(key) if isinstance(key, str) else key, key) for key in one]
            holder[at] = fresh = {key: one[old] for key, old in cleaned}
            waiting += [(fresh, key, str(old)) for key, old in cleaned]
        elif isinstance(one, list | tuple):
            holder[at] = many = list(one)
            waiting += [(many, place, name) for place in range(len(many))]
    return root[0]


def _clean_text(text: str, name: str) -> str:
    if _ID.search(name):
        return clean_name(text)
    named = f"{name}: {without_private(text)}"
    parts, at = [], len(name) + 2
    for secret in find_secrets(named):
        if secret.start >= at:
            parts += [named[at : secret.start], f"[redacted {secret.kind}]"]
            at = secret.end
    return "".join([*parts, named[at:]])


# ---- disguises ------------------------------------------------------------------------------------------------

#: Cyrillic and Greek letters that look like Latin ones.
_LOOKALIKES = dict(
    zip(
        "асԁеһіјоорԛѕԝхуАВСЕНІЈКМОРЅТХУορΑΒΕΗΙΚΜΝΟΡΤΥΧΖ",
        "acdehijoopqswxyABCEHIJKMOPSTXYopABEHIKMNOPTYXZ",
        strict=True,
    )
)
#: A text without these is not disguised.
_ODD = re.compile(
    "[%&\x1b\\\\\u00ad\u034f\u0370-\u052f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\uff0d\uff10-\uff19\uff21-\uff3a\uff3f\uff41-\uff5a\U000e0000-\U000e0fff]"
)
_DISGUISED = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
    "|[\uff10-\uff19\uff21-\uff3a\uff3f\uff0d\uff41-\uff5a]"
    f"|(?<=[A-Za-z0-9_-])[{''.join(_LOOKALIKES)}]|[{''.join(_LOOKALIKES)}](?=[A-Za-z0-9_-])"
    "|%(?:0[9ADad]|[2-6][0-9A-Fa-f]|7[0-9A-Ea-e])|&#(?:95|x5[Ff]|45|x2[Dd]);"
    r"|(?:\x1b|\\(?:x1[Bb]|u001[Bb]|033|e))\[[0-9;?]{0,20}[A-Za-z]"  # a colour of a terminal
    r"|\\(?:[nrt]|u00[0-7][0-9A-Fa-f])"  # an escape of JSON
)


class _Places(NamedTuple):
    """Where the pieces of a text begin, and the spans of the original text for which they stand."""

    starts: list[int]
    spans: list[tuple[int, int]]

    def original(self, one: Secret) -> Secret:
        """Return the place of a secret in the original text."""
        first, last = (bisect_right(self.starts, at) - 1 for at in (one.start, one.end - 1))
        start = self.spans[first][0] + one.start - self.starts[first]
        whole = one.end == self.starts[last + 1]
        end = self.spans[last][1] if whole else self.spans[last][0] + one.end - self.starts[last]
        return Secret(start, end, one.kind)


def _without(text: str, disguises: list[re.Match[str]]) -> tuple[str, _Places]:
    """Return the text with what each disguise stands for, which may be nothing, and where its pieces were."""
    parts, places, at, size = list[str](), _Places([], []), 0, 0
    for start, end, plain in (*((*one.span(), _plain(one[0])) for one in disguises), (len(text), 0, "")):
        for part, span in ((text[at:start], (at, start)), (plain, (start, end))):
            if part:
                parts.append(part)
                places.starts.append(size)
                places.spans.append(span)
                size += len(part)
        at = end
    places.starts.append(size)
    return "".join(parts), places


def _plain(disguised: str) -> str:
    if disguised[0] == "%" or (disguised[:4] == r"\u00" and "[" not in disguised):
        return chr(int(disguised[-2:], 16))
    if disguised in (r"\n", r"\r", r"\t"):
        return "\n" if disguised != r"\t" else "\t"
    if disguised[0] == "&":
        return "_" if "5" in disguised and "4" not in disguised else "-"
    if "\uff00" < disguised < "\uff5f":
        return chr(ord(disguised) - 0xFEE0)
    return _LOOKALIKES.get(disguised, "")


# ---- finding --------------------------------------------------------------------------------------------------


def _find(text: str) -> list[Secret]:
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose lower case has two characters
        lowered = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    found = list[Secret]()  # of two with the same place, the first: what names a vendor says more
    if runs := list(_RUN.finditer(text)):
        found += _tokens(text, lowered, [run for run in runs if _LONG.search(run[0])])
        found += _hinted(forms.TOKEN_RULES, text, lowered)
        found += _at_hints(forms.NAMED_KEY, text, lowered)
    found += _hinted(forms.PROSE_RULES, text, lowered)
    if forms.NUMBER.search(text):
        found += (secret for rule in forms.NUMBER_RULES for secret in rule.find(text))
    found += _named(text, lowered)
    return _apart([*found, *_repeated(text, found)])


def _hinted(rules: tuple[Rule, ...], text: str, lowered: str) -> Iterator[Secret]:
    for rule in rules:
        if any(hint in lowered for hint in rule.hints):
            yield from rule.find(text)


def _at_hints(rule: Rule, text: str, lowered: str) -> Iterator[Secret]:
    """Yield the secrets of a rule that begins with its hints. To look for these alone is far faster."""
    for hint in rule.hints:
        at = lowered.find(hint)
        while at >= 0:
            match = compiled(rule.pattern).match(text, at)
            if match and rule.judge and rule.judge(match["s"]):
                yield Secret(*match.span("s"), rule.kind)
            at = lowered.find(hint, match.end() if match else at + 1)


def _apart(found: list[Secret]) -> list[Secret]:
    """Return secrets in order, without overlaps."""
    kept: list[Secret] = []
    found.sort(key=lambda one: (one.start, -one.end))
    for secret in found:
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
        elif secret.end > kept[-1].end:  # the end of a secret is secret, up to the next one
            at = bisect_left(found, kept[-1].end, key=lambda one: one.start)
            end = min(secret.end, found[at].start) if at < len(found) else secret.end
            kept[-1] = kept[-1]._replace(end=end)
    return kept


def _repeated(text: str, found: list[Secret]) -> Iterator[Secret]:
    """Yield the other places of values that only a name announced: of the first ones, so that the time is bounded."""
    values = {text[one.start : one.end]: one.kind for one in found if one.kind in ("secret", "password")}
    known = (value for value in values if len(value) >= _MIN_PIECE and forms.has_both(value))
    for value in islice(known, _MAX_REPEATED):
        for place in re.finditer(re.escape(value), text):
            yield Secret(*place.span(), values[value])


# ---- tokens ---------------------------------------------------------------------------------------------------

#: A token has at least 14 characters. Text without such a run has none.
_RUN = re.compile(r"[!-~]{14,}")
#: The shortest key after the name of a vendor has 15 characters of these.
_LONG = re.compile(r"[A-Za-z0-9_-]{15}")
_DIGIT = re.compile("[0-9]")
#: A token that is longer than its rule says ends here.
_REST = re.compile(r"[A-Za-z0-9_+/=-]*")


class _VendorRule(NamedTuple):
    kind: str
    pattern: str
    entropy: float
    named: bool


class _VendorRules(NamedTuple):
    #: By keyword: the rules of tokens, which have the keyword in them, and the rules of values after a vendor's name.
    tokens: dict[str, tuple[_VendorRule, ...]]
    named: dict[str, tuple[_VendorRule, ...]]
    #: The kinds of tokens by their beginnings.
    prefixes: dict[str, str]
    shape: str


@cache
def _vendor_rules() -> _VendorRules:
    data = json.loads(Path(__file__).with_name("secret_rules.json").read_text("utf-8"))
    tokens, named = dict[str, tuple[_VendorRule, ...]](), dict[str, tuple[_VendorRule, ...]]()
    for kind, words, pattern, least in data["tokens"]:
        for word in words:
            tokens[word] = (*tokens.get(word, ()), _VendorRule(kind, pattern, least, False))
    for kind, words, name, value, least in data["named"]:
        pattern = rf"(?i){name}{_AFTER_VENDOR}(?P<s>{value})(?![A-Za-z0-9_])"
        for word in words:
            named[word] = (*named.get(word, ()), _VendorRule(kind, pattern, least, True))
    prefixes = data["prefixes"] | forms.PREFIXES
    return _VendorRules(tokens, named, prefixes, forms.shape(prefixes))


#: Between the name of a vendor and its key: more words, then a sign or a verb.
_AFTER_VENDOR = (
    r"""(?P<between>[ \t\w.'"-]{0,25}?)\s{0,3}(?:=>|\|\||[:?]?=|[:>,：]|\bis\b|是|为)[\x60'"\s=]{0,5}"""
)
_NO_KEY = re.compile(
    r"commit|sha|hash|digest|checksum|revision|version|build|issue|\bids?\b|_id$", re.IGNORECASE
)


def _tokens(text: str, lowered: str, runs: list[re.Match[str]]) -> Iterator[Secret]:
    if not runs:
        return
    vendors = _vendor_rules()
    joined = "\n".join(run[0] for run in runs).lower()
    found = [rule for word in vendors.tokens if word in joined for rule in vendors.tokens[word]]
    if _DIGIT.search(joined):
        found += [rule for word in vendors.named if word in lowered for rule in vendors.named[word]]
    for rule in dict.fromkeys(found):
        yield from _vendor_matches(text, rule)
    for run in runs:
        for one in compiled(vendors.shape).finditer(text, *run.span()):
            if forms.is_shaped(one):
                yield Secret(*one.span(), vendors.prefixes.get(one["known"], "key"))
        yield from (secret for rule in forms.LONG_RULES for secret in rule.find(text, *run.span()))
    for prefix in [prefix for prefix in vendors.prefixes if prefix in text and prefix[-1] in "_-."]:
        for one in compiled(forms.glued_shape(prefix)).finditer(text):
            if forms.is_glued(one):
                yield Secret(*one.span(), vendors.prefixes[prefix])


def _vendor_matches(text: str, rule: _VendorRule) -> Iterator[Secret]:
    for match in compiled(rule.pattern, re.ASCII).finditer(text):
        start, end = match.span("s") if rule.named else match.span(match.lastindex or 0)
        if rule.entropy and _entropy(text[start:end]) < rule.entropy:
            continue
        if rule.named and (_NO_KEY.search(match["between"]) or not re.search(r"\d", match["s"])):
            continue
        rest = _REST.match(text, end)
        yield Secret(start, rest.end() if rest and not rule.named else end, rule.kind)


def _entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character."""
    shares = [text.count(char) / len(text) for char in set(text)]
    return -sum(share * math.log2(share) for share in shares)


# ---- values that a name announces -----------------------------------------------------------------------------

_LAST_WORD = re.compile(r"[!-~]{6,100}$")
_RUN_OF_WORD = re.compile(r"[!-~]{6}")
#: Characters of the longest name of a value, with the sign after it.
_MAX_NAME = 60


def _named(text: str, lowered: str) -> Iterator[Secret]:
    """Yield the values that a name announces: `password: x`, `密码是 x`, `x as the password`."""
    for hint in [hint for hint in forms.NAME_HINTS if hint in lowered]:
        words = forms.NAME_HINTS[hint]
        at = lowered.find(hint)
        while at >= 0:
            if not words or lowered[max(0, at - 14) : at].rstrip(" _-").endswith(words):
                found = _value_after(text, at) or _value_before(text, at)
                yield from found
            else:
                found = []
            # Of the names inside a secret, only one at its end can announce another.
            inside = max((one.end for one in found), default=0) - _MAX_NAME
            at = lowered.find(hint, max(at + 1, inside))


def _value_after(text: str, at: int) -> list[Secret]:
    match = compiled(forms.NAME).match(text, at)
    if match and forms.looks_secret(forms.trimmed(match["s"]), match):
        rest = compiled(forms.VALUE_REST).match(text, match.end())
        value = forms.trimmed(text[match.start("s") : rest.end() if rest else match.end()])
        return [Secret(match.start("s"), match.start("s") + len(value), "secret")]
    return []


def _value_before(text: str, at: int) -> list[Secret]:
    window = text[max(0, at - 60) : at]
    if not _RUN_OF_WORD.search(text, max(0, at - 160), at):
        return []
    if (link := compiled(forms.LINK).search(window)) and (
        word := _LAST_WORD.search(text, max(0, at - 160), at - len(link[0]))
    ):
        value = word[0].strip("\"'`(")
        if forms.has_both(value) and forms.is_plain_value(value):
            start = word.start() + word[0].index(value)
            return [Secret(start, start + len(value), "secret")]
    return []
