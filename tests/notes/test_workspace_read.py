"""Files are read in any encoding, or refused with a message."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoriter.errors import PathRefused, SourceError
from memoriter.notes.workspace import Workspace
from memoriter.records import Document, FoundFile

CHINESE = "今天我们讨论了数据库的备份方案，决定每天凌晨执行。"
TRADITIONAL = "今天我們討論了資料庫的備份方案，決定每天凌晨執行。"


def read(root: Path, data: bytes, **limits: int) -> Document:
    (root / "memory").mkdir(exist_ok=True)
    (root / "memory/a.md").write_bytes(data)
    workspace = Workspace(root, **limits)
    (found,) = workspace.scan().files
    return workspace.read(found)


def test_a_document_is_the_file_at_one_moment(tmp_path: Path) -> None:
    data = "# Notes\n备份\n".encode()
    document = read(tmp_path, data)
    status = (tmp_path / "memory/a.md").stat()
    assert document == Document(
        path="memory/a.md",
        source="memory",
        text="# Notes\n备份\n",
        sha256=hashlib.sha256(data).hexdigest(),
        mtime_ns=status.st_mtime_ns,
        size=len(data),
    )


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        (b"", "", None),
        (b"plain", "plain", None),
        (b"\xef\xbb\xbfwith a mark", "with a mark", None),
        (b"one\r\ntwo\rthree\n", "one\r\ntwo\rthree\n", None),
        (CHINESE.encode("utf-16"), CHINESE, "It was read as UTF-16."),
        (b"\xfe\xff" + CHINESE.encode("utf-16-be"), CHINESE, "It was read as UTF-16."),
        (CHINESE.encode("utf-32"), CHINESE, "It was read as UTF-32."),
        (CHINESE.encode("gb18030"), CHINESE, "Not UTF-8. It was read as gb18030."),
        ("备份".encode("gbk"), "备份", "Not UTF-8. It was read as gb18030."),
        (TRADITIONAL.encode("big5"), TRADITIONAL, "Not UTF-8. It was read as big5."),
        (
            "Café, déjà vu, naïve résumé".encode("cp1252"),
            "Café, déjà vu, naïve résumé",
            "Not UTF-8. It was read as cp1252.",
        ),
        ("“Grüße”".encode("cp1252"), "“Grüße”", "Not UTF-8. It was read as cp1252."),
        (b"a\x81b", "a\x81b", "Not UTF-8. It was read as latin-1."),
        (
            CHINESE.encode() + b"\xff",
            CHINESE + "\ufffd",
            "It was read as UTF-8, with 1 damaged character.",
        ),
    ],
)
def test_bytes_become_text(tmp_path: Path, data: bytes, text: str, note: str | None) -> None:
    document = read(tmp_path, data)
    assert (document.text, document.note) == (text, note)


def test_a_binary_file_is_refused_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^Not a text file: it contains NUL bytes\.$"):
        read(tmp_path, b"\x89PNG\0\0\0")


def test_only_the_first_complete_lines_of_a_huge_file_are_read(tmp_path: Path) -> None:
    data = b"line\n" * 1000
    document = read(tmp_path, data, max_bytes=1024)
    assert document.text == "line\n" * 204
    assert document.size == 5000
    assert document.note == "only the first 0.000977 MiB of 0.00477 MiB are indexed"
    assert document.sha256 != read(tmp_path, data + b"line\n", max_bytes=1024).sha256


def test_a_huge_line_is_cut_between_characters(tmp_path: Path) -> None:
    assert read(tmp_path, "备份".encode() * 1000, max_bytes=1000).text == "备份" * 166 + "备"
    assert read(tmp_path, ("备份" * 1000).encode("utf-16"), max_bytes=1001).text == "备份" * 249 + "备"


def test_a_sparse_file_of_two_gigabytes_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    with (tmp_path / "memory/a.md").open("wb") as file:
        file.write(b"head\n")
        file.truncate(2 << 30)
    workspace = Workspace(tmp_path)
    with pytest.raises(SourceError, match="NUL"):
        workspace.read(workspace.scan().files[0])


def test_a_removed_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("x")
    workspace = Workspace(tmp_path)
    (found,) = workspace.scan().files
    (tmp_path / "MEMORY.md").unlink()
    with pytest.raises(SourceError, match=r"^The file was removed before it could be read\.$"):
        workspace.read(found)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("x")
    (tmp_path / "MEMORY.md").chmod(0)
    workspace = Workspace(tmp_path)
    with pytest.raises(SourceError, match=r"^The file cannot be read: permission denied\.$"):
        workspace.read(workspace.scan().files[0])


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")
def test_a_file_that_changed_its_type_since_the_scan_is_refused(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    note, secret = tmp_path / "work/MEMORY.md", tmp_path / "secret.md"
    note.write_text("note")
    secret.write_text("secret")
    workspace = Workspace(tmp_path / "work")
    (found,) = workspace.scan().files
    note.unlink()
    note.symlink_to(secret)
    with pytest.raises(PathRefused, match="became a symbolic link"):
        workspace.read(found)
    note.unlink()
    os.mkfifo(note)
    with pytest.raises(PathRefused, match=r"^Not a regular file\.$"):
        workspace.read(found)


def test_only_files_of_the_workspace_are_read(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    found = FoundFile("memory/a.md", "memory", tmp_path / "secret.md", 0, 0)
    with pytest.raises(PathRefused):
        Workspace(tmp_path / "work").read(found)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(max_size=80).map(lambda text: text.encode("utf-8")))
def test_any_bytes_give_a_document_or_an_error_message(tmp_path: Path, data: bytes) -> None:
    if b"\0" in data[:120] and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        with pytest.raises(SourceError, match="Not a text file"):
            read(tmp_path, data, max_bytes=120)
        return
    document = read(tmp_path, data, max_bytes=120)
    assert document.size == len(data)
    assert document.text.encode("utf-8").decode("utf-8") == document.text  # valid characters only


def test_an_extra_path_that_becomes_a_link_out_of_the_workspace_is_not_read(tmp_path: Path) -> None:
    root, outside = tmp_path / "ws", tmp_path / "outside"
    for folder in (root / "docs", outside):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(folder.name)
    source = Workspace(root, extra_paths=[Path("docs")])
    (found,) = source.scan().files
    (root / "docs").rename(root / "old")
    (root / "docs").symlink_to(outside, target_is_directory=True)
    with pytest.raises(SourceError):
        source.read(found)
    with pytest.raises(SourceError):
        source.excerpt("docs/a.md")
    listed = source.scan()
    assert listed.files == ()
    reasons = [problem.reason for problem in listed.problems if problem.path.endswith("docs")]
    assert reasons == ["The path became a link out of the workspace. It was not read."]
