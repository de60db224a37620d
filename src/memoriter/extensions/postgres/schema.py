"""The tables of the Postgres store, as named migrations.

A new release appends a migration and never changes a released one. All missing migrations run in one transaction, so
that nothing is half-made. A migration only adds, so gateways of the previous release go on serving. One that cannot
do so says ``breaks_older=True``, and older releases refuse the schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Partitions of a large table.
PARTITIONS = 8

_TEXT = 'text collate "C"'  # compares bytes, as SQLite does
_IS_OWN = "tenant = current_setting('memoriter.tenant') and agent = current_setting('memoriter.agent')"


@dataclass(frozen=True, slots=True)
class PostgresMigration:
    """One step of the schema."""

    name: str
    statements: tuple[str, ...]
    #: Releases that do not know this step cannot use the schema any more.
    breaks_older: bool = False


def table(
    name: str, columns: str, *, key: str, indexes: tuple[str, ...] = (), is_large: bool = True
) -> tuple[str, ...]:
    """Return the statements that create a table of agents' rows.

    ``columns`` is SQL, in which ``text`` compares bytes. The tenant and the agent are the first columns, also of the
    primary key and of every index, and a large table is partitioned by them. Row-level security shows a transaction
    only the rows of its own agent, and lets it write no others.
    """
    typed = re.sub(r"(\w+) text\b", rf"\1 {_TEXT}", columns)
    owner = ", ".join(
        f"{column} {_TEXT} not null default current_setting('memoriter.{column}') check({column} <> '')"
        for column in ("tenant", "agent")
    )
    partitioned = " partition by hash(tenant, agent)" if is_large else ""
    parts = [f"{name}_{number}" for number in range(PARTITIONS if is_large else 0)]
    return (
        f"create table {name}({owner}, {typed}, primary key(tenant, agent, {key})){partitioned}",
        *(
            f"create table {part} partition of {name} for values with (modulus {PARTITIONS}, remainder {number})"
            for number, part in enumerate(parts)
        ),
        *(f"create index {index.replace('(', '(tenant, agent, ', 1)}" for index in indexes),
        *(statement for part in (name, *parts) for statement in _protect(part)),
    )


def _protect(name: str) -> tuple[str, ...]:
    return (
        f"alter table {name} enable row level security",
        f"alter table {name} force row level security",  # for the owner of the table too
        f"create policy own_rows on {name} using ({_IS_OWN}) with check ({_IS_OWN})",
    )


_ENTRIES = PostgresMigration(
    "entries",
    (
        # SQLite has these two. The stores share their statements.
        """create function json_each(list text) returns table(key text, value text) language sql immutable
        as $$ select e.key, e.value from jsonb_each_text(
            case when jsonb_typeof(list::jsonb) = 'object' then list::jsonb else '{}' end) e
        union all select (e.position - 1)::text, e.value from jsonb_array_elements_text(
            case when jsonb_typeof(list::jsonb) = 'array' then list::jsonb else '[]' end)
            with ordinality e(value, position) $$""",
        """create function instr(text text, part text) returns integer language sql immutable
        as $$ select strpos(text, part) $$""",
        *table("meta", "key text not null, value text not null", key="key", is_large=False),
        *table(
            "entries",
            """id text not null, type text not null, category text, importance double precision not null,
            confidence double precision not null, trust text not null, state text not null, session text,
            source text, workspace text, created_at double precision not null,
            updated_at double precision not null, valid_from double precision not null,
            expires_at double precision, superseded_by text, last_accessed_at double precision,
            access_count bigint not null, repetitions bigint not null, related text not null,
            tags text not null, seq bigint not null, digest text not null, text text not null""",
            key="id",
            indexes=(
                "entries_digest on entries(digest)",
                "entries_type on entries(state, type, updated_at)",
                "entries_created on entries(created_at, id)",
                "entries_session on entries(session) where session is not null",
                "entries_expiry on entries(expires_at) where expires_at is not null",
                "entries_superseded on entries(superseded_by) where superseded_by is not null",
            ),
        ),
        *table(
            "events",
            """seq bigint not null, change bigint not null, at double precision not null, kind text not null,
            entry_id text not null, by text not null, note text not null, before text, after text, said text""",
            key="seq",
            indexes=(
                "events_entry on events(entry_id, seq)",
                "events_change on events(change)",
                "events_at on events(at, kind)",
            ),
        ),
        *table(
            "tombstones",
            "digest text not null, at double precision not null, seq bigint not null",
            key="digest",
        ),
        *table("unfinished", "hash text not null", key="hash", is_large=False),
        *table(
            "recalls",
            """id text not null, at double precision not null, interface text not null, session text,
            query text not null, characters bigint not null, tokens bigint not null,
            block text not null default ''""",
            key="id",
            indexes=("recalls_at on recalls(at)",),
        ),
        *table(
            "recalled",
            """recall_id text not null, position bigint not null, kind text not null, ref text not null,
            entered boolean not null, reason text not null, score double precision not null, parts text not null,
            text text not null default ''""",
            key="recall_id, position",
            indexes=("recalled_ref on recalled(ref)",),
        ),
        *table(
            "retention",
            "entry_id text not null, since double precision not null",
            key="entry_id",
            is_large=False,
        ),
    ),
)

#: The tables of derived indexes. An agent has several: of its notes, its entries and its items.
INDEX_TABLES = ("index_state", "index_meta", "index_files", "index_chunks", "index_terms", "index_vectors")

_INDEX = PostgresMigration(
    "index",
    (
        # One row for each index, changed by every write: the next row number, and what BM25 needs of all chunks.
        *table(
            "index_state",
            """index_name text not null, next_row bigint not null default 1, chunks bigint not null default 0,
            tokens bigint not null default 0, in_graph boolean not null default false""",
            key="index_name",
        ),
        *table(
            "index_meta",
            "index_name text not null, key text not null, value text not null",
            key="index_name, key",
        ),
        *table(
            "index_files",
            """index_name text not null, path text not null, source text not null, mtime_ns bigint not null,
            size bigint not null, sha256 text not null, indexed_at double precision not null, note text,
            state text not null""",
            key="index_name, path",
        ),
        *table(
            "index_chunks",
            """index_name text not null, rowid bigint not null, start_line integer not null,
            end_line integer not null, length integer not null, hash bytea not null, model text not null,
            source text not null, trust text not null, date text, id text not null, path text not null,
            headings text not null, text text not null""",
            key="index_name, rowid",
            indexes=(
                "index_chunks_place on index_chunks(index_name, path, start_line, rowid)",
                "index_chunks_vector on index_chunks(index_name, model, hash)",
            ),
        ),
        # The chunks that contain a term, in blocks of 256 row numbers. Indexes on arrays or texts (GIN) would be
        # smaller, but row-level security forbids their operators before its own check, so each search would read
        # every chunk of the agent.
        *table(
            "index_terms",
            "index_name text not null, block integer not null, term text not null, list bytea not null",
            key="index_name, term, block",
        ),
        *table(
            "index_vectors",
            """index_name text not null, dims integer not null, in_graph boolean not null, hash bytea not null,
            used_at double precision not null, model text not null, vector vector not null""",
            key="index_name, model, hash",
        ),
        # Room for new versions of rows on the same page, so that indexes need no new entries.
        *(
            f"alter table {name}_{number} set (fillfactor = 85)"
            for name in ("index_state", "index_terms")
            for number in range(PARTITIONS)
        ),
    ),
)

_FILES = PostgresMigration(
    "files",
    (
        *table(
            "file_clock",
            "name text not null, version bigint not null, stamp text not null",
            key="name",
            is_large=False,
        ),
        *table(
            "files",
            """path text not null, version bigint not null, size bigint not null, digest text not null,
            changed_ns bigint not null, is_deleted boolean not null""",
            key="path",
            indexes=("files_version on files(version)",),
        ),
        *table(
            "file_parts",
            "path text not null, start bigint not null, version bigint not null, content bytea not null",
            key="path, start",
        ),
        *table(
            "file_versions",
            """path text not null, version bigint not null, digest text not null, changed_ns bigint not null,
            content bytea not null""",
            key="path, version",
        ),
        # Other gateways learn from the same channel that entries have changed.
        """create function announce_change() returns trigger language plpgsql as $$ begin
            perform pg_notify('memoriter', json_build_array(current_setting('memoriter.tenant'),
                current_setting('memoriter.agent'), tg_argv[0])::text);
            return null;
        end $$""",
        """create trigger announce after insert on events for each statement
        execute function announce_change('entries')""",
    ),
)

_ITEMS = PostgresMigration(
    "items",
    (
        *table(
            "items",
            """id text not null, namespace text not null, key text not null, value text not null,
            texts text not null, created_at double precision not null, updated_at double precision not null,
            ttl_s double precision, expires_at double precision, seq bigint not null,
            unique(tenant, agent, namespace, key)""",
            key="id",
            indexes=("items_expiry on items(expires_at) where expires_at is not null",),
        ),
        *table(
            "item_changes",
            "id text not null, seq bigint not null, namespace text not null",
            key="id",
            indexes=("item_changes_seq on item_changes(seq)",),
        ),
        *table("item_erasures", "hash text not null", key="hash", is_large=False),
        *table("item_marks", "seq bigint not null, mark text not null", key="seq", is_large=False),
    ),
)

_own = " and ".join(
    f"{column} = (select current_setting('memoriter.{column}'))" for column in ("tenant", "agent")
)
_POLICIES = PostgresMigration(
    "policies",
    (
        # As subqueries, so that the plan of a statement does not depend on the agent that a connection serves first.
        # The server would estimate how many rows that agent has in each partition, and use the wrong index for others.
        f"""do $do$ declare part name; begin
            for part in select tablename from pg_policies where schemaname = 'memoriter' and policyname = 'own_rows'
            loop execute format($$alter policy own_rows on %I using ({_own}) with check ({_own})$$, part); end loop;
        end $do$""",  # noqa: S608 - constants
    ),
)

#: The tables that hold texts of each area, which an erasure vacuums.
AREA_TABLES = {
    "entries": ("entries", "events", "recalls", "recalled"),
    "items": ("items",),
    "files": ("file_parts", "file_versions"),
}

MIGRATIONS = (_ENTRIES, _INDEX, _FILES, _ITEMS, _POLICIES)
