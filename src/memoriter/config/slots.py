"""The memory slot's names: those that we bring, and those that other packages offer.

Only names are known here: what stands behind one is loaded by ``plugins``. Other packages are looked at only when a
name is not one of ours, because that reads the metadata of everything that is installed.
"""

from __future__ import annotations

GROUP = "memoriter.memory"  #: the entry point group in which other packages offer a memory
OURS = ("memory-core", "memory-lancedb", "memory-full", "none")


def offered() -> tuple[str, ...]:
    """The names that installed packages offer; one of ours cannot be taken over."""
    from importlib.metadata import entry_points

    return tuple(sorted({point.name for point in entry_points(group=GROUP)} - set(OURS)))


def known(name: str) -> str:
    """The name, if something can fill the slot under it; raises `ValueError`, one sentence."""
    if name in OURS:
        return name
    others = offered()
    if name not in others:
        raise ValueError(f"must be one of {', '.join((*OURS, *others))}")
    return name
