-- The tables of memory.db, as named migrations. A release appends one and never changes a released one.

-- migration m001_initial

create table meta(key text primary key, value text not null) without rowid;
create table entries(
    id text primary key, type text not null, category text, importance real not null,
    confidence real not null, trust text not null, state text not null, session text, source text,
    created_at real not null, updated_at real not null, valid_from real not null, expires_at real,
    superseded_by text, last_accessed_at real, access_count integer not null,
    repetitions integer not null, related text not null, tags text not null, seq integer not null,
    digest text not null, text text not null);
create index entries_digest on entries(digest);
create index entries_type on entries(state, type, updated_at);
create index entries_session on entries(session) where session is not null;
create index entries_expiry on entries(expires_at) where expires_at is not null;
-- autoincrement: an index that follows the events asks only for greater numbers, so none may be used twice.
create table events(
    seq integer primary key autoincrement, change integer not null, at real not null, kind text not null,
    entry_id text not null, by text not null, note text not null, before text, after text);
create index events_entry on events(entry_id, seq);
create index events_change on events(change);
create table tombstones(digest text primary key, at real not null, seq integer not null) without rowid;
-- Vectors of erased texts that the derived index may still hold: an interrupted erasure is completed.
create table unfinished(hash text primary key) without rowid;
create table recalls(
    id text primary key, at real not null, interface text not null, session text, query text not null,
    characters integer not null, tokens integer not null) without rowid;
create index recalls_at on recalls(at);
create table recalled(
    recall_id text not null, position integer not null, kind text not null, ref text not null,
    entered integer not null, reason text not null, score real not null, parts text not null,
    primary key(recall_id, position)) without rowid;
create index recalled_ref on recalled(ref);

-- migration m002_lists

-- For pages of a list, the versions that an entry superseded, and the timeline, without reading every row.
create index entries_created on entries(created_at, id);
create index entries_superseded on entries(superseded_by) where superseded_by is not null;
create index events_at on events(at, kind);

-- migration m003_repetitions

-- The words of a repetition.
alter table events add column said text;

-- migration m004_recalled_texts

-- What entered the prompt, as it was then. Entries and notes may change later.
alter table recalls add column block text not null default '';
alter table recalled add column text text not null default '';

-- migration m005_retention

-- Since when an entry waits to be erased, in observed time.
create table retention(entry_id text primary key, since real not null) without rowid;

-- migration m006_workspaces

-- Where it was learned.
alter table entries add column workspace text;
