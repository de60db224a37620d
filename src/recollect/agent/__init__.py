"""What happens by itself while an agent works? The plugin that fills the memory slot, and the moments it acts on.

    from recollect.plugins import Host, Moment

    with Host.open(workspace="~/notes", slot="memory-full") as host:
        effect = host.emit(Moment("before_agent_start", session="s1", prompt="What do I drink?"))
        print(effect.prepend_context)

What is remembered and how it is found is not decided here.
"""

from recollect.agent.hooks import HookBus
from recollect.agent.host import Host
from recollect.agent.moments import EVENTS, Effect, Event, Moment
from recollect.agent.plugins import Plugin, known_plugins

__all__ = ["EVENTS", "Effect", "Event", "HookBus", "Host", "Moment", "Plugin", "known_plugins"]
