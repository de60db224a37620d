"""Memory that works automatically beside an agent: the plugin in the memory slot, and the moments it acts on.

from memoriter import Agent, Moment

with Agent.open(workspace="~/notes", slot="memory-full") as agent:
    effect = agent.emit(Moment("before_agent_start", session="s1", prompt="What do I drink?"))
    print(effect.prepend_context)
"""

from memoriter.agent.agent import Agent as Agent
from memoriter.agent.hooks import EVENTS as EVENTS
from memoriter.agent.hooks import Effect as Effect
from memoriter.agent.hooks import Event as Event
from memoriter.agent.hooks import HookBus as HookBus
from memoriter.agent.hooks import Moment as Moment
from memoriter.agent.plugins import Plugin as Plugin
from memoriter.agent.plugins import known_plugins as known_plugins
from memoriter.agent.reloading import ReloadingAgent as ReloadingAgent
