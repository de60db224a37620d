"""What is the agent told now?"""

from recollect.recall.citations import shows_citations

__all__ = ["shows_citations"]
