"""What do we hold, and where?

``database`` is one SQLite file held rightly; ``index`` is what the derived ``index.db`` holds: documents,
chunks, keywords and vectors. Nothing here reads a workspace, cuts a text or calls an embedder.
"""

from recollect.store.documents import Counts, FileRow, StoredChunk
from recollect.store.index import Index, open_index
from recollect.store.keywords import Filter, KeywordMatch

__all__ = ["Counts", "FileRow", "Filter", "Index", "KeywordMatch", "StoredChunk", "open_index"]
