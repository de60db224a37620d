"""The settings of qmd, the section `memory.qmd`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from memoriter.config.fields import Duration, Section, Whole
from memoriter.config.search import TAKEN_NAMES, CollectionSettings


class QmdUpdateSettings(Section):
    """Updates of qmd's index. Times are seconds, or texts such as `500ms`, `15s`, `5m`, `1h`."""

    interval: Duration = Field(
        default=300.0, ge=0, description="Maximum time between updates. 0: update only after changes."
    )
    debounce: Duration = Field(default=1.0, ge=0, description="Minimum time between updates.")
    command_timeout: Duration = Field(default=30.0, gt=0, description="Time limit for small commands.")
    update_timeout: Duration = Field(default=120.0, gt=0, description="Time limit for `qmd update`.")


class QmdLimits(Section):
    """Limits of a search with qmd. `search.max_results` and `search.snippet_chars` apply too."""

    timeout_ms: Whole = Field(
        default=4000,
        ge=100,
        le=600_000,
        description="Time limit for a search in milliseconds, half of it for indexing recent changes. After it, "
        "`builtin` answers.",
    )


class QmdPathSettings(CollectionSettings):
    """A file or folder that qmd indexes. A path alone is enough."""

    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,64}$")


class QmdBackendSettings(Section):
    """The external engine `qmd`, with `builtin` as its fallback. Used when `memory.backend` is `qmd`."""

    command: str = Field(
        default="qmd",
        min_length=1,
        description="The program: a name on the PATH, a file, or the script `qmd.js`, which runs with the `node` on "
        "the PATH.",
    )
    search_mode: Literal["search", "vsearch", "query"] = Field(
        default="search",
        description="`search` (keywords), `query` (keywords and vectors), or `vsearch` (vectors, after a language "
        "model rewrote the query; slow). The last two need a model.",
    )
    paths: tuple[QmdPathSettings, ...] = Field(
        default=(),
        description="More files and folders to index with this backend, besides `files.extra_paths`: paths, or objects "
        "such as `{path: ~/journal, name: journal, pattern: '**/*.md'}`.",
    )
    embed_model: str | None = Field(
        default=None,
        description="A `.gguf` file or an `hf:` name. Default: qmd's default model, if it was downloaded.",
    )
    update: QmdUpdateSettings = Field(default_factory=QmdUpdateSettings)
    limits: QmdLimits = Field(default_factory=QmdLimits)

    @field_validator("paths")
    @classmethod
    def _have_names_of_their_own(cls, paths: tuple[QmdPathSettings, ...]) -> tuple[QmdPathSettings, ...]:
        """Raise if two collections of qmd would have the same name: one would replace the other."""
        names = [path.name for path in paths if path.name]
        if len(set(names)) < len(names):
            raise ValueError("must have different names")
        if taken := [name for name in names if TAKEN_NAMES.fullmatch(name)]:
            raise ValueError(f"must not have the name {taken[0]}, which memoriter uses itself")
        return paths
