"""What was said, as a moment tells it: in its messages, or in the transcript that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recollect.plugins.moments import Moment
from recollect.service import question
from recollect.sources.messages import read_record

Message = Mapping[str, object]

MAX_LINE = 4 * 1024 * 1024  #: bytes; a longer line is a picture or a tool's output


def said_at(moment: Moment) -> Sequence[Message]:
    """The conversation."""
    if moment.messages or moment.transcript is None:
        return moment.messages
    return tuple(_lines(moment.transcript))


def question_of(moment: Moment) -> str:
    """What the user wants now: the prompt, or else what they said last."""
    if not moment.prompt.strip():
        return question(moment.messages)
    return question([*moment.messages, {"role": "user", "content": moment.prompt}])


def _lines(transcript: Path) -> Iterator[Message]:
    """The lines of a transcript in which somebody says something, or that bring in text from outside."""
    with transcript.open("rb") as file:
        while line := file.readline(MAX_LINE):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                message = read_record(record)
                if message.role or message.outside:
                    yield record
