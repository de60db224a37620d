"""Where a framework is not installed, the import of its module says in one sentence what to install."""

from __future__ import annotations

import importlib
import sys

import pytest

from memoriter.integrations import FrameworkMissing

MISSING = [
    ("langgraph", "langgraph.store.base", "LangGraph", "langgraph"),
    ("openai_agents", "agents", "The OpenAI Agents SDK", "openai-agents"),
    ("anthropic", "anthropic", "The Anthropic SDK", "anthropic"),
    ("pydantic_ai", "pydantic_ai", "pydantic-ai", "pydantic-ai"),
]


@pytest.mark.parametrize(("module", "package", "name", "extra"), MISSING)
def test_a_missing_framework_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, module: str, package: str, name: str, extra: str
) -> None:
    for loaded in [one for one in sys.modules if f"{one}.".startswith(f"{package}.")] or [package]:
        monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.delitem(sys.modules, f"memoriter.integrations.{module}", raising=False)
    with pytest.raises(FrameworkMissing) as caught:
        importlib.import_module(f"memoriter.integrations.{module}")
    assert str(caught.value) == f"{name} is not installed: run `pip install 'memoriter[{extra}]'`."
