"""What was learned?

`Keeper` remembers, merges, finds and forgets entries. The truth is `store.entries`; keywords and vectors are derived
from it by `following`. What a turn is worth is decided by `capture` (rules) or `extract` (a language model).
"""

from recollect.entries.drafts import Draft
from recollect.entries.keeper import Keeper, Ways

__all__ = ["Draft", "Keeper", "Ways"]
