"""What is the agent told now?"""

from recollect.recall.budget import for_prompt
from recollect.recall.citations import shows_citations
from recollect.recall.prompt import Language, memory_section
from recollect.recall.session_keys import SessionKey

__all__ = ["Language", "SessionKey", "for_prompt", "memory_section", "shows_citations"]
