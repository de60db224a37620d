"""Field types and checks that all sections of the settings share, and suggestions for misspelled names."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from memoriter.extension import Kind, offers, suggest

T = TypeVar("T")


def described(default: T, description: str, **limits: Any) -> T:
    """Declare a field of a model with its default, its description and its limits, such as ``ge=1``."""
    field: T = Field(default, description=description, **limits)
    return field


def reject_bool(value: object) -> object:
    """Reject `max_results: true`, which Python would read as 1."""
    if isinstance(value, bool):
        # pydantic collects ValueErrors, not TypeErrors.
        raise ValueError("must be a number, not true or false")  # noqa: TRY004
    return value


def _seconds(value: object) -> object:
    """Return seconds from a number or a text with a unit."""
    if not isinstance(value, str):
        return reject_bool(value)
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h)?\s*", value)
    if match is None:
        raise ValueError("must be seconds, or a time such as '500ms', '15s', '5m' or '1h'")
    return float(match[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}[match[2] or "s"]


Whole = Annotated[int, BeforeValidator(reject_bool)]
Number = Annotated[float, BeforeValidator(reject_bool)]
Fraction = Annotated[float, BeforeValidator(reject_bool), Field(ge=0, le=1)]
#: Seconds: a number, or a text such as `500ms`, `15s`, `5m`, `1h`.
Duration = Annotated[float, BeforeValidator(_seconds)]


def offered(kind: Kind, *builtin: str, noun: str = "") -> AfterValidator:
    """Return a check for a name that is builtin or that an extension offers. ``noun`` is for the error message."""

    def check(name: str) -> str:
        known = (*builtin, *offers(kind))
        if name in known:
            return name
        if noun:
            raise ValueError(f"there is no such {noun}. {suggest(name, known)}")
        raise ValueError(f"must be one of {', '.join(known)}{did_you_mean(nearest(name, known))}")

    return AfterValidator(check)


#: A name that is used as the name of a folder.
FOLDER_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", re.ASCII)
NO_FOLDER_NAME = "letters, digits, '-', '_' and '.', not starting with '.'"


def check_name(name: str) -> str:
    """Return the name, or raise if a folder cannot have it."""
    if not FOLDER_NAME.fullmatch(name):
        raise ValueError(f"must be {NO_FOLDER_NAME}")
    return name


class Section(BaseModel):
    """A frozen group of settings. An unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True)


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that was probably meant: the same last part, or a similar spelling."""
    choices = list(choices)
    same_ending = [choice for choice in choices if choice.rpartition(".")[2] == name.rpartition(".")[2]]
    similar = same_ending or difflib.get_close_matches(name[:200], choices, n=1, cutoff=0.75)
    return similar[0] if similar else None


def did_you_mean(name: str | None) -> str:
    """Return the end of an error message, with a suggestion if there is a similar name."""
    return f". Did you mean {name!r}?" if name else "."


def check_url(url: str) -> str:
    """Return the URL with a scheme, or raise if it could lead somewhere unexpected."""
    text = url if "://" in url else f"http://{url}"  # addresses in variables often have no scheme
    parts = urlsplit(text)
    plain = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
    if not plain or "@" in parts.netloc or "\\" in text or any(c.isspace() for c in text):
        raise ValueError("must be a URL such as https://host/v1, without a user name, password or query")
    if _is_link_local(parts.hostname or ""):
        raise ValueError("must not be a link-local address, because clouds serve machine credentials there")
    return text


def _is_link_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_link_local
    except ValueError:
        return False


#: A plain URL. Sections that extensions add to others use such types: of two validators with one name, one would win.
Url = Annotated[str, AfterValidator(check_url)]
