"""The qmd engine: the outside program `qmd`, driven as one process a call.

>>> from recollect.managers.qmd import as_argument
>>> as_argument("--help me  find\\nthe backup")
'help me find the backup'
"""

from recollect.managers.qmd.command import as_argument
from recollect.managers.qmd.manager import QmdManager, QmdSettings
from recollect.managers.qmd.sessions import Exports
from recollect.managers.qmd.upkeep import Schedule

__all__ = ["Exports", "QmdManager", "QmdSettings", "Schedule", "as_argument"]
