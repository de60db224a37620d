"""What is the agent told now?"""

from recollect.recall.budget import for_prompt
from recollect.recall.citations import cited_place, shows_citations
from recollect.recall.prompt import Language, memory_section
from recollect.recall.session_keys import SessionKey

__all__ = ["Language", "SessionKey", "cited_place", "for_prompt", "memory_section", "shows_citations"]
