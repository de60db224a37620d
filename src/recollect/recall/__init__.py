"""What is the agent told now?"""

from recollect.recall.budget import for_prompt
from recollect.recall.citations import shows_citations
from recollect.recall.session_keys import SessionKey

__all__ = ["SessionKey", "for_prompt", "shows_citations"]
