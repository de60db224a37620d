"""The YAML of our settings files: less than YAML offers, so that a file says what its reader thinks it says.

Words as version 1.2 reads them (`citations: off` is a word, not a boolean), no aliases, each key once.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import ClassVar

import yaml


class Loader(yaml.SafeLoader):
    """Safe, and smaller than YAML 1.1: what a settings file needs and no more."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}  # type: ignore[misc]

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        # Nested aliases make a few lines stand for gigabytes; settings have no use for them.
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="aliases are not used in settings", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        # Of two equal keys YAML would quietly keep the last; the reader of the file saw the first.
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                problem = f"the key {key.value[:80]!r} stands twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


def _resolve(kind: str, pattern: str, first: str) -> None:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(f"^(?:{pattern})$"), list(first))


_resolve("null", r"~|null|Null|NULL|", "~nN")
Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^$"), [""])
_resolve("bool", "true|True|TRUE|false|False|FALSE", "tTfF")
_resolve("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789")
_resolve(
    "float",
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.inf|\.nan",
    "-+0123456789.",
)
