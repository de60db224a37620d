"""Which files a workspace lists, which it leaves out, and why."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from memoriter.notes.workspace import Workspace
from memoriter.records import FoundFile, Problem

needs_links = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")
OUT = "The symbolic link leads out of the workspace. It was not followed."
BACK = "The symbolic link leads back to a folder above it. It was not followed."
SPECIAL = "This is a pipe, socket or device, not a file. It was left out."


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"# {path}\n", encoding="utf-8")


def listed(root: Path, **settings: object) -> list[str]:
    return [found.path for found in Workspace(root, **settings).scan().files]


@pytest.mark.requirement("B1", "E4")
def test_core_file_and_markdown_in_the_memory_folder_are_listed(tmp_path: Path) -> None:
    write(tmp_path, "memory/f.txt", "memory/g.markdown", "memory/h.Mdx")
    write(tmp_path, "MEMORY.md", "memory/b.md", "memory/a/deep/c.MD", "memory/日志/二月.md")
    write(
        tmp_path,
        "README.md",
        "other/d.md",
        "memory/e.pdf",
        "memory/.hidden.md",
        "memory/.git/f.md",
        "memory/x.md/g.md",
    )
    scan = Workspace(tmp_path).scan()
    assert [found.path for found in scan.files] == [
        "MEMORY.md",
        "memory/a/deep/c.MD",
        "memory/b.md",
        "memory/f.txt",
        "memory/g.markdown",
        "memory/h.Mdx",
        "memory/x.md/g.md",
        "memory/日志/二月.md",
    ]
    assert scan.problems == ()


def test_a_listed_file_has_its_size_and_time(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md")
    os.utime(tmp_path / "memory/a.md", ns=(100, 2_000_000_300))
    real = Path(os.path.realpath(tmp_path))
    assert Workspace(tmp_path).scan().files == (
        FoundFile("memory/a.md", "memory", real / "memory/a.md", mtime_ns=2_000_000_300, size=14),
    )


def test_two_spellings_of_one_core_file_are_listed_once(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md")
    with contextlib.suppress(FileExistsError):  # a case-insensitive file system has both
        os.link(tmp_path / "MEMORY.md", tmp_path / "memory.md")
    assert listed(tmp_path) == ["MEMORY.md"]


@pytest.mark.posix("names that differ in case")
def test_two_core_files_whose_names_differ_in_case_are_both_listed(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "memory.md")
    assert listed(tmp_path) == ["MEMORY.md", "memory.md"]


def test_a_missing_workspace_is_a_problem_and_an_empty_one_is_not(tmp_path: Path) -> None:
    assert Workspace(tmp_path).scan().problems == ()
    missing = tmp_path / "missing"
    assert Workspace(missing).scan().problems == (Problem(str(missing), "The path does not exist."),)


@pytest.mark.requirement("B1")
def test_extra_paths_are_files_or_folders_with_patterns(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "outside"
    write(
        root, "MEMORY.md", "notes/a.md", "notes/b.rst", "notes/sub/c.md", "notes/.d.md", "docs/e.rst", "f.org"
    )
    write(outside, "g.md", "h.rst")
    extra = [Path("notes"), root / "f.org", outside, tmp_path / "nowhere"]
    scan = Workspace(root, extra_paths=extra).scan()
    assert [found.path for found in scan.files] == sorted(
        ["MEMORY.md", "f.org", "notes/a.md", "notes/sub/c.md", (outside / "g.md").as_posix()]
    )
    assert scan.problems == (Problem(str(tmp_path / "nowhere"), "The path does not exist."),)
    assert listed(root, extra_paths=extra[:1], patterns=["*.rst", "sub/*.md"]) == [
        "MEMORY.md",
        "notes/b.rst",
        "notes/sub/c.md",
    ]


def test_an_extra_path_inside_the_memory_folder_adds_nothing(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "memory/a.md")
    assert listed(tmp_path, extra_paths=[Path("memory"), Path("MEMORY.md")]) == ["MEMORY.md", "memory/a.md"]


@needs_links
def test_an_extra_path_may_be_a_link(tmp_path: Path) -> None:
    write(tmp_path, "work/MEMORY.md", "elsewhere/a.md")
    (tmp_path / "work/notes").symlink_to(tmp_path / "elsewhere")
    workspace = Workspace(tmp_path / "work", extra_paths=[Path("notes")])
    scan = workspace.scan()
    assert [found.path for found in scan.files] == ["MEMORY.md", "notes/a.md"]
    assert workspace.read(scan.files[1]).text == workspace.excerpt("notes/a.md").text + "\n"


def test_the_whole_workspace_may_be_an_extra_path(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "README.md", "memory/a.md", "docs/b.md")
    assert listed(tmp_path, extra_paths=[tmp_path]) == ["MEMORY.md", "README.md", "docs/b.md", "memory/a.md"]


@needs_links
def test_a_symlink_that_leaves_the_workspace_is_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "work"
    write(root, "memory/a.md")
    write(tmp_path, "secret/s.md")
    (root / "memory/file.md").symlink_to(tmp_path / "secret/s.md")
    (root / "memory/folder").symlink_to(tmp_path / "secret")
    (root / "memory/picture.png").symlink_to(tmp_path / "secret/s.md")
    (root / "memory/gone.md").symlink_to(tmp_path / "nothing")
    scan = Workspace(root).scan()
    assert [found.path for found in scan.files] == ["memory/a.md"]
    assert scan.problems == (
        Problem("memory/file.md", OUT),
        Problem("memory/folder", OUT),
        Problem("memory/gone.md", "Broken symbolic link. It was not followed."),
    )


@needs_links
def test_a_memory_folder_that_links_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    write(tmp_path, "elsewhere/a.md")
    (tmp_path / "work/memory").symlink_to(tmp_path / "elsewhere")
    scan = Workspace(tmp_path / "work").scan()
    assert (scan.files, scan.problems) == ((), (Problem("memory", OUT),))


@needs_links
def test_symlinks_inside_the_workspace_are_followed_once_without_loops(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "notes/b.md", "notes/.c.md", "key.pem")
    (tmp_path / "memory/again.md").symlink_to("a.md")
    (tmp_path / "memory/notes").symlink_to("../notes")
    (tmp_path / "memory/loop").symlink_to(".")
    (tmp_path / "memory/up").symlink_to("..")
    (tmp_path / "memory/round.md").symlink_to("round.md")
    (tmp_path / "memory/hidden.md").symlink_to("../notes/.c.md")
    (tmp_path / "memory/key.md").symlink_to("../key.pem")
    scan = Workspace(tmp_path).scan()
    assert [found.path for found in scan.files] == ["memory/a.md", "memory/notes/b.md"]
    other = "The symbolic link leads to a hidden file or another file type. It was not followed."
    assert scan.problems == (
        Problem("memory/hidden.md", other),
        Problem("memory/key.md", other),
        Problem("memory/loop", BACK),
        Problem("memory/round.md", "Broken symbolic link. It was not followed."),
        Problem("memory/up", BACK),
    )


@needs_links
def test_pipes_and_sockets_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md")
    os.mkfifo(tmp_path / "memory/pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "memory/socket.md"))
        scan = Workspace(tmp_path).scan()
    assert [found.path for found in scan.files] == ["memory/a.md"]
    assert scan.problems == (Problem("memory/pipe.md", SPECIAL), Problem("memory/socket.md", SPECIAL))


@needs_links
def test_names_that_cannot_be_cited_are_reported(tmp_path: Path) -> None:
    write(
        tmp_path, "memory/a.md", "memory/new\nline.md", "memory/全\u3000角.md", "memory/" + "n" * 252 + ".md"
    )
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/memory/\xff.md")).write_text("x")
    scan = Workspace(tmp_path).scan()
    assert [found.path for found in scan.files] == [
        "memory/a.md",
        "memory/" + "n" * 252 + ".md",
        "memory/全\u3000角.md",
    ]
    reason = "The name cannot be cited: it is not valid UTF-8 or contains a line break."
    assert scan.problems == (Problem("memory/\\xff.md", reason), Problem("memory/new\\nline.md", reason))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_folder_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "memory/closed/b.md")
    (tmp_path / "memory/closed").chmod(0)
    try:
        scan = Workspace(tmp_path).scan()
    finally:
        (tmp_path / "memory/closed").chmod(0o700)
    assert [found.path for found in scan.files] == ["memory/a.md"]
    assert scan.problems == (Problem("memory/closed", "The folder cannot be listed: permission denied."),)


def test_many_files_in_many_folders_are_listed(tmp_path: Path) -> None:
    for folder in range(10):
        (tmp_path / f"memory/{folder}").mkdir(parents=True)
        for number in range(200):
            (tmp_path / f"memory/{folder}/{number}.md").touch()
    assert len(Workspace(tmp_path).scan().files) == 2000
