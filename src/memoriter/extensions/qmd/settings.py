"""The settings of qmd, the section `memory.qmd`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from memoriter.config.fields import Duration, Section, Whole, described
from memoriter.config.search import TAKEN_NAMES, CollectionSettings


class QmdUpdateSettings(Section):
    """Updates of qmd's index. Times are seconds, or texts such as `500ms`, `15s`, `5m`, `1h`."""

    interval: Duration = described(300.0, "Maximum time between updates. 0: update only after changes.", ge=0)
    debounce: Duration = described(1.0, "Minimum time between updates.", ge=0)
    command_timeout: Duration = described(30.0, "Time limit for small commands.", gt=0)
    update_timeout: Duration = described(120.0, "Time limit for `qmd update`.", gt=0)


class QmdLimits(Section):
    """Limits of a search with qmd. `search.max_results` and `search.snippet_chars` apply too."""

    timeout_ms: Whole = described(
        4000,
        "Time limit for a search in milliseconds, half of it for indexing recent changes. After it, "
        "`builtin` answers.",
        ge=100,
        le=600_000,
    )


class QmdPathSettings(CollectionSettings):
    """A file or folder that qmd indexes. A path alone is enough."""

    name: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,64}$")


class QmdBackendSettings(Section):
    """The external engine `qmd`, with `builtin` as its fallback. Used when `memory.backend` is `qmd`."""

    command: str = described(
        "qmd",
        "The program: a name on the PATH, a file, or the script `qmd.js`, which runs with the `node` on "
        "the PATH.",
        min_length=1,
    )
    search_mode: Literal["search", "vsearch", "query"] = described(
        "search",
        "`search` (keywords), `query` (keywords and vectors), or `vsearch` (vectors, after a language "
        "model rewrote the query; slow). The last two need a model.",
    )
    paths: tuple[QmdPathSettings, ...] = described(
        (),
        "More files and folders to index with this backend, besides `files.extra_paths`: paths, or objects "
        "such as `{path: ~/journal, name: journal, pattern: '**/*.md'}`.",
    )
    embed_model: str | None = described(
        None, "A `.gguf` file or an `hf:` name. Default: qmd's default model, if it was downloaded."
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
