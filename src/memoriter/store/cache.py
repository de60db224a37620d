"""The embedding cache: each vector once, by its embedder and the hash of its text.

Chunks refer to the vectors in the cache, so it stores all vectors and not only those for reuse.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import apsw

from memoriter.records import Identity
from memoriter.store.protocol import value

# The text of an Identity as in chunks.model. A test compares the two.
_IDENTITY = (
    "provider || '/' || model || '/' || dims"
    " || case provider_key when '' then '' else '/' || substr(provider_key, 1, 12) end"
)

_KNOWN = """
    select hash from embedding_cache
    where provider = ? and model = ? and provider_key = ? and dims = ?
    and hash in (select value from json_each(?))"""

_LOAD = """
    select hash, vector from embedding_cache
    where provider = ? and model = ? and provider_key = ? and dims = ?
    and hash in (select value from json_each(?))"""

# Each part is one seek. A row comparison, (provider, model, provider_key) > (?, ?, ?), would scan all vectors.
_NEXT_KEY = """
    select provider, model, provider_key from embedding_cache
    where provider = ?1 and model = ?2 and provider_key > ?3
    union all select provider, model, provider_key from embedding_cache where provider = ?1 and model > ?2
    union all select provider, model, provider_key from embedding_cache where provider > ?1
    order by 1, 2, 3 limit 1"""

_RELEASE = """
    update embedding_cache set used_at = ?
    where provider = ? and model = ? and provider_key = ? and hash in (select value from json_each(?))"""

_DROP = """
    delete from embedding_cache
    where provider = ?1 and model = ?2 and provider_key = ?3 and hash in (select value from json_each(?4))
    and hash not in (select hash from chunks where model <> '' and hash in (select value from json_each(?4)))"""

# Cross joins fix the order: first the requested chunks, then the vector of each.
OF_ROWS = """
    select c.rowid, e.vector from json_each(?) wanted
    cross join chunks c on c.rowid = wanted.value
    cross join embedding_cache e on e.hash = c.hash
    where e.provider = ? and e.model = ? and e.provider_key = ? and e.dims = ? and c.model = ?"""

# The plus sign keeps SQLite from using the index on model: new rows are a short range of rowids.
AFTER_ROW = """
    select c.rowid, e.vector from chunks c
    cross join embedding_cache e on e.hash = c.hash
    where c.rowid > ? and e.provider = ? and e.model = ? and e.provider_key = ? and e.dims = ? and +c.model = ?
    order by c.rowid"""

_UNUSED = f"""
    select provider, model, provider_key, hash, dims from embedding_cache
    where (hash, {_IDENTITY}) not in (select hash, model from chunks where model <> '')
    order by used_at"""  # noqa: S608 - a constant


def key_of(identity: Identity) -> tuple[str, str, str, int]:
    """Return the identity as the statements bind it."""
    return identity.provider, identity.model, identity.key, identity.dimensions


def known(connection: apsw.Connection, identity: Identity, hashes: Iterable[str]) -> set[str]:
    """Return the hashes that have a vector of this identity."""
    return {row[0] for row in connection.execute(_KNOWN, (*key_of(identity), _array(hashes)))}


def load(connection: apsw.Connection, identity: Identity, hashes: Iterable[str]) -> dict[str, bytes]:
    """Return the cached vectors of this identity by hash."""
    return dict(connection.execute(_LOAD, (*key_of(identity), _array(hashes))))


def save(connection: apsw.Connection, identity: Identity, vectors: Mapping[str, bytes]) -> None:
    """Store the vectors, and replace existing ones."""
    provider, model, key, dims = key_of(identity)
    now = time.time()
    connection.executemany(
        "insert or replace into embedding_cache(provider, model, provider_key, hash, dims, vector, used_at)"
        " values(?, ?, ?, ?, ?, ?, ?)",
        ((provider, model, key, hash_, dims, blob, now) for hash_, blob in vectors.items()),
    )


def release(connection: apsw.Connection, hashes: Iterable[str]) -> None:
    """Record that chunks no longer use these vectors. They age from now on."""
    array = _array(hashes)
    for key in _keys(connection) if array != "[]" else ():
        connection.execute(_RELEASE, (time.time(), *key, array))


def drop(connection: apsw.Connection, hashes: Iterable[str]) -> None:
    """Delete the vectors of these hashes, of any embedder, unless chunks use them."""
    array = _array(hashes)
    for key in _keys(connection) if array != "[]" else ():
        connection.execute(_DROP, (*key, array))


def _keys(connection: apsw.Connection) -> Iterator[tuple[str, str, str]]:
    """Yield the embedders that have vectors, with one seek for each instead of a scan."""
    key = ("", "", "")
    while found := connection.execute(_NEXT_KEY, key).fetchall():
        key = cast("tuple[str, str, str]", found[0])
        yield key


def size(connection: apsw.Connection) -> int:
    """Return the bytes of all vectors."""
    return int(value(connection, "select coalesce(sum(dims * 4), 0) from embedding_cache"))


def prune(connection: apsw.Connection, limit_bytes: int) -> int:
    """Delete vectors that no chunk uses, longest unused first, until the cache fits. Return how many."""
    excess = size(connection) - limit_bytes
    unused = []
    for provider, model, key, hash_, dims in connection.execute(_UNUSED) if excess > 0 else ():
        if excess <= 0:
            break
        unused.append((provider, model, key, hash_, dims))
        excess -= dims * 4
    connection.executemany(
        "delete from embedding_cache"
        " where provider = ? and model = ? and provider_key = ? and hash = ? and dims = ?",
        unused,
    )
    return len(unused)


def _array(values: Iterable[object]) -> str:
    return json.dumps(list(values))
