"""Memory for pydantic-ai: our tools as they stand in the table, and what is remembered put before the user's prompt.

Give it to an agent as ``Agent(model, capabilities=[MemoriterMemory(memory)])``; or the tools alone, as
``toolsets=[MemoriterToolset(memory)]``. What is recalled was written by others: it stands in the user's turn, as data,
and never among the instructions. Whatever goes wrong in a call is a result in words, so no call is retried for its own
sake.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memoriter import logs
from memoriter.errors import MemoriterError
from memoriter.integrations import FrameworkMissing
from memoriter.tools.toolbox import Toolbox

try:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import InstructionPart, ModelMessage, ModelRequest, UserContent, UserPromptPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import AgentDepsT, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
    from typing_extensions import override
except ImportError as error:
    raise FrameworkMissing("pydantic-ai", "pydantic-ai") from error

if TYPE_CHECKING:
    from memoriter.memory import Memory

__all__ = ["MemoriterMemory", "MemoriterToolset"]

log = logs.get("frameworks")

_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
"""The tools check their arguments themselves, and answer in words what is wrong with them."""


class MemoriterToolset(AbstractToolset[AgentDepsT]):
    """The memory of one agent as tools, with the section that says when to use them.

    ``names`` hands out some of the tools only; ``language`` is that of the section.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        session_key: str | None = None,
        names: Collection[str] | None = None,
        language: str = "en",
        id: str | None = "memoriter",  # noqa: A002 - the framework's own name
    ) -> None:
        self._toolbox = Toolbox(memory, session_key=session_key, names=names)
        self._language = language
        self._id = id

    @property
    @override
    def id(self) -> str | None:
        """The toolset's name among those of an agent."""
        return self._id

    @override
    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Every tool, as it stands in the table."""
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=name,
                    description=tool.description,
                    parameters_json_schema=tool.schema(),
                    return_schema=tool.output_schema(),
                    metadata={"annotations": tool.annotations()},
                ),
                max_retries=ctx.max_retries,
                args_validator=_ANY_OBJECT,
            )
            for name, tool in self._toolbox.tools.items()
        }

    @override
    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Call a tool in a thread; its result holds an `error` where it could not be done."""
        return await asyncio.to_thread(self._toolbox.call, name, tool_args)

    @override
    async def get_instructions(self, ctx: RunContext[AgentDepsT]) -> list[InstructionPart]:
        """When to use the tools."""
        section = await asyncio.to_thread(self._toolbox.prompt, self._language)
        return [InstructionPart(section)] if section else []


class MemoriterMemory(AbstractCapability[AgentDepsT]):
    """The memory of one agent: its tools, and what it holds about the run's own prompt, found once a run.

    ``recall=False`` leaves out what is remembered; ``names`` and ``language`` are as for `MemoriterToolset`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        session_key: str | None = None,
        names: Collection[str] | None = None,
        recall: bool = True,
        language: str = "en",
        id: str | None = None,  # noqa: A002 - the framework's own name
    ) -> None:
        self.id = id
        self._memory = memory
        self._session_key = session_key
        self._recall = recall
        self._toolset = MemoriterToolset[AgentDepsT](
            memory, session_key=session_key, names=names, language=language, id=id or "memoriter"
        )
        self._told: tuple[str, str] | None = None  # of one run: what was asked, and the block for it

    @override
    async def for_run(self, ctx: RunContext[AgentDepsT]) -> MemoriterMemory[AgentDepsT]:
        """One of this run's own, which recalls once."""
        fresh = copy.copy(self)
        fresh._told = None
        return fresh

    @override
    def get_toolset(self) -> AbstractToolset[AgentDepsT]:
        """Our tools."""
        return self._toolset

    @override
    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put what is remembered before what was asked, in what this request sends; the history stays as it is."""
        asked = _words(ctx.prompt) or _last_words(request_context.messages)
        block = await self._remembered(asked) if self._recall and asked else ""
        if not block:
            return request_context
        return replace(request_context, messages=_with_block(request_context.messages, asked, block))

    async def _remembered(self, asked: str) -> str:
        if self._told is None or self._told[0] != asked:
            self._told = (asked, await asyncio.to_thread(self._block, asked))
        return self._told[1]

    def _block(self, asked: str) -> str:
        try:
            return self._memory.recall(asked, session_key=self._session_key, door="pydantic-ai").text
        except MemoriterError as error:  # memory never breaks the agent
            log.warning("nothing could be recalled: %s", error)
            return ""


# ---- messages ------------------------------------------------------------------------------------------------


def _with_block(messages: Sequence[ModelMessage], asked: str, block: str) -> list[ModelMessage]:
    """New messages, in which the block stands right before the last place where this was asked."""
    result = list(messages)
    for at in reversed(range(len(result))):
        message = result[at]
        if not isinstance(message, ModelRequest):
            continue
        for place in reversed(range(len(message.parts))):
            part = message.parts[place]
            if isinstance(part, UserPromptPart) and _words(part.content) == asked:
                told = UserPromptPart(block, timestamp=part.timestamp)
                parts = [*message.parts[:place], told, *message.parts[place:]]
                result[at] = replace(message, parts=parts)
                return result
    return result  # a history processor took the prompt out: there is nothing to put it before


def _last_words(messages: Sequence[ModelMessage]) -> str:
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            for part in reversed(message.parts):
                if isinstance(part, UserPromptPart) and (words := _words(part.content)):
                    return words
    return ""


def _words(content: str | Sequence[UserContent] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part for part in content if isinstance(part, str))
