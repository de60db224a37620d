"""What was said, as a moment tells it: in its messages, or in the transcript that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.listening import listen
from recollect.plugins.moments import Moment
from recollect.service import question

Message = Mapping[str, object]


def said_at(moment: Moment) -> Sequence[Message]:
    """The conversation; of a long transcript its end."""
    if moment.messages or moment.transcript is None:
        return moment.messages
    return listen(moment.transcript).records


def question_of(moment: Moment) -> str:
    """What the user wants now: the prompt, or else what they said last."""
    if not moment.prompt.strip():
        return question(moment.messages)
    return question([*moment.messages, {"role": "user", "content": moment.prompt}])
