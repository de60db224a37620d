"""A place to load settings from: a temporary home, workspace and environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memoriter.config import Settings, load


@dataclass
class Place:
    """A home and a workspace with their settings files, and an environment."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def own_file(self) -> Path:
        return self.home / "config.yaml"

    @property
    def workspace_file(self) -> Path:
        return self.workspace / ".memoriter.yaml"

    def load(self, arguments: Mapping[str, object] | None = None, config: Path | None = None) -> Settings:
        places = {"MEMORITER_HOME": str(self.home), "MEMORITER_WORKSPACE": str(self.workspace)}
        return load(config=config, arguments=arguments, environ=places | self.environ, cwd=self.root)
