"""The qmd engine: the outside program `qmd`, driven as one process a call.

>>> from memoriter.engines.qmd import as_argument
>>> as_argument("--help me  find\\nthe backup")
'help me find the backup'
"""

from memoriter.engines.qmd.command import as_argument
from memoriter.engines.qmd.engine import QmdEngine, QmdSettings
from memoriter.engines.qmd.sessions import Exports
from memoriter.engines.qmd.upkeep import Schedule

__all__ = ["Exports", "QmdEngine", "QmdSettings", "Schedule", "as_argument"]
