"""What every group of settings is made of: numbers that are no booleans, durations, frozen sections.

Also here: how a wrong name is answered.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def no_bool(value: object) -> object:
    """Refuse `max_results: true`: Python would take it as 1."""
    if isinstance(value, bool):
        # pydantic collects ValueErrors, not TypeErrors.
        raise ValueError("must be a number, not true or false")  # noqa: TRY004
    return value


Whole = Annotated[int, BeforeValidator(no_bool)]
Number = Annotated[float, BeforeValidator(no_bool)]


def _seconds(value: object) -> object:
    """Seconds, from a number or a text with a unit."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*(ms|s|m|h)?\s*", value) if isinstance(value, str) else None
    if match:
        return float(match[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}[match[2] or "s"]
    return no_bool(value)


Duration = Annotated[float, BeforeValidator(_seconds)]
Share = Annotated[float, BeforeValidator(no_bool), Field(ge=0, le=1)]


class Section(BaseModel):
    """A group of settings; frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True)


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice that was probably meant: the same last part, or nearly the same letters."""
    choices = list(choices)
    tails = [choice for choice in choices if choice.rpartition(".")[2] == name.rpartition(".")[2]]
    near = tails or difflib.get_close_matches(name[:200], choices, n=1, cutoff=0.75)
    return near[0] if near else None


def did_you_mean(name: str | None) -> str:
    """The end of a sentence that offers the nearest right name, if there is one."""
    return f"; did you mean {name!r}?" if name else ""
