"""What do we hold, and where?

``database`` is one SQLite file held rightly; ``index`` is what the derived ``index.db`` holds: documents,
chunks, keywords and vectors. Nothing here reads a workspace, cuts a text or calls an embedder.
"""

from recollect.store.index import Counts, FileRow, Filter, Index, KeywordMatch, StoredChunk, open_index

__all__ = ["Counts", "FileRow", "Filter", "Index", "KeywordMatch", "StoredChunk", "open_index"]
