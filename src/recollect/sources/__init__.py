"""Where do memories come from?

From the Markdown files of a workspace, and from the transcripts that sessions leave behind: listed by their stat,
read safely, whatever their bytes are.
"""

from recollect.sources.growth import turns_of_messages
from recollect.sources.transcripts import Transcripts
from recollect.sources.workspace import Scan, Workspace

__all__ = ["Scan", "Transcripts", "Workspace", "turns_of_messages"]
