"""Framework classes load on first use. If the framework is missing, the error names the extra to install."""

from __future__ import annotations

import sys

import pytest

import memoriter.integrations
from memoriter.integrations import FrameworkMissing

FRAMEWORKS = [
    ("langgraph", "MemoriterStore", "langgraph.store.base", "LangGraph", "langgraph"),
    ("openai_agents", "MemoriterSession", "agents", "The OpenAI Agents SDK", "openai-agents"),
    ("anthropic", "MemoriterMemoryTool", "anthropic", "The Anthropic SDK", "anthropic"),
    ("pydantic_ai", "MemoriterMemory", "pydantic_ai", "pydantic-ai", "pydantic-ai"),
]


@pytest.mark.parametrize(("module", "class_name", "package", "name", "extra"), FRAMEWORKS)
def test_a_missing_framework_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, module: str, class_name: str, package: str, name: str, extra: str
) -> None:
    for loaded in [known for known in sys.modules if f"{known}.".startswith(f"{package}.")] or [package]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.delitem(sys.modules, f"memoriter.integrations.{module}", raising=False)
    with pytest.raises(FrameworkMissing) as caught:
        getattr(memoriter.integrations, class_name)
    assert str(caught.value) == f"{name} is not installed. Run `pip install 'memoriter[{extra}]'`."


def test_every_public_class_can_be_imported_from_the_package() -> None:
    from memoriter.integrations import MemoriterSession, openai_agents

    assert MemoriterSession is openai_agents.MemoriterSession
    assert all(
        getattr(memoriter.integrations, name).__name__ == name for name in memoriter.integrations.__all__
    )
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = memoriter.integrations.Nothing
