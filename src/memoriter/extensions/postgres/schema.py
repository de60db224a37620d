"""The tables of the Postgres store, as named migrations in `schema.sql`.

A new release appends a migration and never changes a released one. All missing migrations run in one transaction, so
that nothing is half-made. A migration only adds, so gateways of the previous release go on serving. One that cannot
do so says ``-- migration NAME breaks_older``, and older releases refuse the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

#: Partitions of a large table.
PARTITIONS = 8
#: The tables of derived indexes. An agent has several: of its notes, its entries and its items.
INDEX_TABLES = ("index_state", "index_meta", "index_files", "index_chunks", "index_terms", "index_vectors")
#: The tables that hold texts of each area, which an erasure vacuums.
AREA_TABLES = {
    "entries": ("entries", "events", "recalls", "recalled"),
    "items": ("items",),
    "files": ("file_parts", "file_versions"),
}

_TEXT = 'text collate "C"'  # compares bytes, as SQLite does
_OWNER = ", ".join(
    f"{column} {_TEXT} not null default current_setting('memoriter.{column}') check({column} <> '')"
    for column in ("tenant", "agent")
)
_IS_OWN = "tenant = current_setting('memoriter.tenant') and agent = current_setting('memoriter.agent')"


@dataclass(frozen=True, slots=True)
class PostgresMigration:
    """One step of the schema."""

    name: str
    statements: tuple[str, ...]
    #: Releases that do not know this step cannot use the schema any more.
    breaks_older: bool = False


def _migrations(text: str) -> Iterator[PostgresMigration]:
    """Yield the migrations of a text. Blank lines separate its tables, with their indexes, and other statements."""
    for part in text.split("\n-- migration ")[1:]:
        head, _, body = part.partition("\n")
        name, *flags = head.split()
        groups = re.sub(r"^--.*\n", "", body, flags=re.MULTILINE).strip().split("\n\n")
        statements = tuple(statement for group in groups for statement in _statements(group.strip("\n;")))
        yield PostgresMigration(name, statements, breaks_older="breaks_older" in flags)


def _statements(group: str) -> Iterator[str]:
    """Yield the statements that a group stands for.

    The tenant and the agent are the first columns of every table, of its primary key and of every index, and a large
    table is partitioned by them. Row-level security shows a transaction only the rows of its own agent, and lets it
    write no others. ``text`` compares bytes. ``_*`` is each partition.
    """
    if not group.startswith("create table"):
        yield from (group.replace("_*", f"_{part}") for part in range(PARTITIONS if "_*" in group else 1))
        return
    table, *indexes = group.split(";\n")
    name = table.removeprefix("create table ").partition("(")[0]
    typed = re.sub(r"(\w+) text\b", rf"\1 {_TEXT}", table).replace(f"{name}(", f"{name}({_OWNER}, ", 1)
    keyed = typed.replace("primary key(", "primary key(tenant, agent, ")
    yield keyed.replace("partition by agent", "partition by hash(tenant, agent)")
    parts = [f"{name}_{part}" for part in range(PARTITIONS if "partition by agent" in table else 0)]
    for number, part in enumerate(parts):
        yield f"create table {part} partition of {name} for values with (modulus {PARTITIONS}, remainder {number})"
    yield from (index.replace("(", "(tenant, agent, ", 1) for index in indexes)
    for part in (name, *parts):
        yield f"alter table {part} enable row level security"
        yield f"alter table {part} force row level security"  # for the owner of the table too
        yield f"create policy own_rows on {part} using ({_IS_OWN}) with check ({_IS_OWN})"


MIGRATIONS = tuple(
    _migrations(files("memoriter.extensions.postgres").joinpath("schema.sql").read_text("utf-8"))
)
