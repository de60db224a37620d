"""Where do memories come from?

From the Markdown files of a workspace: listed by their stat, read safely, whatever their bytes are.
"""

from recollect.sources.workspace import Scan, Workspace

__all__ = ["Scan", "Workspace"]
