"""How answers look: tables and text for people, JSON for machines.

Text from notes is shown as it is, never as markup or terminal control codes. rich is imported only to draw.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from memoriter.cli.setup import Made
    from memoriter.config import Settings
    from memoriter.records import Answer, Excerpt, Hit, Progress, Status, SyncReport
    from memoriter.tools.doctor import Finding


def to_json(value: object) -> None:
    """Print one JSON value."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


#: Control characters, but for line break and tab: a note could move the cursor, rename the window, or worse.
_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def plain(text: str) -> str:
    """Text that cannot command a terminal."""
    return text.translate(_CONTROLS)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _camel_keys(value: Mapping[str, object]) -> dict[str, object]:
    return {_camel(key): item for key, item in value.items()}


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def _table(rows: Sequence[Sequence[str]], *titles: str) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(*titles, box=box.SIMPLE_HEAD if titles else None, show_header=bool(titles), pad_edge=False)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


# ---- search -----------------------------------------------------------------------------------------------------


def answer(found: Answer, *, as_json: bool, explain: bool) -> None:
    """The hits of a search."""
    if as_json:
        to_json(
            {
                "results": [hit_json(hit, explain) for hit in found.hits],
                "provider": found.provider,
                "model": found.model,
                "fallback": found.fallback,
                "citations": found.citations,
                "degraded": found.degraded,
            }
        )
        return
    console = _console()
    if not found.hits:
        console.print("Nothing found.")
    for number, hit in enumerate(found.hits, 1):
        _print_hit(console, number, hit, explain)
    if found.degraded:
        console.print(f"Note: {found.degraded}", style="yellow")


def hit_json(hit: Hit, explain: bool = False) -> dict[str, object]:
    """One hit in the form that agents know."""
    shown: dict[str, object] = {
        "path": hit.path,
        "startLine": hit.start_line,
        "endLine": hit.end_line,
        "score": round(hit.score, 6),
        "snippet": hit.snippet,
        "source": hit.source,
        "trust": hit.trust,
        "citation": hit.citation,
    }
    if explain:
        shown["explain"] = asdict(hit.explain)
    return shown


def _print_hit(console: Console, number: int, hit: Hit, explain: bool) -> None:
    from rich.text import Text

    place = plain(hit.citation or hit.path)
    console.print(Text.assemble(f"{number}. ", (place, "bold cyan"), f"  {hit.score:.3f}"))
    console.print(Text(indent(plain(hit.snippet).strip("\n"), "   ")))
    if explain:
        for part in hit.explain.parts:
            sum_ = f"{part.contribution:+.3f} = {part.weight:.2f} × {part.value:.3f}"
            console.print(Text(f"   {part.name:<8} {sum_}  {part.detail}", "dim"))
    console.print()


# ---- index ------------------------------------------------------------------------------------------------------


@contextmanager
def progress(as_json: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A progress bar on stderr, when somebody is there to see it."""
    if as_json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    words = {"embed": "Embedding", "batch": "Waiting for the batch job", "write": "Indexing"}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Looking", total=None, rate="")

        def show(step: Progress) -> None:
            speed = bar.tasks[0].speed
            rate = f"{speed:.0f} files/s" if speed else ""
            name = words.get(step.stage, step.stage)
            bar.update(task, description=name, completed=step.done, total=step.total, rate=rate)

        yield show


def sync_report(report: SyncReport, as_json: bool) -> None:
    """What a sync did."""
    if as_json:
        to_json(asdict(report))
        return
    console = _console()
    did = f"{report.changed} indexed, {report.unchanged} unchanged, {report.removed} removed"
    vectors = f"{report.embedded} embedded, {report.cached} from the cache"
    console.print(f"{report.files} files, {report.chunks} chunks: {did}; {vectors}; {report.seconds:.1f} s.")
    if report.healed:
        console.print(f"Healed: {report.healed}", style="yellow")
    for problem in report.problems:
        console.print(plain(f"  {problem.path}: {problem.reason}"), style="yellow")
    if report.degraded:
        console.print(f"Note: {report.degraded}", style="yellow")


# ---- the rest ---------------------------------------------------------------------------------------------------


def excerpt(lines: Excerpt, as_json: bool) -> None:
    """Lines of a file, just as they are."""
    if as_json:
        to_json(_camel_keys(asdict(lines)))
        return
    text = plain(lines.text) if sys.stdout.isatty() else lines.text
    sys.stdout.write(text + "\n" if text else "")
    if lines.end_line < lines.total_lines or lines.start_line > 1:
        shown = f"lines {lines.start_line}–{lines.end_line}" if lines.text else "nothing"
        sys.stderr.write(f"({shown} of {lines.total_lines})\n")


def status(now: Status, as_json: bool) -> None:
    """What a manager says about itself."""
    if as_json:
        to_json(_camel_keys(asdict(now)))
        return
    synced = datetime.fromtimestamp(now.last_sync).astimezone() if now.last_sync else None
    rows = [
        ("workspace", now.workspace),
        ("backend", now.backend),
        ("files", f"{now.files}, in {now.chunks} chunks"),
        ("vectors", f"{now.embedded} of {now.chunks} chunks, engine {now.vector_engine}"),
        ("embedder", f"{now.provider} {now.model}".strip()),
        ("index", f"{now.index_path} ({now.index_bytes / 1e6:.1f} MB)"),
        ("last sync", f"{synced:%Y-%m-%d %H:%M:%S}" if synced else "never: run `memoriter index`"),
        *(
            (key.replace("_", " "), _shown(value))
            for key, value in now.details.items()
            if key != "source_bytes"
        ),
    ]
    if now.degraded:
        rows.append(("note", now.degraded))
    _console().print(_table(rows))


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {item}" for key, item in value.items())
    return str(value)


def stats(
    now: Status, as_json: bool, entries: Mapping[str, object] | None = None, note: str | None = None
) -> None:
    """Counts, under the names that the tools use; those of entries beside them, or a note why there are none."""
    counts = {"file_count": now.files, "chunk_count": now.chunks, "total_size": now.details["source_bytes"]}
    if as_json:
        to_json({**counts, **({"entries": entries} if entries else {}), **({"note": note} if note else {})})
        return
    rows = [(key, f"{value}") for key, value in counts.items()]
    rows += [
        (f"entries {key}".replace("_", " "), _counted(key, value)) for key, value in (entries or {}).items()
    ]
    if note:
        rows.append(("note", note))
    _console().print(_table(rows))


def _counted(key: str, value: object) -> str:
    """A figure about entries as a person reads it; a dash where there is nothing to count."""
    if isinstance(value, float) and key in ("oldest", "newest"):
        return f"{datetime.fromtimestamp(value).astimezone():%Y-%m-%d %H:%M}"
    return "–" if value is None or value == {} else _shown(value)


def findings(found: Sequence[Finding], as_json: bool) -> None:
    """What the doctor saw."""
    if as_json:
        to_json([asdict(finding) for finding in found])
        return
    signs = {"ok": "ok", "note": "note", "wrong": "WRONG"}
    rows = [(signs[f.state], f.name, f.text + (f"\n→ {f.mend}" if f.mend else "")) for f in found]
    _console().print(_table(rows))


def settings(loaded: Settings, as_json: bool) -> None:
    """Every setting with its origin."""
    rows = loaded.describe()
    if as_json:
        to_json({key: {"value": value, "origin": origin} for key, value, origin in rows})
        return
    _console().print(
        _table([(key, str(value), str(origin)) for key, value, origin in rows], "key", "value", "from")
    )


def setup(done: Made, as_json: bool) -> None:
    """What `init` made."""
    if as_json:
        to_json(asdict(done))
        return
    console = _console()
    for path in done.made:
        console.print(f"made  {_home_short(path)}")
    for path in done.kept:
        console.print(f"kept  {_home_short(path)}")
    console.print("Next: write a note under memory/, then `memoriter index` and `memoriter search …`.")


def _home_short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
