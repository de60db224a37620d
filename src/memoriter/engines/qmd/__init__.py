"""The qmd engine: runs the external program `qmd`, one process for each call.

>>> from memoriter.engines.qmd import as_argument
>>> as_argument("--help me  find\\nthe backup")
'help me find the backup'
"""

from memoriter.engines.qmd.command import as_argument
from memoriter.engines.qmd.engine import QmdEngine, QmdSettings
from memoriter.engines.qmd.sessions import Exports
from memoriter.engines.qmd.updater import UpdateSchedule

__all__ = ["Exports", "QmdEngine", "QmdSettings", "UpdateSchedule", "as_argument"]
