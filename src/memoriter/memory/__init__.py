"""The memory of one agent, as programs use it.

`Memory` is the public object. `search` finds and reads in notes, sessions and entries together, `conversations` learns
from turns, `prompts` selects what enters a prompt, and `parts` opens what they need at first use.
"""

from memoriter.memory.memory import Memory
from memoriter.memory.parts import gateway_files

__all__ = ["Memory", "gateway_files"]
