"""What is written down? The day's log, single items, summaries of sessions, and what a compaction would lose.

Everything goes through one durable writer (`files`), is cleaned of secrets and private spans first, and is Markdown
that a person can read and edit. How it is found again is not this room's duty.
"""

from __future__ import annotations

from recollect.writing.flush import Flush, Threshold
from recollect.writing.notebook import Notebook
from recollect.writing.scribe import Scribe
from recollect.writing.summary import Summaries

__all__ = ["Flush", "Notebook", "Scribe", "Summaries", "Threshold"]
