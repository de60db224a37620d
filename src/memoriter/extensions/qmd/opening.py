"""Open the engine of a memory from its settings: qmd, and the builtin engine when qmd fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.extensions.qmd.engine import QmdEngine, QmdSettings
from memoriter.extensions.qmd.fallback import Cooldown, EnginePool, cache_key
from memoriter.extensions.qmd.sessions import Exports
from memoriter.extensions.qmd.settings import QmdBackendSettings
from memoriter.extensions.qmd.updater import UpdateSchedule

if TYPE_CHECKING:
    from memoriter.config import Settings
    from memoriter.engines import Engine
    from memoriter.notes.workspace import Workspace
    from memoriter.sessions.scope import ScopeCheck
    from memoriter.sessions.transcripts import Transcripts

#: Where qmd keeps downloaded models. All agents share them, because each is hundreds of megabytes.
MODELS = Path("~/.cache/qmd/models")

#: The engines of this process. Memories of the same agent and settings share one, because each keeps a program running,
#: and because a failed one stays in its cooldown when the memory is opened again.
ENGINES = EnginePool(cooldown=Cooldown(60.0, 600.0))


def open_engine(
    settings: Settings,
    *,
    workspace: Workspace,
    sessions: Transcripts | None,
    scope: ScopeCheck,
    builtin: Callable[[], Engine],
) -> Engine:
    """Return the engine of an agent. Raises the error of the builtin engine if neither can be opened."""
    chosen = _engine_settings(settings)

    def qmd() -> Engine:
        exports = Exports(sessions, chosen.folder / "sessions") if sessions else None
        return QmdEngine(chosen, workspace, exports=exports, scope=scope)

    return ENGINES.get(cache_key(settings.agent, (chosen, scope.scope)), qmd, builtin)


def _engine_settings(settings: Settings) -> QmdSettings:
    qmd = settings.section(QmdBackendSettings)
    update = qmd.update
    return QmdSettings(
        folder=settings.index_folder / "qmd",
        workspace=settings.workspace,
        extra_paths=settings.extra_paths,
        notes_folder=settings.files.folder,
        patterns=settings.files.patterns,
        command=qmd.command,
        search_mode=qmd.search_mode,
        embed_model=qmd.embed_model,
        models_folder=MODELS.expanduser(),
        sessions=(settings.agent_folder / "sessions", *settings.sessions.paths)
        if settings.sessions.enabled
        else (),
        max_results=settings.search.max_results,
        max_snippet_chars=settings.search.snippet_chars,
        timeout_s=qmd.limits.timeout_ms / 1000,
        command_timeout_s=update.command_timeout,
        citations=settings.memory.citations,
        schedule=UpdateSchedule(
            interval_s=update.interval,
            debounce_s=update.debounce,
            # Half the time limit of a search for indexing recent changes, the other half for the search.
            wait_s=qmd.limits.timeout_ms / 2000,
            update_timeout_s=update.update_timeout,
        ),
    )
