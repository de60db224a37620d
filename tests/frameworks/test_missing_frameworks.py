"""Framework classes load on first use. If the framework is missing, the error names the extra to install."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from memoriter.errors import FrameworkMissing, install_command

FRAMEWORKS = [
    ("langgraph", "store", "MemoriterStore", "langgraph.store.base", "LangGraph", "langgraph"),
    ("openai_agents", "session", "MemoriterSession", "agents", "The OpenAI Agents SDK", "openai-agents"),
    ("anthropic", "memory_tool", "MemoriterMemoryTool", "anthropic", "The Anthropic SDK", "anthropic"),
    ("pydantic_ai", "toolset", "MemoriterMemory", "pydantic_ai", "pydantic-ai", "pydantic-ai"),
]


@pytest.mark.parametrize(("folder", "module", "class_name", "package", "name", "extra"), FRAMEWORKS)
def test_a_missing_framework_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
    folder: str,
    module: str,
    class_name: str,
    package: str,
    name: str,
    extra: str,
) -> None:
    for loaded in [known for known in sys.modules if f"{known}.".startswith(f"{package}.")] or [package]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.delitem(sys.modules, f"memoriter.extensions.{folder}.{module}", raising=False)
    with pytest.raises(FrameworkMissing) as caught:
        getattr(import_module(f"memoriter.extensions.{folder}"), class_name)
    assert str(caught.value) == f"{name} is not installed. Run `{install_command(extra)}`."


@pytest.mark.parametrize("folder", [framework[0] for framework in FRAMEWORKS])
def test_every_public_class_can_be_imported_from_its_extension(folder: str) -> None:
    package = import_module(f"memoriter.extensions.{folder}")
    classes = [name for name in package.__all__ if name != "extension"]
    assert classes
    assert all(getattr(package, name).__name__ == name for name in classes)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = package.Nothing
