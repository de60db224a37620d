-- The tables of index.db, as named migrations. A release appends one and never changes a released one.

-- migration m001_initial

create table meta(key text primary key, value text not null) without rowid;
-- Distinguishes an index from the one that replaces it: rows are numbered from 1 in each.
insert into meta(key, value) values('store', lower(hex(randomblob(16))));
create table files(
    path text primary key, source text not null, mtime_ns integer not null, size integer not null,
    sha256 text not null, indexed_at real not null, note text) without rowid;
-- autoincrement: rowids are never reused, so vector engines ask only for greater ones.
-- text is the last column: the others are read without its overflow pages.
create table chunks(
    rowid integer primary key autoincrement, id text not null, path text not null, source text not null,
    start_line integer not null, end_line integer not null, headings text not null, date text,
    hash text not null, model text not null, text text not null);
create index chunks_path on chunks(path);
-- Covers the filters.
create index chunks_model on chunks(model, path, source);
-- detail=full: in a contentless table bm25() needs the positions. With less detail every score is 0.
-- The secure-delete option of FTS5 does nothing here: contentless rows are marked as deleted until segments
-- merge, and Index.scrub merges them.
create virtual table chunks_fts using fts5(
    title, body, content='', contentless_delete=1, tokenize="ascii tokenchars '_-./:@#+'");
create virtual table chunks_terms using fts5vocab(chunks_fts, row);
create table embedding_cache(
    provider text not null, model text not null, provider_key text not null, hash text not null,
    dims integer not null, vector blob not null, used_at real not null,
    primary key(provider, model, provider_key, hash, dims)) without rowid;
create index embedding_cache_used on embedding_cache(used_at, dims);

-- migration m002_sessions

alter table files add column state text not null default '';
alter table chunks add column trust text not null default 'owner';
-- Only the last chunks of a transcript that grew are replaced, of perhaps a hundred thousand.
create index chunks_place on chunks(path, start_line);
drop index chunks_path;
