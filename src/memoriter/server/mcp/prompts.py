"""MCP prompts, which a person picks from a menu: recall a topic, or save what matters in this conversation.

The text of the second names only tools that the agent has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import mcp_types as types

from memoriter.errors import BadArgument

if TYPE_CHECKING:
    from memoriter.server.mcp.view import View

RECALL, SUMMARISE = "recall", "summarise-session"
MAX_TOPIC_CHARS = 1000
SAVING_TOOLS = ("memory_save", "memory_store")

SUMMARISE_TEXT = """Save what will still matter after this conversation, with {tools}.

Include decisions and their reasons, facts about people and projects, preferences, what was done and what is left to \
do, with names, numbers, dates and paths. Leave out greetings, tool output, ideas that were dropped, and all passwords \
and keys. Add nothing that was not said. Write each point as one self-contained sentence, in the language of the \
conversation.

Search the memory first, so that you do not save what it already contains. Then tell me in a few lines what you saved \
and where."""


def list_prompts(view: View) -> list[types.Prompt]:
    """Return the prompts that this caller can use."""
    prompts = list[types.Prompt]()
    if view.has_notes or view.has_entries:
        topic = types.PromptArgument(
            name="topic",
            description="A person, a project or any other topic, in any language.",
            required=True,
        )
        prompts.append(
            types.Prompt(
                name=RECALL,
                title="Recall",
                description="Show what the memory contains about a topic.",
                arguments=[topic],
            )
        )
    if _saving_tools(view):
        prompts.append(
            types.Prompt(
                name=SUMMARISE,
                title="Summarise the session",
                description="Save what will still matter after this conversation.",
                arguments=[],
            )
        )
    return prompts


def get_prompt(view: View, name: str, arguments: Mapping[str, str]) -> types.GetPromptResult:
    """Return the messages of a prompt."""
    prompts = {prompt.name: prompt for prompt in list_prompts(view)}
    if name not in prompts:
        raise BadArgument(f"Prompt {name!r} not found. Available: {', '.join(prompts) or 'none'}.")
    text = _summarise(view) if name == SUMMARISE else _recall(view, arguments.get("topic", ""))
    content = types.TextContent(type="text", text=text)
    message = types.PromptMessage(role="user", content=content)
    return types.GetPromptResult(description=prompts[name].description, messages=[message])


def _recall(view: View, topic: str) -> str:
    topic = " ".join(topic.split())[:MAX_TOPIC_CHARS]
    if not topic:
        raise BadArgument("The prompt `recall` needs the argument `topic`.", "topic")
    recalled = view.memory().recall(topic, session=view.session_key, interface="mcp")
    if not recalled.text:
        return (
            f"What do you know about {topic}? The memory found nothing about it. Search it with other words."
        )
    return f"What do you know about {topic}? The memory contains:\n\n{recalled.text}"


def _summarise(view: View) -> str:
    return SUMMARISE_TEXT.format(tools=" or ".join(f"`{name}`" for name in _saving_tools(view)))


def _saving_tools(view: View) -> list[str]:
    return [name for name in SAVING_TOOLS if name in view.tools]
