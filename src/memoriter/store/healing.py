"""Setting a broken derived database aside, so that a new one can begin in its place.

It does not judge whether a database is broken, and it must never be used on a store of record.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from memoriter.errors import StoreError
from memoriter.store.connection import SIDE_FILES, Inode, inode_of
from memoriter.store.files import store_lock

KEPT = 2
"""Broken files that are kept for whoever wants to look at them."""


def set_aside(path: Path, *, broken: Inode | None, timeout_s: float) -> str | None:
    """Rename the database and what lies beside it to ``<name>.broken-<n>``; the new name.

    ``broken`` is the file that was found broken: when another one stands at the path, or none, somebody else
    has been here already, and nothing is done.
    """
    with store_lock(path, timeout_s=timeout_s):
        if broken is None or inode_of(path) != broken:
            return None
        number = max(_numbers(path), default=0) + 1
        aside = path.with_name(f"{path.name}.broken-{number}")
        try:
            path.rename(aside)
        except OSError as error:
            raise StoreError(f"{path}: is broken and cannot be set aside ({error.strerror})") from error
        for suffix in SIDE_FILES:
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
        _forget_old(path)
        return aside.name


def _numbers(path: Path) -> list[int]:
    pattern = re.compile(re.escape(path.name) + r"\.broken-(\d+)")
    return sorted(
        int(found[1]) for place in path.parent.iterdir() if (found := pattern.fullmatch(place.name))
    )


def _forget_old(path: Path) -> None:
    for number in _numbers(path)[:-KEPT]:
        for suffix in ("", *SIDE_FILES):
            with contextlib.suppress(OSError):  # a folder, or gone already: it does no harm where it is
                path.with_name(f"{path.name}.broken-{number}{suffix}").unlink()
