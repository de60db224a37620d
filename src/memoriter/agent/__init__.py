"""Memory that works automatically beside an agent: the plugin in the memory slot, and the moments it acts on.

from memoriter import Agent, Moment

with Agent.open(workspace="~/notes", slot="memory-full") as agent:
    effect = agent.emit(Moment("before_agent_start", session="s1", prompt="What do I drink?"))
    print(effect.prepend_context)
"""

from memoriter.agent.agent import Agent
from memoriter.agent.hooks import EVENTS, Effect, Event, HookBus, Moment
from memoriter.agent.plugins import Plugin, known_plugins
from memoriter.agent.reloading import ReloadingAgent

__all__ = [
    "EVENTS",
    "Agent",
    "Effect",
    "Event",
    "HookBus",
    "Moment",
    "Plugin",
    "ReloadingAgent",
    "known_plugins",
]
