"""The qmd engine: the outside program `qmd`, driven as one process a call.

>>> from recollect.engines.qmd import as_argument
>>> as_argument("--help me  find\\nthe backup")
'help me find the backup'
"""

from recollect.engines.qmd.command import as_argument
from recollect.engines.qmd.engine import QmdManager, QmdSettings
from recollect.engines.qmd.sessions import Exports
from recollect.engines.qmd.upkeep import Schedule

__all__ = ["Exports", "QmdManager", "QmdSettings", "Schedule", "as_argument"]
