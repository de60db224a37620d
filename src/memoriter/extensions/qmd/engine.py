"""The qmd engine answers through the external program `qmd`, from the same files.

It combines the program (`command`), what it indexes (`collections`, `sessions`), when it updates (`updater`) and how
its results become hits (`hits`). It raises `EngineError` when qmd fails, and `fallback` then uses another engine.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from memoriter.engines import Engine
from memoriter.errors import EngineError, MemoriterError, NotFound, PathRefused, SourceError
from memoriter.extensions.qmd.collections import Collection, collections_of, write_configuration
from memoriter.extensions.qmd.command import (
    MAX_QUERY_CHARS,
    Qmd,
    QmdMode,
    Row,
    UpdateCounts,
    any_of,
    as_argument,
    both_legs,
    locate,
)
from memoriter.extensions.qmd.hits import Page, hits_of
from memoriter.extensions.qmd.sessions import Exports
from memoriter.extensions.qmd.updater import Updater, UpdateSchedule
from memoriter.files.scan import Scan
from memoriter.notes.workspace import Workspace
from memoriter.records import (
    Answer,
    CitationMode,
    Excerpt,
    FoundFile,
    Hit,
    Problem,
    Query,
    Source,
    Status,
    SyncReport,
)
from memoriter.search.shape import shows_citations
from memoriter.sessions.scope import ScopeCheck
from memoriter.text import query_terms, split_lines

#: Results requested beyond the limit, since some may be files that are not in the workspace.
SPARE_RESULTS = 10
#: The same for queries with a path prefix, which drop more results.
FILTERED_RESULTS = 100
#: The second attempt, for any of the words, uses at most this many of them.
MAX_WORDS = 12
#: The share of the time limit that is left for the search itself when it waits for an update.
SEARCH_SHARE = 0.5
#: qmd ignores folders with these names.
IGNORED_FOLDERS = frozenset({"node_modules", "vendor", "dist", "build"})
#: A file that changed this recently may change again without a new timestamp.
UNSETTLED_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class QmdSettings:
    """Everything that distinguishes two qmd engines. The cache key is computed from it."""

    #: Holds the configuration, the cache and the exported sessions of this agent's qmd.
    folder: Path
    workspace: Path
    #: Each with its name, its own pattern and its trust, if it has them.
    extra_paths: tuple[tuple[object, ...], ...] = ()
    #: The folder of the workspace with the notes.
    notes_folder: str = "memory"
    patterns: tuple[str, ...] = ("**/*.md",)
    command: str = "qmd"
    node: str = "node"
    search_mode: QmdMode = "search"
    embed_model: str | None = None
    models_folder: Path | None = None
    sessions: tuple[Path, ...] = ()
    max_results: int = 6
    max_snippet_chars: int = 700
    timeout_s: float = 4.0
    command_timeout_s: float = 30.0
    citations: CitationMode = "auto"
    schedule: UpdateSchedule = field(default_factory=UpdateSchedule)


class QmdEngine(Engine):
    """Answers for one agent through its own instance of qmd."""

    def __init__(
        self,
        settings: QmdSettings,
        workspace: Workspace,
        *,
        exports: Exports | None = None,
        scope: ScopeCheck | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Find the program, check that it starts, and write its configuration. Raises `EngineError`."""
        self.settings = settings
        self.workspace = workspace
        self.exports = exports
        self.scope = scope or ScopeCheck()
        self._marked = False
        try:
            folders = (settings.folder, settings.folder / "config", settings.folder / "cache" / "qmd")
            for folder in (*folders, *((exports.folder,) if exports else ())):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.qmd = Qmd(locate(settings.command, settings.node), settings.folder)
            self.version = self.qmd.version()
            self.collections = self._configure()
        except OSError as error:
            raise EngineError(
                f"Cannot use the folder of qmd, {settings.folder}: {error.strerror}."
            ) from error
        embed = self.qmd.embed if self._uses_vectors and not self._model_missing() else None
        self.updater = Updater(settings.folder, self._update, embed, settings.schedule, clock=clock)

    # ---- search -----------------------------------------------------------------------------------------------

    def search(self, query: Query) -> Answer:
        """Return the hits that qmd finds. Raises `EngineError` when qmd fails."""
        cited = shows_citations(self.settings.citations, query.session)
        if not self.scope.allows(query.session):
            return self._answer((), cited)
        text = query.text[:MAX_QUERY_CHARS]
        deadline = time.monotonic() + self.settings.timeout_s
        files = self._files()
        missing = self._catch_up(files)
        limit = self.settings.max_results if query.max_results is None else max(0, query.max_results)
        requested = limit + (SPARE_RESULTS if query.path_prefix is None else FILTERED_RESULTS)
        rows = self._find(text, query.source, requested, deadline) if limit else []
        hits = hits_of(
            self._pages(rows, files),
            terms=query_terms(text),
            mode=self._mode,
            snippet_chars=self.settings.max_snippet_chars,
        )
        best = [hit for hit in hits if self._passes(hit, query)][:limit]
        return self._answer(best if cited else [replace(hit, citation=None) for hit in best], cited, missing)

    def _find(self, text: str, source: Source | None, limit: int, deadline: float) -> list[Row]:
        names = [item.name for item in self.collections if source is None or item.source == source]
        text = as_argument(text)
        if not names or not text:
            return []

        def ask(mode: QmdMode, argument: str) -> list[Row]:
            left = max(0.1, deadline - time.monotonic())
            return self.qmd.find(mode, argument, names, limit=limit, timeout_s=left)

        if self._mode == "query":
            return ask("query", both_legs(text))
        rows = ask(self._mode, text)
        words = _words(text)
        if rows or self._mode != "search" or len(words) < 2:
            return rows
        # qmd's search finds nothing if one word is absent, and questions have many words.
        return ask("query", any_of(words))

    def _pages(self, rows: Sequence[Row], files: Sequence[FoundFile]) -> Iterator[tuple[Row, Page]]:
        """Yield the results whose files are in the workspace, each with the file as it is now."""
        by_path = {str(file.absolute): file for file in files}
        by_name = {item.name: item for item in self.collections}
        sessions = self.exports.by_name() if self.exports else {}
        for row in rows:
            collection = by_name.get(row.collection)
            if collection is None:
                continue
            try:
                if collection.source == "sessions" and row.path in sessions and self.exports:
                    yield row, Page(sessions[row.path].path, "sessions", self.exports.lines(row.path))
                elif found := by_path.get(os.path.normpath(collection.root / row.path)):
                    note = self.workspace.read(found)
                    yield row, Page(found.path, "memory", split_lines(note.text), note.trust)
            except SourceError:
                continue  # the file was deleted or became a link; the next update removes it from qmd

    def _passes(self, hit: Hit, query: Query) -> bool:
        if query.path_prefix is not None and not hit.path.startswith(query.path_prefix):
            return False
        # Only `vsearch` scores are similarities. A keyword hit may score 0, and `query` scores are ranks.
        return self._mode != "vsearch" or query.min_score is None or hit.score >= query.min_score

    def _answer(self, hits: Sequence[Hit], cited: bool, missing: str | None = None) -> Answer:
        sentences = [sentence for sentence in (self._without_vectors(), missing) if sentence]
        return Answer(
            hits=tuple(hits),
            provider="qmd",
            model=self._model,
            citations=cited,
            degraded=" ".join(sentences) or None,
        )

    # ---- updates ----------------------------------------------------------------------------------------------

    def mark_changed(self) -> None:
        """Make the next search index recent changes first."""
        self._marked = True

    def _catch_up(self, files: Sequence[FoundFile]) -> str | None:
        marked, self._marked = self._marked, False
        wait_s = min(self.settings.schedule.wait_s, self.settings.timeout_s * (1 - SEARCH_SHARE))
        missing = self.updater.catch_up(self._signature(files), wait_s=wait_s, marked=marked)
        if missing is None:  # another process may have made the update
            self.collections = self._current_collections()
        return missing

    def _files(self) -> tuple[FoundFile, ...]:
        return self.workspace.scan().files

    def _signature(self, files: Sequence[FoundFile]) -> str:
        """Return a digest that changes when qmd has to update."""
        digest = hashlib.sha256(repr((self.settings.embed_model, self._current_collections())).encode())
        indexed = (*files, *(self.exports.files() if self.exports else ()))
        for file in indexed:
            digest.update(f"{file.absolute}\0{file.mtime_ns}\0{file.size}\n".encode("utf-8", "surrogatepass"))
        newest = max((file.mtime_ns for file in indexed), default=0)
        unsettled = time.time_ns() - newest < UNSETTLED_NS
        return digest.hexdigest() + ("?" if unsettled else "")

    def _update(self, timeout_s: float) -> UpdateCounts:
        if self.exports:
            self.exports.write()
        if not self.workspace.root.is_dir():
            # qmd would treat a missing folder as an empty one and delete everything.
            raise EngineError(f"The workspace {self.workspace.root} does not exist.")
        self.collections = self._configure()
        return self.qmd.update(timeout_s) if self.collections else UpdateCounts()

    def _current_collections(self) -> tuple[Collection, ...]:
        return collections_of(self.workspace, self.exports.folder if self.exports else None)

    def _configure(self) -> tuple[Collection, ...]:
        """Write qmd's configuration. qmd may change it, so it is checked before each update."""
        collections = self._current_collections()
        write_configuration(self.qmd.config / "index.yml", collections, self.settings.embed_model)
        self._link_models()
        return collections

    def _link_models(self) -> None:
        """Share the models of the owner's qmd, so that each agent does not need a copy."""
        models, link = self.settings.models_folder, self.qmd.index.with_name("models")
        if models is not None and models.is_dir() and not link.exists():
            link.symlink_to(models, target_is_directory=True)

    def sync(self, *, force: bool = False, **_: Any) -> SyncReport:
        """Make qmd index what changed. ``force`` deletes its index first. The report describes failures.

        qmd compares every file each time, embeds separately, and does not report progress.
        """
        started = time.perf_counter()
        scan = self.workspace.scan()
        if force:
            self.updater.forget()
            for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"):
                self.qmd.index.with_name(name).unlink(missing_ok=True)
        update = self.updater.run(self._signature(scan.files))
        counts = update.counts
        return SyncReport(
            files=counts.new + counts.updated + counts.unchanged,
            changed=counts.new + counts.updated,
            unchanged=counts.unchanged,
            removed=counts.removed,
            rebuilt=force,
            seconds=time.perf_counter() - started,
            problems=(
                *scan.problems,
                *(Problem(path, "qmd ignores this folder.") for path in _ignored_files(scan)),
            ),
            degraded=f"qmd could not index recent changes: {update.error}" if update.error else None,
        )

    def start(self) -> None:
        """Keep the index of qmd up to date in the background until the engine is closed."""
        self.updater.start(lambda: self._signature(self._files()))

    # ---- vectors ----------------------------------------------------------------------------------------------

    @property
    def _uses_vectors(self) -> bool:
        return self.settings.search_mode != "search"

    @property
    def _mode(self) -> QmdMode:
        """The configured mode, or keyword search if there is no model, since qmd would try to download one."""
        return "search" if self._model_missing() else self.settings.search_mode

    @property
    def _model(self) -> str:
        if self._mode == "search":
            return "bm25"
        return self.settings.embed_model or "qmd's default"

    def _model_missing(self) -> bool:
        if not self._uses_vectors:
            return False
        model = self.settings.embed_model
        if model and not model.startswith("hf:"):
            return not Path(model).is_file()
        models = self.qmd.index.with_name("models")
        return not any(models.glob("*.gguf")) if models.is_dir() else True

    def _without_vectors(self) -> str | None:
        if not self._model_missing():
            return None
        return (
            f"qmd has no embedding model for `{self.settings.search_mode}` and searches by keyword. "
            "Run `qmd pull`, or set memory.qmd.embed_model to a .gguf file."
        )

    # ---- files and status -------------------------------------------------------------------------------------

    def read_file(self, rel_path: str, from_line: int = 1, lines: int | None = None) -> Excerpt:
        """Read some lines of one file, without qmd."""
        try:
            return self.workspace.excerpt(rel_path, from_line, lines)
        except (NotFound, PathRefused):
            if self.exports is None or not any(file.path == rel_path for file in self.exports.files()):
                raise
            return self.exports.transcripts.excerpt(rel_path, from_line, lines)

    def status(self, *, deep: bool = False) -> Status:
        """Describe what is known of the index without starting qmd. ``deep`` also tries a search."""
        index = self.qmd.index
        files = self._files()
        details: dict[str, object] = {
            "qmd": self.version,
            "search_mode": self.settings.search_mode,
            "collections": ", ".join(item.name for item in self.collections),
            "embedder": f"qmd's own ({self._model})",
            "source_bytes": sum(file.size for file in files),
        }
        if self.updater.error:
            details["upkeep"] = self.updater.error
        if deep:
            details |= {
                "embedding": self.probe_embedding() or "ok",
                "store": self.probe_vector() or "ok",
                "behind": 0 if self.updater.indexed == self._signature(files) else len(files),
            }
        return Status(
            backend="qmd",
            workspace=str(self.workspace.root),
            files=len(files),
            chunks=len(files),  # the keyword index of qmd holds whole files
            embedded=0,
            provider="qmd",
            model=self._model,
            vector_engine="qmd",
            index_path=str(index),
            index_bytes=index.stat().st_size if index.exists() else 0,
            last_sync=self.updater.indexed_at,
            degraded=self._without_vectors(),
            details=details,
        )

    def probe_embedding(self) -> str | None:
        """Return a message if the model that the search mode needs is missing."""
        return self._without_vectors()

    def probe_vector(self) -> str | None:
        """Run one search in the configured mode, after the first update. Return an error message if it fails."""
        if missing := self._without_vectors():
            return missing
        deadline = time.monotonic() + self.settings.command_timeout_s
        try:
            if self.updater.indexed is None:
                self.updater.catch_up(self._signature(self._files()), wait_s=self.settings.command_timeout_s)
            self._find("memoriter", None, 1, deadline)
        except MemoriterError as error:
            return str(error)
        return None

    def close(self) -> None:
        """Stop the updates. A search in another thread runs to its end."""
        self.updater.close()


def _ignored_files(scan: Scan) -> Iterator[str]:
    return (file.path for file in scan.files if not IGNORED_FOLDERS.isdisjoint(file.path.split("/")[:-1]))


def _words(text: str) -> list[str]:
    """Return the words of a question, any of which may answer it. A single name is not split."""
    if len(text.split()) < 2 and text.isascii():
        return [text]
    return [term for term in query_terms(text, as_written=True) if not term.startswith("@")][:MAX_WORDS]
