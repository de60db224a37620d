"""What did another memory leave behind? Found, previewed, and taken in without overwriting anything."""

from recollect.importing.openclaw import OpenClaw

__all__ = ["OpenClaw"]
