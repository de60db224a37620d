"""What a person picks from a menu: bring in what is remembered about something, or write down what was said.

The words of the second are made from the tools that the agent has, so that it is never told to use one it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import mcp_types as types

from memoriter.errors import BadArgument

if TYPE_CHECKING:
    from memoriter.server.mcp.view import View

RECALL, SUMMARISE = "recall", "summarise-session"
TOPIC_CHARS = 1000
WRITERS = ("memory_save", "memory_store")

SUMMARISE_TEXT = """Write down what should outlast this conversation, with {tools}.

Take decisions and their reasons, facts about people and projects, preferences, what was done and what is still to do, \
with names, numbers, dates and paths. Leave out greetings, tool output, what was dropped again, and every password or \
key. Add nothing that was not said. Each point is one sentence that stands alone, in the language of the conversation.

Search the memory first, so that what it knows already is not written twice. Then tell me in a few lines what you \
wrote down and where."""


def prompts(view: View) -> list[types.Prompt]:
    """The prompts that this caller can pick; none while there is nothing to do them with."""
    found = list[types.Prompt]()
    if view.notes or view.entries:
        topic = types.PromptArgument(
            name="topic", description="Whom or what it is about, in any language.", required=True
        )
        found.append(
            types.Prompt(
                name=RECALL,
                title="Recall",
                description="Bring in what is remembered about something.",
                arguments=[topic],
            )
        )
    if _writers(view):
        found.append(
            types.Prompt(
                name=SUMMARISE,
                title="Summarise the session",
                description="Write down what should outlast this conversation.",
                arguments=[],
            )
        )
    return found


def prompted(view: View, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """The messages of a prompt; raises in words where there is none of this name."""
    known = {prompt.name: prompt for prompt in prompts(view)}
    if name not in known:
        raise BadArgument(f"There is no prompt {name!r}; there are: {', '.join(known) or 'none'}.")
    text = _summarise(view) if name == SUMMARISE else _recall(view, arguments.get("topic", ""))
    content = types.TextContent(type="text", text=text)
    message = types.PromptMessage(role="user", content=content)
    return types.GetPromptResult(description=known[name].description, messages=[message])


def _recall(view: View, topic: str) -> str:
    topic = " ".join(topic.split())[:TOPIC_CHARS]
    if not topic:
        raise BadArgument("The prompt recall needs topic.")
    told = view.memory().recall(topic, session_key=view.session, door="mcp")
    if not told.text:
        return f"What do you know about {topic}? Nothing about it is remembered; search your memory with other words."
    return f"What do you know about {topic}? This is remembered:\n\n{told.text}"


def _summarise(view: View) -> str:
    return SUMMARISE_TEXT.format(tools=" or ".join(f"`{name}`" for name in _writers(view)))


def _writers(view: View) -> list[str]:
    return [name for name in WRITERS if name in view.tools]
