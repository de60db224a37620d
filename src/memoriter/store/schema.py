"""The history of ``index.db``: every table that the index has, and how it came to be.

A new release adds a migration at the end and changes none that stands.
"""

from __future__ import annotations

from memoriter.store.connection import Migration

APPLICATION_ID = 0x7265636C  # "recl"

_M001 = Migration(
    "m001_initial",
    (
        "create table meta(key text primary key, value text not null) without rowid",
        # Tells one index from the one that replaces it: rows are numbered from 1 in each.
        "insert into meta(key, value) values('store', lower(hex(randomblob(16))))",
        """create table files(
            path text primary key, source text not null, mtime_ns integer not null, size integer not null,
            sha256 text not null, indexed_at real not null, note text) without rowid""",
        # autoincrement: a rowid is never given twice, so whoever follows the table asks only for greater ones.
        # text stands last: the columns before it are read without walking its overflow pages.
        """create table chunks(
            rowid integer primary key autoincrement, id text not null, path text not null, source text not null,
            start_line integer not null, end_line integer not null, headings text not null, date text,
            hash text not null, model text not null, text text not null)""",
        "create index chunks_path on chunks(path)",
        "create index chunks_model on chunks(model, path, source)",  # filters read this alone
        # detail=full: in a contentless table bm25() needs the positions; with less detail every score is 0.
        # FTS5's secure-delete does nothing here: contentless rows are marked as gone until segments merge, and
        # Index.scrub merges them.
        """create virtual table chunks_fts using fts5(
            title, body, content='', contentless_delete=1, tokenize="ascii tokenchars '_-./:@#+'")""",
        "create virtual table chunks_terms using fts5vocab(chunks_fts, row)",
        """create table embedding_cache(
            provider text not null, model text not null, provider_key text not null, hash text not null,
            dims integer not null, vector blob not null, used_at real not null,
            primary key(provider, model, provider_key, hash, dims)) without rowid""",
        "create index embedding_cache_used on embedding_cache(used_at, dims)",
    ),
)

_M002 = Migration(
    "m002_sessions",
    (
        "alter table files add column state text not null default ''",
        "alter table chunks add column trust text not null default 'owner'",
        # A transcript that grew has only its last chunks replaced, of perhaps a hundred thousand.
        "create index chunks_place on chunks(path, start_line)",
        "drop index chunks_path",
    ),
)

MIGRATIONS = (_M001, _M002)
