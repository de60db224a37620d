-- The tables of the Postgres store, as named migrations. `schema.py` says how this file is read.

-- migration entries

-- SQLite has these two. The stores share their statements.
create function json_each(list text) returns table(key text, value text) language sql immutable
as $$ select e.key, e.value from jsonb_each_text(
    case when jsonb_typeof(list::jsonb) = 'object' then list::jsonb else '{}' end) e
union all select (e.position - 1)::text, e.value from jsonb_array_elements_text(
    case when jsonb_typeof(list::jsonb) = 'array' then list::jsonb else '[]' end)
    with ordinality e(value, position) $$;

create function instr(text text, part text) returns integer language sql immutable
as $$ select strpos(text, part) $$;

create table meta(key text not null, value text not null, primary key(key));

create table entries(
    id text not null, type text not null, category text, importance double precision not null,
    confidence double precision not null, trust text not null, state text not null, session text,
    source text, workspace text, created_at double precision not null,
    updated_at double precision not null, valid_from double precision not null,
    expires_at double precision, superseded_by text, last_accessed_at double precision,
    access_count bigint not null, repetitions bigint not null, related text not null,
    tags text not null, seq bigint not null, digest text not null, text text not null,
    primary key(id)) partition by agent;
create index entries_digest on entries(digest);
create index entries_type on entries(state, type, updated_at);
create index entries_created on entries(created_at, id);
create index entries_session on entries(session) where session is not null;
create index entries_expiry on entries(expires_at) where expires_at is not null;
create index entries_superseded on entries(superseded_by) where superseded_by is not null;

create table events(
    seq bigint not null, change bigint not null, at double precision not null, kind text not null,
    entry_id text not null, by text not null, note text not null, before text, after text, said text,
    primary key(seq)) partition by agent;
create index events_entry on events(entry_id, seq);
create index events_change on events(change);
create index events_at on events(at, kind);

create table tombstones(
    digest text not null, at double precision not null, seq bigint not null,
    primary key(digest)) partition by agent;

create table unfinished(hash text not null, primary key(hash));

create table recalls(
    id text not null, at double precision not null, interface text not null, session text,
    query text not null, characters bigint not null, tokens bigint not null,
    block text not null default '',
    primary key(id)) partition by agent;
create index recalls_at on recalls(at);

create table recalled(
    recall_id text not null, position bigint not null, kind text not null, ref text not null,
    entered boolean not null, reason text not null, score double precision not null, parts text not null,
    text text not null default '',
    primary key(recall_id, position)) partition by agent;
create index recalled_ref on recalled(ref);

create table retention(entry_id text not null, since double precision not null, primary key(entry_id));

-- migration index

-- One row for each index, changed by every write: the next row number, and what BM25 needs of all chunks.
create table index_state(
    index_name text not null, next_row bigint not null default 1, chunks bigint not null default 0,
    tokens bigint not null default 0, in_graph boolean not null default false,
    primary key(index_name)) partition by agent;

create table index_meta(
    index_name text not null, key text not null, value text not null,
    primary key(index_name, key)) partition by agent;

create table index_files(
    index_name text not null, path text not null, source text not null, mtime_ns bigint not null,
    size bigint not null, sha256 text not null, indexed_at double precision not null, note text,
    state text not null,
    primary key(index_name, path)) partition by agent;

create table index_chunks(
    index_name text not null, rowid bigint not null, start_line integer not null,
    end_line integer not null, length integer not null, hash bytea not null, model text not null,
    source text not null, trust text not null, date text, id text not null, path text not null,
    headings text not null, text text not null,
    primary key(index_name, rowid)) partition by agent;
create index index_chunks_place on index_chunks(index_name, path, start_line, rowid);
create index index_chunks_vector on index_chunks(index_name, model, hash);

-- The chunks that contain a term, in blocks of 256 row numbers. Indexes on arrays or texts (GIN) would be smaller, but
-- row-level security forbids their operators before its own check, so each search would read every chunk of the agent.
create table index_terms(
    index_name text not null, block integer not null, term text not null, list bytea not null,
    primary key(index_name, term, block)) partition by agent;

create table index_vectors(
    index_name text not null, dims integer not null, in_graph boolean not null, hash bytea not null,
    used_at double precision not null, model text not null, vector vector not null,
    primary key(index_name, model, hash)) partition by agent;

-- Room for new versions of rows on the same page, so that indexes need no new entries.
alter table index_state_* set (fillfactor = 85);

alter table index_terms_* set (fillfactor = 85);

-- migration files

create table file_clock(name text not null, version bigint not null, stamp text not null, primary key(name));

create table files(
    path text not null, version bigint not null, size bigint not null, digest text not null,
    changed_ns bigint not null, is_deleted boolean not null,
    primary key(path)) partition by agent;
create index files_version on files(version);

create table file_parts(
    path text not null, start bigint not null, version bigint not null, content bytea not null,
    primary key(path, start)) partition by agent;

create table file_versions(
    path text not null, version bigint not null, digest text not null, changed_ns bigint not null,
    content bytea not null,
    primary key(path, version)) partition by agent;

-- Other gateways learn from the same channel that entries have changed.
create function announce_change() returns trigger language plpgsql as $$ begin
    perform pg_notify('memoriter', json_build_array(current_setting('memoriter.tenant'),
        current_setting('memoriter.agent'), tg_argv[0])::text);
    return null;
end $$;

create trigger announce after insert on events for each statement
execute function announce_change('entries');

-- migration items

create table items(
    id text not null, namespace text not null, key text not null, value text not null,
    texts text not null, created_at double precision not null, updated_at double precision not null,
    ttl_s double precision, expires_at double precision, seq bigint not null,
    unique(tenant, agent, namespace, key),
    primary key(id)) partition by agent;
create index items_expiry on items(expires_at) where expires_at is not null;

create table item_changes(
    id text not null, seq bigint not null, namespace text not null,
    primary key(id)) partition by agent;
create index item_changes_seq on item_changes(seq);

create table item_erasures(hash text not null, primary key(hash));

create table item_marks(seq bigint not null, mark text not null, primary key(seq));

-- migration policies

-- As subqueries, so that the plan of a statement does not depend on the agent that a connection serves first. The server
-- would estimate how many rows that agent has in each partition, and use the wrong index for others.
do $do$ declare part name; begin
    for part in select tablename from pg_policies where schemaname = 'memoriter' and policyname = 'own_rows'
    loop execute format($$alter policy own_rows on %I
        using (tenant = (select current_setting('memoriter.tenant'))
            and agent = (select current_setting('memoriter.agent')))
        with check (tenant = (select current_setting('memoriter.tenant'))
            and agent = (select current_setting('memoriter.agent')))$$, part);
    end loop;
end $do$;
