"""Entries: short typed statements that the agent learned, with history.

`Entries` adds, merges, finds and forgets entries. `store.entry_store` is the source of truth. `capture` (rules) and
`extract` (a language model) decide which statements of a turn are stored.
"""

from memoriter.entries.collection import Entries
from memoriter.entries.context import EntryOptions
from memoriter.entries.drafts import Draft

__all__ = ["Draft", "Entries", "EntryOptions"]
