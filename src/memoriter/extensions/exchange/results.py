"""The JSON output of `pull` and `push`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from memoriter.tools.search import ProblemJson
from memoriter.tools.tool import Shape


class ExchangedNoteJson(Shape):
    """A note that differs between a folder and the memory."""

    path: str
    action: str
    other: str | None = Field(validation_alias="copy", serialization_alias="copy")


class ExchangeResult(Shape):
    """The notes that `pull` or `push` copied."""

    folder: Path
    notes: list[ExchangedNoteJson]
    same: int
    problems: list[ProblemJson]
