"""Conversations, and a short way to report them to an agent."""

from __future__ import annotations

from memoriter.agent import Agent, Effect, Event, Moment

Message = dict[str, object]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


TEA = [user("I prefer tea over coffee."), assistant("Noted.")]
TRAIN = [user("Remember that my train to Lyon leaves at seven."), assistant("I will.")]


def emit(agent: Agent, event: Event, *messages: Message, session: str = "s1", **more: object) -> Effect:
    return agent.emit(Moment(event, session=session, messages=messages, **more))  # type: ignore[arg-type]
