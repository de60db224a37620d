"""Memory for pydantic-ai: the memory tools, and recalled memories before the user's prompt.

Pass it to an agent as ``Agent(model, capabilities=[MemoriterMemory(memory)])``, or only the tools as
``toolsets=[MemoriterToolset(memory)]``. Recalled memories are data in the user's turn and never part of the
instructions. A failed call returns an error message as its result, so pydantic-ai does not retry it.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from memoriter import logs
from memoriter.errors import FrameworkMissing, MemoriterError
from memoriter.memory import Memory
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

__all__ = ["MemoriterMemory", "MemoriterToolset"]

log = logs.get("frameworks")

#: Accepts any object. The tools check their arguments and return an error message.
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))


class MemoriterToolset(AbstractToolset[AgentDepsT]):
    """The memory tools of one agent, with instructions on when to use them.

    ``names`` selects some of the tools. ``language`` is the language of the instructions.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        session: str | None = None,
        names: Collection[str] | None = None,
        language: str = "en",
        id: str | None = "memoriter",  # noqa: A002 - the name that the framework uses
    ) -> None:
        self._toolbox = Toolbox(memory, session=session, names=names)
        self._language = language
        self._id = id

    @property
    @override
    def id(self) -> str | None:
        return self._id

    @override
    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
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
        """Call a tool in a thread. Its result has an `error` if the call failed."""
        return await asyncio.to_thread(self._toolbox.call, name, tool_args)

    @override
    async def get_instructions(self, ctx: RunContext[AgentDepsT]) -> list[InstructionPart]:
        """Return the instructions on when to use the tools."""
        section = await asyncio.to_thread(self._toolbox.prompt, self._language)
        return [InstructionPart(section)] if section else []


class MemoriterMemory(AbstractCapability[AgentDepsT]):
    """The memory of one agent: its tools, and the memories that match the prompt of a run.

    ``recall=False`` disables recalled memories. ``names`` and ``language`` are as in `MemoriterToolset`.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        session: str | None = None,
        names: Collection[str] | None = None,
        recall: bool = True,
        language: str = "en",
        id: str | None = None,  # noqa: A002 - the name that the framework uses
    ) -> None:
        self.id = id
        self._memory = memory
        self._session = session
        self._recall = recall
        self._toolset = MemoriterToolset[AgentDepsT](
            memory, session=session, names=names, language=language, id=id or "memoriter"
        )
        # The prompt of the current run and the block recalled for it.
        self._recalled: tuple[str, str] | None = None

    @override
    async def for_run(self, ctx: RunContext[AgentDepsT]) -> MemoriterMemory[AgentDepsT]:
        """Return a copy for this run, which recalls once."""
        for_run = copy.copy(self)
        for_run._recalled = None
        return for_run

    @override
    def get_toolset(self) -> AbstractToolset[AgentDepsT]:
        return self._toolset

    @override
    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Insert recalled memories before the prompt in this request. The history is not changed."""
        prompt = _text(ctx.prompt) or _last_prompt(request_context.messages)
        block = await self._recall_once(prompt) if self._recall and prompt else ""
        if not block:
            return request_context
        return replace(request_context, messages=_insert_block(request_context.messages, prompt, block))

    async def _recall_once(self, prompt: str) -> str:
        if self._recalled is None or self._recalled[0] != prompt:
            self._recalled = (prompt, await asyncio.to_thread(self._recall_block, prompt))
        return self._recalled[1]

    def _recall_block(self, prompt: str) -> str:
        try:
            return self._memory.recall(prompt, session=self._session, interface="pydantic-ai").text
        except MemoriterError as error:  # a failure of the memory must not stop the agent
            log.warning("could not recall memories: %s", error)
            return ""


# ---- messages ------------------------------------------------------------------------------------------------


def _insert_block(messages: Sequence[ModelMessage], prompt: str, block: str) -> list[ModelMessage]:
    """Return new messages with the block directly before the last occurrence of the prompt."""
    result = list(messages)
    for at in reversed(range(len(result))):
        message = result[at]
        if not isinstance(message, ModelRequest):
            continue
        for position in reversed(range(len(message.parts))):
            part = message.parts[position]
            if isinstance(part, UserPromptPart) and _text(part.content) == prompt:
                block_part = UserPromptPart(block, timestamp=part.timestamp)
                parts = [*message.parts[:position], block_part, *message.parts[position:]]
                result[at] = replace(message, parts=parts)
                return result
    return result  # a history processor removed the prompt


def _last_prompt(messages: Sequence[ModelMessage]) -> str:
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            for part in reversed(message.parts):
                if isinstance(part, UserPromptPart) and (text := _text(part.content)):
                    return text
    return ""


def _text(content: str | Sequence[UserContent] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part for part in content if isinstance(part, str))
