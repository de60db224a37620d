"""Output of commands: tables and text for people, JSON for programs.

Text from notes is printed literally, never as markup or terminal control codes. rich is imported on first use.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from memoriter.invisible import escape_json, reveal

if TYPE_CHECKING:
    from rich.console import Console

    from memoriter.config import Setting
    from memoriter.records import Answer, EntryHit, Excerpt, Finding, Hit, Progress, Saved, Status, SyncReport


def to_json(result: object, *, indent: int | None = 2) -> None:
    """Print a result as JSON."""
    text = json.dumps(plain_data(result), ensure_ascii=False, indent=indent, default=str)
    sys.stdout.write(escape_json(text) + "\n")
    sys.stdout.flush()


def show(as_json: bool, result: object, table: Callable[[], object] | str) -> None:
    """Print a result as JSON; otherwise a table or a text.

    ``result`` is a record, a dictionary, or a function that gets the package `tools`, which is loaded only for it.
    """
    if as_json:
        if callable(result):
            import memoriter.tools.table

            result = result(memoriter.tools)
        to_json(result)
    elif isinstance(table, str):
        sys.stdout.write(f"{plain(table).rstrip()}\n")
    else:
        table()


def saved(note: Saved | None, as_json: bool) -> None:
    """Print where a note was written. None: there was nothing to write."""
    verb = "Already saved" if note and note.already else "Saved"
    nothing = "The session has no messages. Nothing was written."
    text = f"{verb}: {note.citation}\n{note.note or ''}" if note else nothing
    show(as_json, lambda tools: tools.notes.SavedJson.of(note), text)


def plain_data(value: Any) -> Any:
    """Return models and records as the dictionaries of JSON, with names in camelCase."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return {_camel(field.name): plain_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    return {key: plain_data(item) for key, item in value.items()} if isinstance(value, dict) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


#: Control characters except line break and tab. A note could move the cursor or rename the window with them.
_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def plain(text: str) -> str:
    """Remove control characters, which could control the terminal, and draw invisible ones."""
    return reveal(text.translate(_CONTROLS))


def console() -> Console:
    """Return a console that prints text literally, and draws invisible characters."""
    from rich.console import Console

    class Literal(Console):
        def print(self, *objects: object, **options: Any) -> None:
            super().print(*(plain(one) if isinstance(one, str) else one for one in objects), **options)

    # The resident process prints for a caller with another terminal and other variables.
    caller = getattr(sys.stdout, "caller", None)
    environ = {"COLUMNS": str(caller.columns or 80), **caller.printing} if caller else None
    return Literal(highlight=False, markup=False, emoji=False, soft_wrap=True, _environ=environ)


def size(count: int) -> str:
    """Return a number of bytes in the unit that people read.

    >>> [size(0), size(640), size(51_200), size(12_345_678)]
    ['0 kB', '1 kB', '52 kB', '12.3 MB']
    """
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{-(-count // 1000)} kB"


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "file"), count(2, "file")
    ('1 file', '2 files')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_table(rows: Sequence[Sequence[str]], *titles: str) -> None:
    """Print a table. It fits the terminal; in a pipe, every line is whole. Without titles it has no header."""
    cells = [[plain(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_fitted(cells, titles)
    else:
        for line in _aligned([list(titles), *cells] if titles else cells):
            sys.stdout.write(f"{line}\n")


def _print_fitted(rows: Sequence[Sequence[str]], titles: Sequence[str]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    result = Table(*titles, box=box.SIMPLE_HEAD if titles else None, show_header=bool(titles), pad_edge=False)
    for row in rows:
        result.add_row(*map(Text, row))
    for column in result.columns:
        column.overflow = "fold"  # Chinese has no spaces at which a cell could be wrapped
    console().print(result)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table. Chinese characters are two columns wide, and a cell may have several lines."""
    from rich.cells import cell_len

    widths = [
        max(cell_len(line) for cell in column for line in cell.split("\n"))
        for column in zip(*rows, strict=True)
    ]
    for row in rows:
        for parts in zip_longest(*(cell.split("\n") for cell in row), fillvalue=""):
            padded = (
                part + " " * (width - cell_len(part)) for part, width in zip(parts, widths, strict=True)
            )
            yield "  ".join(padded).rstrip()


def fit(text: str, used: int = 0) -> str:
    """Return text on one line that fits the terminal beside ``used`` columns. In a pipe it stays whole."""
    flat = " ".join(plain(text).split())
    if not sys.stdout.isatty():
        return flat
    from rich.text import Text

    shown = Text(flat)
    shown.truncate(max(console().width - used, 20), overflow="ellipsis")
    return shown.plain


# ---- search -----------------------------------------------------------------------------------------------------


def answer(found: Answer, *, explain: bool) -> None:
    """Print the results of a search."""
    out = console()
    if found.notice:
        out.print(plain(found.notice), markup=False)
    for number, hit in enumerate(found.hits, 1):
        _print_hit(out, number, hit, explain)
    if found.degraded:
        out.print(f"Note: {found.degraded}", style="yellow")


def stars(importance: float) -> str:
    """Return importance as stars.

    >>> stars(3.8)
    '★★★★☆'
    """
    full = round(importance)
    return "★" * full + "☆" * (5 - full)


def _describe_entry(found: EntryHit) -> str:
    entry = found.entry
    return f"  {entry.type}  similarity {found.similarity:.2f}  {stars(entry.importance)}"


def _print_hit(out: Console, number: int, hit: Hit, explain: bool) -> None:
    from rich.text import Text

    place = plain(hit.citation or hit.path)
    about = _describe_entry(hit.entry) if hit.entry else ""
    level = f"  {hit.level} confidence" if hit.level else ""
    out.print(Text.assemble(f"{number}. ", (place, "bold cyan"), f"  {hit.score:.3f}{level}{about}"))
    if hit.heading:
        out.print(Text(f"   {plain(hit.heading)}", "dim"))
    if hit.superseded_by:
        out.print(Text(f"   superseded by {plain(hit.superseded_by)}", "yellow"))
    if hit.newer:
        out.print(Text(f"   {hit.date or ''}  newer: {plain(hit.newer)}", "yellow"))
    if hit.planned:
        out.print(Text(f"   planned for {hit.planned}", "yellow"))
    out.print(Text(indent(plain(hit.snippet).strip("\n"), "   ")))
    if explain:
        for part in hit.explain.parts:
            product = f"{part.contribution:+.3f} = {part.weight:.2f} × {part.value:.3f}"
            out.print(Text(f"   {part.name:<8} {product}  {part.detail}", "dim"))
    out.print()


# ---- index ------------------------------------------------------------------------------------------------------


#: Seconds between two lines of progress where there is no terminal.
PROGRESS_S = 3.0
_STAGES = {
    "embed": "Embedding",
    "batch": "Waiting for the batch job",
    "write": "Indexing",
    "backup": "Backing up",
    "verify": "Verifying",
    "restore": "Restoring",
}
#: Stages that count chunks. The others count files.
_CHUNK_STAGES = ("embed", "batch")


@contextmanager
def progress(as_json: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show progress on stderr: a bar if it is a terminal, otherwise a line every few seconds."""
    if as_json:
        yield None
    elif sys.stderr.isatty():
        with _progress_bar() as show:
            yield show
    else:
        yield progress_lines()


def progress_lines() -> Callable[[Progress], None]:
    """Return a function that prints a line of progress on stderr every few seconds, with the time that is left."""
    shown_at, stage, began, first = time.monotonic(), "", 0.0, 0

    def show(step: Progress) -> None:
        nonlocal shown_at, stage, began, first
        now = time.monotonic()
        if step.stage != stage:
            stage, began, first = step.stage, now, step.done
        if now - shown_at >= PROGRESS_S:
            shown_at = now
            left_s = (step.total - step.done) * (now - began) / max(1, step.done - first)
            left = f", {about(left_s)} left" if step.done > first else ""
            unit = "chunk" if step.stage in _CHUNK_STAGES else "file"
            counted = f"{step.done} of {count(step.total, unit)}"
            sys.stderr.write(f"{_STAGES.get(step.stage, step.stage)}: {counted}{left}\n")
            sys.stderr.flush()

    return show


def about(seconds: float) -> str:
    """Return an estimated time in words.

    >>> about(4), about(70), about(840), about(9000)
    ('about 4 seconds', 'about 1 minute', 'about 14 minutes', 'about 2.5 hours')
    """
    if seconds < 60:
        return f"about {count(max(1, round(seconds)), 'second')}"
    return (
        f"about {count(round(seconds / 60), 'minute')}"
        if seconds < 5400
        else f"about {seconds / 3600:.1f} hours"
    )


@contextmanager
def _progress_bar() -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Scanning", total=None, unit="")
        stage = ""

        def show(step: Progress) -> None:
            nonlocal stage
            if step.stage != stage:
                stage = step.stage
                bar.reset(task)
            unit = "chunks" if stage in _CHUNK_STAGES else "files"
            name = _STAGES.get(stage, stage)
            bar.update(task, description=name, completed=step.done, total=step.total, unit=unit)

        yield show


def sync_report(report: SyncReport) -> None:
    """Print the report of a sync."""
    out = console()
    files = f"{report.changed} indexed, {report.unchanged} unchanged, {report.removed} removed"
    vectors = f"{report.embedded} embedded, {report.cached} from the cache"
    sizes = f"{count(report.files, 'file')}, {count(report.chunks, 'chunk')}"
    out.print(f"{sizes}: {files}; {vectors}; {report.seconds:.1f} s.")
    if report.healed:
        out.print(f"Repaired: {report.healed}", style="yellow")
    for problem in report.problems:
        out.print(plain(f"  {problem.path}: {problem.reason}"), style="yellow")
    if report.degraded:
        out.print(f"Note: {report.degraded}", style="yellow")


# ---- files and status -------------------------------------------------------------------------------------------


def excerpt(lines: Excerpt) -> None:
    """Print lines of a file."""
    text = plain(lines.text) if sys.stdout.isatty() else lines.text
    has_lines = lines.end_line >= lines.start_line
    sys.stdout.write(text + "\n" if has_lines else "")
    if not has_lines and lines.start_line > 1:
        sys.stderr.write(f"(line {lines.start_line} is after the last line, {lines.total_lines})\n")
    elif lines.end_line < lines.total_lines or lines.start_line > 1:
        sys.stderr.write(f"(lines {lines.start_line}–{lines.end_line} of {lines.total_lines})\n")


#: Names of details that would be unclear, or equal to another row, in the table.
_STATUS_LABELS = {"vectors": "vector search", "behind": "changed files"}


def status(now: Status) -> None:
    """Print the status of the memory."""
    synced = datetime.fromtimestamp(now.last_sync).astimezone() if now.last_sync else None
    rows = [
        ("workspace", now.workspace),
        ("backend", now.backend),
        ("files", f"{now.files}, in {count(now.chunks, 'chunk')}"),
        ("vectors", f"{now.embedded} of {count(now.chunks, 'chunk')}, engine {now.vector_engine}"),
        ("embedder", f"{now.provider} {now.model}".strip() + _reason(now)),
        ("index", f"{now.index_path} ({size(now.index_bytes)})"),
        ("last sync", f"{synced:%Y-%m-%d %H:%M:%S}" if synced else "never: run `memoriter index`"),
        *(
            (_STATUS_LABELS.get(key) or key.replace("_", " "), _format_value(value))
            for key, value in now.details.items()
            if key not in ("source_bytes", "embedder")
        ),
    ]
    if now.degraded:
        rows.append(("note", now.degraded))
    print_table(rows)


def _reason(now: Status) -> str:
    """Return why this embedder is used, as a second line, unless the note says it."""
    reason = str(now.details.get("embedder") or "")
    return f"\n{reason}" if reason and reason not in (now.degraded or "") else ""


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {item}" for key, item in value.items())
    return str(value)


def stats(now: Status, entries: Mapping[str, object] | None) -> None:
    """Print the counts of files and entries, and a note that says what is missing."""
    counts = {"files": now.files, "chunks": now.chunks, "bytes": now.details["source_bytes"]}
    rows = [(label, str(value)) for label, value in counts.items()]
    rows += [
        (f"entries {key}".replace("_", " "), _format_count(key, value))
        for key, value in (entries or {}).items()
    ]
    if now.degraded:
        rows.append(("note", now.degraded))
    print_table(rows)


def _format_count(key: str, value: object) -> str:
    """Format a figure about entries. A dash means no value."""
    if isinstance(value, float) and key in ("oldest", "newest"):
        return f"{datetime.fromtimestamp(value).astimezone():%Y-%m-%d %H:%M}"
    return "–" if value is None or value == {} else _format_value(value)


def findings(found: Sequence[Finding]) -> None:
    """Print the findings of `doctor`."""
    labels = {"ok": "ok", "note": "note", "wrong": "PROBLEM"}
    rows = [(labels[f.state], f.name, f.text + (f"\n→ {f.fix}" if f.fix else "")) for f in found]
    print_table(rows)


def settings(rows: Sequence[Setting]) -> None:
    """Print every setting with its origin."""
    # The values are last, because a list can be hundreds of characters long.
    shown = [(key, str(origin), setting_value(value)) for key, value, origin in rows]
    print_table(shown, "key", "from", "value")


def setting_value(value: object) -> str:
    """Return the value of a setting as a settings file can have it: JSON, which is YAML too, or a text as it is.

    >>> setting_value(["**/*.md"]), setting_value(None), setting_value("auto")
    ('["**/*.md"]', 'null', 'auto')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def shorten_home(path: Path) -> str:
    """Return a path with `~` for the home folder of the user."""
    home = Path.home()
    return str("~" / path.relative_to(home)) if path.is_relative_to(home) else str(path)
