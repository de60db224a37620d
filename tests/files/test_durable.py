"""Atomic writes: a file is completely on disk, or it is unchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoriter.files import durable


@pytest.mark.posix("folders are not synced there")
def test_a_file_and_its_new_folders_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, sync = list[int](), os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    file = tmp_path / "one" / "two" / "file.json"
    assert durable.write(file, b"{}")
    in_order = (tmp_path, tmp_path / "one", file, tmp_path / "one" / "two")
    assert synced == [place.stat().st_ino for place in in_order]
    assert file.read_bytes() == b"{}"


@pytest.mark.posix("files have no modes")
@pytest.mark.parametrize("umask", [0o000, 0o077, 0o277])
def test_a_file_is_private_unless_a_mode_is_given(tmp_path: Path, umask: int) -> None:
    file, open_to_all = tmp_path / "new" / "file", tmp_path / "open"
    durable.make_folder(file.parent)
    before = os.umask(umask)
    try:
        durable.write(file, b"a")
        durable.write(open_to_all, b"b", mode=0o644)
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (file.parent, file, open_to_all)]
    assert modes == [0o700, 0o600, 0o644]


def test_a_cancelled_write_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    durable.write(file, b"before")
    assert not durable.write(file, b"after", unless=lambda: True)
    assert (file.read_bytes(), list(tmp_path.iterdir())) == (b"before", [file])


def test_a_failed_writer_leaves_no_temporary_file(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise OSError("the source went away")

    with pytest.raises(OSError, match="went away"):
        durable.write_beside(tmp_path / "file", pieces())
    assert list(tmp_path.iterdir()) == []


def test_a_long_name_does_not_break_the_temporary_file(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    durable.write(file, b"a")
    assert list(tmp_path.iterdir()) == [file]
