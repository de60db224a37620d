"""The qmd engine: an outside engine answers, from the same files.

It joins the program (`command`), what it indexes (`collections`, `sessions`), when it does so (`upkeep`) and how its
results are shown (`hits`). It raises `EngineError` when qmd fails: who answers then is `fallback`'s duty.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memoriter.engines.qmd.collections import Collection, collections_of, index_yml
from memoriter.engines.qmd.command import (
    MAX_QUERY_CHARS,
    Counts,
    Mode,
    Qmd,
    Row,
    any_of,
    as_argument,
    both_legs,
    locate,
)
from memoriter.engines.qmd.hits import Page, hits_of
from memoriter.engines.qmd.sessions import Exports
from memoriter.engines.qmd.upkeep import Schedule, Upkeep
from memoriter.errors import EngineError, MemoriterError, NotFound, PathRefused, SourceError
from memoriter.records import (
    Answer,
    CitationMode,
    Excerpt,
    FoundFile,
    Hit,
    Problem,
    ProgressCallback,
    Query,
    Source,
    Status,
    SyncReport,
)
from memoriter.search.citations import shows_citations
from memoriter.sessions.scope import ScopeCheck
from memoriter.text import query_terms, split_lines

if TYPE_CHECKING:
    from memoriter.files.scan import Scan
from memoriter.notes.workspace import Workspace

#: Results asked for beyond those wanted, since some may be files that the workspace does not show.
SPARE_RESULTS = 10
FILTERED_RESULTS = 100  #: and so many when only some paths are wanted
#: The second try, for any of the words, takes this many of them.
MAX_WORDS = 12
#: Waiting for an update leaves at least this share of the time limit to the search itself.
SEARCH_SHARE = 0.5
#: qmd never looks into folders of these names.
UNSEEN = frozenset({"node_modules", "vendor", "dist", "build"})
#: A file changed this recently may change again within its timestamp's grain, so its stat is not yet believed.
UNSETTLED_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class QmdSettings:
    """Everything that makes one qmd engine another than the next; the key of the cache is made from it."""

    folder: Path  #: of this agent's qmd: configuration, cache, exported sessions
    workspace: Path
    extra_paths: tuple[Path, ...] = ()
    patterns: tuple[str, ...] = ("**/*.md",)
    command: str = "qmd"
    node: str = "node"
    search_mode: Mode = "search"
    embed_model: str | None = None
    models_folder: Path | None = None
    sessions: tuple[Path, ...] = ()
    max_results: int = 6
    max_snippet_chars: int = 700
    timeout_s: float = 4.0
    command_timeout_s: float = 30.0
    citations: CitationMode = "auto"
    schedule: Schedule = field(default_factory=Schedule)


class QmdEngine:
    """Answers for one agent through its own qmd."""

    def __init__(
        self,
        settings: QmdSettings,
        workspace: Workspace,
        qmd: Qmd,
        *,
        version: str,
        exports: Exports | None = None,
        guard: ScopeCheck | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.workspace = workspace
        self.qmd = qmd
        self.version = version
        self.exports = exports
        self.guard = guard or ScopeCheck()
        self.collections = self._configure()
        embed = self.qmd.embed if self._uses_vectors and not self._model_missing() else None
        self.upkeep = Upkeep(settings.folder, self._update, embed, settings.schedule, clock=clock)
        self._announced = False

    @classmethod
    def create(
        cls,
        settings: QmdSettings,
        workspace: Workspace,
        *,
        exports: Exports | None = None,
        guard: ScopeCheck | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> QmdEngine:
        """Find the program, see that it starts, and write its configuration; raises `EngineError`."""
        try:
            folders = (settings.folder, settings.folder / "config", settings.folder / "cache" / "qmd")
            for folder in (*folders, *((exports.folder,) if exports else ())):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            qmd = Qmd(locate(settings.command, settings.node), settings.folder)
            version = qmd.version()
            return cls(settings, workspace, qmd, version=version, exports=exports, guard=guard, clock=clock)
        except OSError as error:
            raise EngineError(f"qmd's folder {settings.folder} cannot be used: {error.strerror}.") from error

    # ---- search -----------------------------------------------------------------------------------------------

    def search(self, query: Query) -> Answer:
        """The hits that qmd finds; raises `EngineError` when it fails."""
        cited = shows_citations(self.settings.citations, query.session_key)
        if not self.guard.admits(query.session_key):
            return self._answer((), cited)
        text = query.text[:MAX_QUERY_CHARS]
        deadline = time.monotonic() + self.settings.timeout_s
        files = self._files()
        behind = self._catch_up(files)
        limit = self.settings.max_results if query.max_results is None else max(0, query.max_results)
        many = limit + (SPARE_RESULTS if query.path_prefix is None else FILTERED_RESULTS)
        rows = self._find(text, query.source, many, deadline) if limit else []
        hits = hits_of(
            self._pages(rows, files),
            terms=query_terms(text),
            mode=self._mode,
            snippet_chars=self.settings.max_snippet_chars,
        )
        kept = [hit for hit in hits if self._wanted(hit, query)][:limit]
        return self._answer(kept if cited else [replace(hit, citation=None) for hit in kept], cited, behind)

    def _find(self, text: str, source: Source | None, limit: int, deadline: float) -> list[Row]:
        names = [one.name for one in self.collections if source is None or one.source == source]
        text = as_argument(text)
        if not names or not text:
            return []

        def ask(mode: Mode, asked: str) -> list[Row]:
            left = max(0.1, deadline - time.monotonic())
            return self.qmd.find(mode, asked, names, limit=limit, timeout_s=left)

        if self._mode == "query":
            return ask("query", both_legs(text))
        rows = ask(self._mode, text)
        words = _words(text)
        if rows or self._mode != "search" or len(words) < 2:
            return rows
        # One absent word is enough for qmd's search to find nothing, and questions have many words.
        return ask("query", any_of(words))

    def _pages(self, rows: Sequence[Row], files: Sequence[FoundFile]) -> Iterator[tuple[Row, Page]]:
        """The results whose files the workspace shows, each with the file as it is now."""
        places = {str(file.absolute): file for file in files}
        roots = {one.name: one for one in self.collections}
        sessions = self.exports.by_name() if self.exports else {}
        for row in rows:
            collection = roots.get(row.collection)
            if collection is None:
                continue
            try:
                if collection.source == "sessions" and row.path in sessions and self.exports:
                    yield row, Page(sessions[row.path].path, "sessions", self.exports.lines(row.path))
                elif found := places.get(os.path.normpath(collection.root / row.path)):
                    yield row, Page(found.path, "memory", split_lines(self.workspace.read(found).text))
            except SourceError:
                continue  # it vanished or became a link meanwhile: the next update tells qmd

    def _wanted(self, hit: Hit, query: Query) -> bool:
        if query.path_prefix is not None and not hit.path.startswith(query.path_prefix):
            return False
        # Only `vsearch` scores are nearness. A keyword hit may rightly score 0, and `query` scores are places.
        return self._mode != "vsearch" or query.min_score is None or hit.score >= query.min_score

    def _answer(self, hits: Sequence[Hit], cited: bool, behind: str | None = None) -> Answer:
        missing = " ".join(part for part in (self._without_vectors(), behind) if part)
        return Answer(
            hits=tuple(hits),
            provider="qmd",
            model=self._model,
            citations=cited,
            degraded=missing or None,
        )

    # ---- freshness --------------------------------------------------------------------------------------------

    def mark_changed(self) -> None:
        """Something was just written: the next search takes it in first."""
        self._announced = True

    def _catch_up(self, files: Sequence[FoundFile]) -> str | None:
        announced, self._announced = self._announced, False
        wait_s = min(self.settings.schedule.wait_s, self.settings.timeout_s * (1 - SEARCH_SHARE))
        return self.upkeep.catch_up(self._signature(files), wait_s=wait_s, announced=announced)

    def _files(self) -> tuple[FoundFile, ...]:
        return self.workspace.scan().files

    def _signature(self, files: Sequence[FoundFile]) -> str:
        """What decides whether qmd must look at the files again."""
        digest = hashlib.sha256(repr((self.settings.embed_model, self._wanted_collections())).encode())
        seen = (*files, *(self.exports.files() if self.exports else ()))
        for file in seen:
            digest.update(f"{file.absolute}\0{file.mtime_ns}\0{file.size}\n".encode("utf-8", "surrogatepass"))
        newest = max((file.mtime_ns for file in seen), default=0)
        unsettled = time.time_ns() - newest < UNSETTLED_NS
        return digest.hexdigest() + ("?" if unsettled else "")

    def _update(self, timeout_s: float) -> Counts:
        if self.exports:
            self.exports.write()
        if not self.workspace.root.is_dir():
            # qmd would take the missing folder for an empty one and drop everything.
            raise EngineError(f"the workspace {self.workspace.root} is not there.")
        self.collections = self._configure()
        return self.qmd.update(timeout_s) if self.collections else Counts()

    def _wanted_collections(self) -> tuple[Collection, ...]:
        return collections_of(self.workspace, self.exports.folder if self.exports else None)

    def _configure(self) -> tuple[Collection, ...]:
        """Write qmd's configuration; qmd itself adds to it, so it is written before each update."""
        wanted = self._wanted_collections()
        fresh = self.qmd.config / "index.yml.new"
        fresh.write_text(index_yml(wanted, self.settings.embed_model), "utf-8")
        fresh.replace(self.qmd.config / "index.yml")
        self._link_models()
        return wanted

    def _link_models(self) -> None:
        """Let this agent's qmd use the models that its owner's qmd has already, instead of a copy each."""
        models, mine = self.settings.models_folder, self.qmd.index.with_name("models")
        if models is not None and models.is_dir() and not mine.exists():
            mine.symlink_to(models, target_is_directory=True)

    def sync(
        self,
        *,
        force: bool = False,
        verify: bool = False,
        batch: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SyncReport:
        """Make qmd index what changed. ``force`` deletes its index first. The report describes failures."""
        del (
            verify,
            batch,
            progress,
        )  # qmd compares every file each time, embeds by itself, and reports no progress
        started = time.perf_counter()
        scan = self.workspace.scan()
        if force:
            self.upkeep.forget()
            for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"):
                self.qmd.index.with_name(name).unlink(missing_ok=True)
        job = self.upkeep.run(self._signature(scan.files))
        counts = job.counts
        return SyncReport(
            files=counts.new + counts.updated + counts.unchanged,
            changed=counts.new + counts.updated,
            unchanged=counts.unchanged,
            removed=counts.removed,
            rebuilt=force,
            seconds=time.perf_counter() - started,
            problems=(
                *scan.problems,
                *(Problem(path, "qmd does not look into this folder.") for path in _unseen(scan)),
            ),
            degraded=f"qmd could not take in what changed on disk: {job.error}" if job.error else None,
        )

    def start(self) -> None:
        """Keep qmd fresh from now on, also when nobody searches."""
        self.upkeep.start(lambda: self._signature(self._files()))

    # ---- vectors ----------------------------------------------------------------------------------------------

    @property
    def _uses_vectors(self) -> bool:
        return self.settings.search_mode != "search"

    @property
    def _mode(self) -> Mode:
        """How qmd is asked: as set, but by keyword while there is no model, since qmd would try to fetch one."""
        return "search" if self._model_missing() else self.settings.search_mode

    @property
    def _model(self) -> str:
        if self._mode == "search":
            return "bm25"
        return self.settings.embed_model or "qmd's default"

    def _model_missing(self) -> bool:
        if not self._uses_vectors:
            return False
        named = self.settings.embed_model
        if named and not named.startswith("hf:"):
            return not Path(named).is_file()
        models = self.qmd.index.with_name("models")
        return not any(models.glob("*.gguf")) if models.is_dir() else True

    def _without_vectors(self) -> str | None:
        if not self._model_missing():
            return None
        return (
            f"qmd has no embedding model for `{self.settings.search_mode}` and searches by keyword; "
            "run `qmd pull`, or set memory.qmd.embed_model to a .gguf file."
        )

    # ---- the rest of the interface ----------------------------------------------------------------------------

    #: qmd embeds in its own process and keeps its own index.
    choice: None = None
    index: None = None
    knows_notes = False

    def count_stale(self) -> None:
        """Return None: qmd knows only whether something changed, not how many files did."""

    def purge(self) -> None:
        """Do nothing: qmd has no such operation."""

    def read_file(self, rel_path: str, from_line: int = 1, lines: int | None = None) -> Excerpt:
        """Some lines of one file, read by ourselves: qmd is not asked."""
        try:
            return self.workspace.excerpt(rel_path, from_line, lines)
        except (NotFound, PathRefused):
            if self.exports is None or not any(file.path == rel_path for file in self.exports.files()):
                raise
            return self.exports.transcripts.excerpt(rel_path, from_line, lines)

    def status(self, *, deep: bool = False) -> Status:
        """What qmd holds, as far as we know without asking it; ``deep`` also tries a search."""
        index = self.qmd.index
        files = self._files()
        details: dict[str, object] = {
            "qmd": self.version,
            "search_mode": self.settings.search_mode,
            "collections": ", ".join(one.name for one in self.collections),
            "embedder": f"qmd's own ({self._model})",
            "source_bytes": sum(file.size for file in files),
        }
        if self.upkeep.error:
            details["upkeep"] = self.upkeep.error
        if deep:
            details |= {
                "embedding": self.probe_embedding() or "ok",
                "store": self.probe_vector() or "ok",
                "behind": 0 if self.upkeep.taken == self._signature(files) else len(files),
            }
        return Status(
            backend="qmd",
            workspace=str(self.workspace.root),
            files=len(files),
            chunks=len(files),  # qmd's keyword index knows whole files only
            embedded=0,
            provider="qmd",
            model=self._model,
            vector_engine="qmd",
            index_path=str(index),
            index_bytes=index.stat().st_size if index.exists() else 0,
            last_sync=self.upkeep.taken_at,
            degraded=self._without_vectors(),
            details=details,
        )

    def probe_embedding(self) -> str | None:
        """Whether there is what the search mode needs to embed a query."""
        return self._without_vectors()

    def probe_vector(self) -> str | None:
        """Try one search in the configured mode."""
        if missing := self._without_vectors():
            return missing
        try:
            self._find("memoriter", None, 1, time.monotonic() + self.settings.command_timeout_s)
        except MemoriterError as error:
            return str(error)
        return None

    def close(self) -> None:
        """Stop the upkeep; a search in another thread ends by itself."""
        self.upkeep.close()


def _unseen(scan: Scan) -> Iterator[str]:
    return (file.path for file in scan.files if not UNSEEN.isdisjoint(file.path.split("/")[:-1]))


def _words(text: str) -> list[str]:
    """The words of a question, any of which may answer it; a single name is not taken apart."""
    if len(text.split()) < 2 and text.isascii():
        return [text]
    return [term for term in query_terms(text, as_written=True) if not term.startswith("@")][:MAX_WORDS]
