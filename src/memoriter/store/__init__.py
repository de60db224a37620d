"""SQLite databases: ``index.db``, which is derived from the files, and ``memory.db``, which stores the entries.

``database`` is one SQLite file shared by threads and processes. ``index`` stores documents, chunks, keywords and
vectors in one. ``protocol`` says what other packages use of an index.
"""

from memoriter.store.documents import Counts, FileRow, StoredChunk
from memoriter.store.index import SqliteIndex, open_index
from memoriter.store.keywords import KeywordMatch
from memoriter.store.protocol import Filter, Index

__all__ = ["Counts", "FileRow", "Filter", "Index", "KeywordMatch", "SqliteIndex", "StoredChunk", "open_index"]
