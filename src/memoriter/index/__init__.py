"""Keeping indexes up to date: `sync` for files, `follow` for entries and items, `schedule` for when to sync."""
