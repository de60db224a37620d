"""Letta: import of agent files and of its memory folders."""

from memoriter.extension import Extension, Offer

extension = Extension(
    name="letta", importers={"letta": Offer("memoriter.extensions.letta.agent_file:LETTA", summary="Letta")}
)
