"""What do we hold, and where?

``database`` is one SQLite file held rightly; ``index`` is what the derived ``index.db`` holds: documents,
chunks, keywords and vectors. Nothing here reads a workspace, cuts a text or calls an embedder.
"""

from memoriter.store.documents import Counts, FileRow, StoredChunk
from memoriter.store.index import Index, open_index
from memoriter.store.keywords import Filter, KeywordMatch

__all__ = ["Counts", "FileRow", "Filter", "Index", "KeywordMatch", "StoredChunk", "open_index"]
