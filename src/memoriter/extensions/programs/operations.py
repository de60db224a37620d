"""The operation `hosts.list`: the programs on this machine that run an agent."""

from __future__ import annotations

from pydantic import Field

from memoriter.tools.search import NoArguments
from memoriter.tools.tool import Call, Shape, omitted_if_none, operation


class HostJson(Shape):
    """A program that runs an agent."""

    host: str
    title: str
    state: str = Field(description="`connected`, `incomplete` or `not connected`.")
    folder: str
    recalled: float | None = omitted_if_none("When it last recalled.")
    captured: float | None = omitted_if_none("When it last captured.")


class AgentJson(Shape):
    """An agent of the gateway."""

    name: str
    workspace: str
    recalled: float | None = omitted_if_none(
        "When this agent last recalled. Known for the agent that is asked."
    )


class HostsResult(Shape):
    """The agents of this home, and the programs on this machine that run one."""

    agents: list[AgentJson] = Field(default=[])
    hosts: list[HostJson] = Field(default=[])


@operation("hosts.list", owner_only=True)
def hosts(call: Call[NoArguments]) -> HostsResult:
    """List the agents of this home, and the programs on this machine that run one: whether each uses this memory, and
    when it last recalled and captured.
    """
    from memoriter.extensions.programs.hosts import connected
    from memoriter.hosts import InstallRequest

    settings = call.memory.settings
    newest = call.memory.entries.recalls(limit=1).recalls
    found = connected(InstallRequest(settings, {}, dry_run=True))
    workspaces = {settings.agent: settings.workspace, **settings.gateway.agents}
    return HostsResult(
        agents=[
            AgentJson(
                name=name,
                workspace=str(folder),
                recalled=newest[0].at if newest and name == settings.agent else None,
            )
            for name, folder in workspaces.items()
        ],
        hosts=[HostJson.model_validate({**one, "folder": str(one["folder"])}) for one in found],
    )
