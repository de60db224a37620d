-- The tables of items.db, as named migrations. A release appends one and never changes a released one.

-- migration m001_initial

create table meta(key text primary key, value text not null) without rowid;
create table items(
    id text primary key, namespace text not null, key text not null, value text not null,
    texts text not null, created_at real not null, updated_at real not null, ttl_s real,
    expires_at real, seq integer not null, unique(namespace, key));
create index items_expiry on items(expires_at) where expires_at is not null;
-- One row for every item that ever existed. A change gives it a new number, greater than all before.
create table item_changes(id text primary key, seq integer not null, namespace text not null) without rowid;
create index item_changes_seq on item_changes(seq);
-- Deleted items, by id, and their vectors, by hash, that the derived index may still hold, so that an
-- interrupted erasure can be completed.
create table item_erasures(hash text primary key) without rowid;
