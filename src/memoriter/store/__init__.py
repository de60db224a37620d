"""SQLite databases: ``index.db``, which is derived from the files, and ``memory.db``, which stores the entries.

``database`` is one SQLite file shared by threads and processes. ``index`` stores documents, chunks, keywords and
vectors in one.
"""

from memoriter.store.documents import Counts, FileRow, StoredChunk
from memoriter.store.index import Index, open_index
from memoriter.store.keywords import Filter, KeywordMatch

__all__ = ["Counts", "FileRow", "Filter", "Index", "KeywordMatch", "StoredChunk", "open_index"]
