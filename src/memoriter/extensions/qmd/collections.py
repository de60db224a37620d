"""The folders of a workspace that qmd indexes.

A collection is a folder and a pattern. qmd treats hidden files and links differently, so a result counts only if the
workspace lists the file too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from memoriter.files.platform import replace
from memoriter.files.scan import absolute
from memoriter.records import Source

if TYPE_CHECKING:
    from memoriter.notes.workspace import Workspace

_GLOB_CHARACTERS = frozenset("\\*?[]{}()!+@|")


@dataclass(frozen=True, slots=True)
class Collection:
    """One folder that qmd indexes."""

    name: str
    #: Without symbolic links.
    root: Path
    pattern: str
    source: Source = "memory"


def collections_of(workspace: Workspace, sessions: Path | None = None) -> tuple[Collection, ...]:
    """Return the collections whose folders exist: the workspace, its extra paths, and exported sessions."""
    root = Path(os.path.realpath(workspace.root))
    collections = [
        Collection("memory-root", root, "{MEMORY,memory}.md"),
        Collection(
            "memory",
            root / workspace.folder,
            "**/*.{[mM][dD],[mM][aA][rR][kK][dD][oO][wW][nN],[mM][dD][xX],[tT][xX][tT]}",
        ),
        *_extra(workspace),
    ]
    if sessions is not None:
        collections.append(Collection("sessions", Path(os.path.realpath(sessions)), "**/*.md", "sessions"))
    return tuple(collection for collection in collections if collection.root.is_dir())


def _extra(workspace: Workspace) -> list[Collection]:
    found = []
    patterns = workspace.patterns
    pattern = patterns[0] if len(patterns) == 1 else "{" + ",".join(patterns) + "}"
    for number, extra in enumerate(workspace.extra_paths, 1):
        real = Path(os.path.realpath(absolute(workspace.root, extra)))
        name = workspace.names.get(extra, f"extra-{number}")
        if real.is_dir():
            found.append(Collection(name, real, workspace.own_patterns.get(extra, pattern)))
        elif real.exists():
            found.append(Collection(name, real.parent, _escape(real.name)))
    return found


def _escape(name: str) -> str:
    return "".join(f"\\{char}" if char in _GLOB_CHARACTERS else char for char in name)


def write_configuration(file: Path, collections: Sequence[Collection], embed_model: str | None) -> None:
    """Write the configuration of qmd if it differs. JSON is valid YAML and quotes every name and path correctly.

    The models that qmd has added are kept. Without them, qmd adds them at its next start and rewrites the file in
    place. Another qmd that reads the file at that moment finds no collections.
    """
    known = _read(file)
    content: dict[str, object] = {
        "collections": {item.name: {"path": str(item.root), "pattern": item.pattern} for item in collections},
        "models": {"embed": embed_model} if embed_model else {},
        "embed_model": embed_model or "",  # ignored by qmd; says for which setting it added the models
    }
    match known:
        case {"models": dict(models), "embed_model": meant} if meant == content["embed_model"]:
            content["models"] = models
    if content != known:
        new = file.with_suffix(".new")
        new.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", "utf-8")
        replace(new, file)


def _read(file: Path) -> object:
    try:
        return yaml.safe_load(file.read_text("utf-8", "replace"))
    except (FileNotFoundError, yaml.YAMLError):
        return None
