"""A toolset for pydantic-ai: our tools as they stand in the table, and what is remembered put before each run.

Give it to an agent as ``Agent(model, toolsets=[RecollectToolset(memory)])``. Its instructions say when to use the
tools, and what the memory holds about the run's own prompt, found once a run. Whatever goes wrong in a call is a
result in words, so no call is retried for its own sake.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from recollect import logs
from recollect.doors.frameworks import FrameworkMissing
from recollect.doors.tools import Toolbox
from recollect.errors import RecollectError

try:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import InstructionPart, ModelMessage, ModelRequest, UserContent, UserPromptPart
    from pydantic_ai.tools import AgentDepsT, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
    from typing_extensions import override
except ImportError as error:
    raise FrameworkMissing("pydantic-ai", "pydantic-ai") from error

if TYPE_CHECKING:
    from recollect.memory import Memory

__all__ = ["RecollectToolset"]

log = logs.get("frameworks")

_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
"""The tools check their arguments themselves, and answer in words what is wrong with them."""


class RecollectToolset(AbstractToolset[AgentDepsT]):
    """The memory of one agent as tools and instructions.

    ``names`` hands out some of the tools only; ``recall=False`` leaves out what is remembered about the prompt, and
    ``language`` is that of the section on the tools.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        session_key: str | None = None,
        names: Collection[str] | None = None,
        recall: bool = True,
        language: str = "en",
        id: str | None = "recollect",  # noqa: A002 - the framework's own name
    ) -> None:
        self._memory = memory
        self._session_key = session_key
        self._toolbox = Toolbox(memory, session_key=session_key, names=names)
        self._recall = recall
        self._language = language
        self._id = id
        self._told: tuple[str, str] | None = None  # of one run: what was asked, and the block for it

    @property
    @override
    def id(self) -> str | None:
        """The toolset's name among those of an agent."""
        return self._id

    @override
    async def for_run(self, ctx: RunContext[AgentDepsT]) -> RecollectToolset[AgentDepsT]:
        """A toolset of this run's own, which recalls once."""
        fresh = copy.copy(self)
        fresh._told = None
        return fresh

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
        """When to use the tools, and what is remembered about what was asked."""
        section = await asyncio.to_thread(self._toolbox.prompt, self._language)
        block = await self._remembered(_asked(ctx)) if self._recall else ""
        parts = [InstructionPart(section), InstructionPart(block, dynamic=True)]
        return [part for part in parts if part.content]

    async def _remembered(self, asked: str) -> str:
        if self._told is None or self._told[0] != asked:
            self._told = (asked, await asyncio.to_thread(self._block, asked))
        return self._told[1]

    def _block(self, asked: str) -> str:
        try:
            return self._memory.recall(asked, session_key=self._session_key, door="pydantic-ai").text
        except RecollectError as error:  # memory never breaks the agent
            log.warning("nothing could be recalled: %s", error)
            return ""


def _asked(ctx: RunContext[Any]) -> str:
    """The run's own prompt, or what the user said last."""
    return _words(ctx.prompt) or _last_words(ctx.messages)


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
