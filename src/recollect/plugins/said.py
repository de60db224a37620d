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
        return _messages(moment)
    return listen(moment.transcript).records


def question_of(moment: Moment) -> str:
    """What the user wants now: the prompt, or else what they said last."""
    prompt = moment.prompt if isinstance(moment.prompt, str) else ""
    if not prompt.strip():
        return question(_messages(moment))
    return question([*_messages(moment), {"role": "user", "content": prompt}])


def _messages(moment: Moment) -> list[Message]:
    """What is a message of what the host sent: one that is none must not cost the others."""
    return [message for message in moment.messages or () if isinstance(message, Mapping)]
