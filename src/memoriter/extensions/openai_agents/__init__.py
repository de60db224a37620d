"""The OpenAI Agents SDK: a session that is part of the memory."""

from typing import TYPE_CHECKING

from memoriter.extension import Extension
from memoriter.extensions.frameworks import on_first_use

if TYPE_CHECKING:
    from memoriter.extensions.openai_agents.session import MemoriterSession

__all__ = ["MemoriterSession", "extension"]

extension = Extension(name="openai_agents")
__getattr__ = on_first_use(__name__, "session", __all__)
