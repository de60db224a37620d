"""Paths that leave a folder, hide or mislead are refused, and links below the folder are never followed."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoriter.errors import NotFound, PathRefused, SourceError
from memoriter.files import paths, platform
from memoriter.files.paths import MAX_DEPTH, MAX_NAME_BYTES, open_folder, open_inside, path_parts

OUTSIDE = "is refused. Use a path relative to the folder, without '..' and hidden names."
LINK = "is not a folder, or it is a symbolic link. Links are not followed."


@pytest.fixture(params=["as on Linux", "as on other systems"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with relative opening, and with the checks for systems that lack it."""
    if request.param != "as on Linux":
        monkeypatch.setattr(platform, "CAN_PIN", False)
        monkeypatch.setattr(platform, "CAN_WALK", False)
    return str(request.param)


@pytest.fixture(autouse=True)
def no_descriptor_is_left_open() -> Iterator[None]:
    before = open_descriptors()
    yield
    assert open_descriptors() == before


def open_descriptors() -> int:
    listed = Path("/proc/self/fd")  # under Wine, it lists the files of Wine too
    return len(list(listed.iterdir())) if sys.platform == "linux" else 0


def message(error: BaseException | None) -> str:
    assert error is not None
    return str(error.args[0])


# ---- names ----------------------------------------------------------------------------------------------------


def test_a_relative_path_is_split_into_its_parts() -> None:
    assert path_parts("a/b c/d.md") == ("a", "b c", "d.md")
    assert path_parts("/a//b/") == ("a", "b")
    assert path_parts("") == ()


@pytest.mark.parametrize("path", ["..", "a/../b", ".git/config", "a/ b", "a/b ", "a\\b", "C:/x", "a:b"])
def test_hidden_and_ambiguous_parts_are_refused(path: str) -> None:
    with pytest.raises(PathRefused) as refused:
        path_parts(path)
    assert message(refused.value) == f"{path!r} {OUTSIDE}"


@pytest.mark.parametrize("char", ["\x07", "\u200b", "\u202e", "\ud800", "\u2028", "\u2029"])
def test_invisible_characters_are_refused(char: str) -> None:
    with pytest.raises(PathRefused) as refused:
        path_parts(f"a{char}b")
    assert message(refused.value) == f"{f'a{char}b'!r} is refused because it contains invisible characters."


def test_a_name_may_have_200_bytes_and_a_path_16_parts() -> None:
    assert path_parts("n" * MAX_NAME_BYTES) == ("n" * 200,)
    assert path_parts("/".join("n" * MAX_DEPTH)) == ("n",) * 16
    with pytest.raises(PathRefused) as long:
        path_parts("n" * 201)
    assert message(long.value) == f"{'n' * 80!r}… is refused because a name is longer than 200 bytes."
    with pytest.raises(PathRefused) as deep:
        path_parts("/".join("n" * 17))
    assert (
        message(deep.value)
        == "'n/n/n/n/n/n/n/n/n/n/n/n/n/n/n/n/n'… is refused because it has more than 16 parts."
    )


# ---- folders --------------------------------------------------------------------------------------------------


def test_a_folder_below_the_root_is_opened(system: str, tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    with open_folder(tmp_path, ("a", "b")) as folder:
        (folder / "x").write_text("hello")
    assert (tmp_path / "a/b/x").read_text() == "hello"
    with open_folder(tmp_path, ()) as folder:
        assert [item.name for item in folder.iterdir()] == ["a"]


@pytest.mark.posix("files have no modes")
def test_missing_folders_are_created_on_request_for_the_owner_only(system: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    with open_folder(tmp_path, ("a", "b"), make=True) as folder:
        (folder / "x").write_text("hello")
    assert (tmp_path / "a/b/x").read_text() == "hello"
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


def test_a_missing_folder_is_not_created_without_request(system: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound) as missing, open_folder(tmp_path, ("a",)):
        pass
    assert message(missing.value) == "The folder 'a' does not exist."
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_folder_is_refused(system: str, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "root/a").mkdir(parents=True)
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    for make in (False, True):
        with pytest.raises(PathRefused) as refused, open_folder(tmp_path / "root", ("link",), make=make):
            pass
        assert message(refused.value) == f"'link' {LINK}"


def test_a_file_is_not_a_folder(system: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(PathRefused) as refused, open_folder(tmp_path, ("file",)):
        pass
    assert message(refused.value) == f"'file' {LINK}"
    with pytest.raises(NotFound) as missing, open_folder(tmp_path / "gone", ()):
        pass
    assert message(missing.value) == "The folder 'gone' does not exist."


def test_a_folder_that_cannot_be_opened_is_refused_with_the_reason() -> None:
    error = paths._folder_error(PermissionError(13, "Permission denied"), "a")
    assert (type(error), message(error)) == (PathRefused, "'a' cannot be opened: permission denied.")
    assert type(paths._folder_error(FileNotFoundError(2, "x"), "a")) is NotFound


@pytest.mark.posix("folders are not held open")
def test_an_open_folder_is_the_same_one_after_it_was_replaced_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "root/a").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    with open_folder(tmp_path / "root", ("a",)) as folder:
        (tmp_path / "root/a").rename(tmp_path / "root/moved")
        (tmp_path / "root/a").symlink_to(tmp_path / "outside")
        (folder / "x").write_text("hello")
    assert (tmp_path / "root/moved/x").read_text() == "hello"
    assert list((tmp_path / "outside").iterdir()) == []


# ---- files ----------------------------------------------------------------------------------------------------


def read(root: Path, relative: str) -> bytes:
    with open_inside(str(root.resolve()), relative) as descriptor:
        return os.read(descriptor, 100)


def test_a_file_below_the_root_is_read(system: str, tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/x").write_text("hello")
    (tmp_path / "y").write_text("there")
    assert [read(tmp_path, "a/b/x"), read(tmp_path, "y")] == [b"hello", b"there"]


def test_links_to_files_and_in_the_path_are_refused(system: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "a/up").symlink_to(tmp_path)
    (root / "a/file").write_text("x")
    for relative in ("link", "a/up/secret"):
        with pytest.raises(PathRefused) as refused:
            read(root, relative)
        expected = "The file or a part of its path became a symbolic link. Links are not followed."
        assert message(refused.value) == expected
    with pytest.raises(PathRefused):
        read(root, "a/file/below")


def test_links_in_the_path_of_the_root_are_refused(system: str, tmp_path: Path) -> None:
    """A folder may be replaced by a link after its path was resolved."""
    root = tmp_path.resolve() / "parent" / "root"
    root.mkdir(parents=True)
    (root / "x.md").write_text("secret")
    (tmp_path / "parent").rename(tmp_path / "elsewhere")
    (tmp_path / "parent").symlink_to("elsewhere")
    with pytest.raises(PathRefused, match="became a symbolic link"), open_inside(str(root), "x.md"):
        pass
    (tmp_path / "parent").unlink()
    (tmp_path / "parent").mkdir()
    root.symlink_to("../elsewhere/root")
    with pytest.raises(PathRefused, match="became a symbolic link"), open_inside(str(root), "x.md"):
        pass


@pytest.mark.posix("named pipes and sockets in folders")
def test_a_missing_file_a_folder_and_a_socket_are_not_read(system: str, tmp_path: Path) -> None:
    import socket

    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
    refusals = {}
    for name in ("gone", "folder", "pipe", "socket"):
        with pytest.raises(SourceError) as refused:
            read(tmp_path, name)
        refusals[name] = (type(refused.value), message(refused.value))
    assert refusals == {
        "gone": (SourceError, "The file was removed before it could be read."),
        "folder": (PathRefused, "Not a regular file."),
        "pipe": (PathRefused, "Not a regular file."),
        "socket": (PathRefused, "Not a regular file."),
    }


def test_another_error_names_its_reason() -> None:
    error = paths._file_error(PermissionError(13, "Permission denied"))
    assert (type(error), message(error)) == (SourceError, "The file cannot be read: permission denied.")
    for code in (errno.ENOTDIR, errno.EMLINK, errno.ELOOP):  # EMLINK is FreeBSD's answer to a link
        assert type(paths._file_error(OSError(code, "x"))) is PathRefused
        assert type(paths._folder_error(OSError(code, "x"), "a")) is PathRefused
        assert "Links are not followed" in message(paths._folder_error(OSError(code, "x"), "a"))


@pytest.mark.posix("named pipes")
def test_a_pipe_without_a_writer_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PathRefused):
        read(tmp_path, "pipe")


def test_descriptors_are_closed_in_programs_that_are_started(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    with open_inside(str(tmp_path), "x") as descriptor:
        assert not os.get_inheritable(descriptor)
