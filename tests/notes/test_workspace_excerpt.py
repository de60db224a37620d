"""Excerpts of files inside the workspace, and never of files outside."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoriter.config import load
from memoriter.errors import NotFound, PathRefused, SourceError
from memoriter.notes.workspace import Workspace
from memoriter.records import Excerpt

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")
SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "memory/sub").mkdir(parents=True)
    (work / "MEMORY.md").write_text("core")
    (work / "memory/sub/a.md").write_text("one\ntwo\r\nthree\n")
    (work / "memory/.hidden.md").write_text(SECRET)
    (work / "memory/b.pem").write_text(SECRET)
    (work / "README.md").write_text(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.md").write_text(SECRET)
    return work


def test_an_excerpt_contains_the_requested_lines(root: Path) -> None:
    excerpt = Workspace(root).excerpt
    path = "memory/sub/a.md"
    assert excerpt(path) == Excerpt(path, "one\ntwo\nthree", 1, 3, 3)
    assert excerpt(path, 2) == Excerpt(path, "two\nthree", 2, 3, 3)
    assert excerpt(path, 2, 1) == Excerpt(path, "two", 2, 2, 3)
    assert excerpt(path, 3, 100) == Excerpt(path, "three", 3, 3, 3)
    assert excerpt(path, 9) == Excerpt(path, "", 9, 8, 3)
    assert excerpt(f"./{path}", 1, 1) == excerpt(str(root / path), 1, 1) == Excerpt(path, "one", 1, 1, 3)


def test_a_long_file_is_truncated_by_default(root: Path) -> None:
    (root / "memory/long.md").write_text("line\n" * 1000)
    (root / "memory/wide.md").write_text("x" * 100_000 + "\nend")
    excerpt = Workspace(root).excerpt
    assert (excerpt("memory/long.md").end_line, excerpt("memory/long.md").total_lines) == (200, 1000)
    assert excerpt("memory/long.md", 1, 1000).end_line == 1000
    assert excerpt("memory/wide.md") == Excerpt("memory/wide.md", "x" * 40_000, 1, 1, 2)


@pytest.mark.parametrize(("start", "lines"), [(0, None), (-1, None), (1, 0), (1, -5)])
def test_lines_are_counted_from_one(root: Path, start: int, lines: int | None) -> None:
    with pytest.raises(SourceError, match=r"^Invalid line range"):
        Workspace(root).excerpt("MEMORY.md", start, lines)


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "/",
        "memory",
        "memory/",
        "memory/sub",
        "../../etc/passwd",
        "../outside/a.md",
        "memory/../..",
        "memory/../README.md",
        "memory/../../outside/a.md",
        "memory/./sub/a.md",
        "memory//sub/a.md",
        "/etc/passwd",
        "/dev/zero",
        "/proc/self/environ",
        "~/.ssh/id_rsa",
        "README.md",
        "memory/b.pem",
        "memory/.hidden.md",
        ".memoriter/config.md",
        "memory/a.md\0.txt",
        "memory/\ud800.md",
        "memory/new\nline.md",
        "MEMORY.md/",
        "MEMORY.MD",
        "file:///etc/passwd",
        "memory\\..\\..\\x.md",
    ],
)
def test_other_paths_are_refused_with_a_message(root: Path, path: str) -> None:
    with pytest.raises((PathRefused, NotFound)) as refusal:
        Workspace(root).excerpt(path)
    assert str(refusal.value).endswith((".", "?"))
    assert refusal.type is PathRefused or path in ("MEMORY.MD", "memory\\..\\..\\x.md")


@pytest.mark.requirement("C5")
@posix
def test_outside_links_pipes_and_folders_are_refused(root: Path, tmp_path: Path) -> None:
    (root / "memory/link.md").symlink_to(tmp_path / "outside/a.md")
    (root / "memory/folder").symlink_to(tmp_path / "outside")
    (root / "memory/key.md").symlink_to(root / "memory/b.pem")
    (root / "memory/dir.md").mkdir()
    os.mkfifo(root / "memory/pipe.md")
    for path in ("memory/link.md", "memory/folder/a.md", "memory/key.md", "memory/dir.md", "memory/pipe.md"):
        with pytest.raises(PathRefused, match=rf"^Cannot read '{path}'\. "):
            Workspace(root).excerpt(path)


@posix
def test_a_link_inside_the_workspace_is_followed(root: Path) -> None:
    (root / "memory/link.md").symlink_to("sub/a.md")
    assert Workspace(root).excerpt("memory/link.md", 1, 1) == Excerpt("memory/link.md", "one", 1, 1, 3)


def test_extra_paths_can_be_read_as_they_are_cited(root: Path, tmp_path: Path) -> None:
    workspace = Workspace(root, extra_paths=[tmp_path / "outside"])
    path = (tmp_path / "outside/a.md").as_posix()
    assert workspace.excerpt(path) == Excerpt(path, SECRET, 1, 1, 1)
    with pytest.raises(PathRefused):
        Workspace(root).excerpt(path)


def test_a_missing_file_suggests_the_nearest_name(root: Path) -> None:
    with pytest.raises(
        NotFound, match=r"^'memory/sub/aa\.md' does not exist\. Did you mean 'memory/sub/a\.md'\?$"
    ):
        Workspace(root).excerpt("memory/sub/aa.md")
    with pytest.raises(NotFound, match=r"^'memory/zzzzzzzzzzzz\.md' does not exist\.$"):
        Workspace(root).excerpt("memory/zzzzzzzzzzzz.md")


def test_a_note_is_cited_with_the_characters_of_its_name(root: Path) -> None:
    """Programs of macOS write letters and their marks apart. Its disks know such a name in either form."""
    written, typed = "memory/Zoe\u0308.md", "memory/Zo\u00eb.md"
    (root / written).write_text("Zoë likes tea.")
    workspace = Workspace(root)
    assert written in [file.path for file in workspace.scan().files]
    assert workspace.excerpt(written) == Excerpt(written, "Zoë likes tea.", 1, 1, 1)
    if sys.platform != "darwin":
        with pytest.raises(NotFound, match=f"Did you mean '{written}'"):
            workspace.excerpt(typed)


@pytest.mark.posix("names that differ in case")
def test_a_file_in_another_case_is_suggested(root: Path) -> None:
    (root / "MEMORY.md").rename(root / "memory.md")
    with pytest.raises(NotFound, match=r"Did you mean 'memory\.md'\?$"):
        Workspace(root).excerpt("MEMORY.md")


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows knows two separators and ignores case")
def test_on_windows_an_absolute_path_is_read_in_any_form(root: Path) -> None:
    path, read = root / "memory/sub/a.md", Workspace(root).excerpt
    excerpts = [read(form, 1, 1) for form in (str(path), path.as_posix(), str(path).replace("C:", "c:"))]
    assert excerpts == [Excerpt("memory/sub/a.md", "one", 1, 1, 3)] * 3


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows knows two separators")
@pytest.mark.parametrize("path", ["..\\a.md", "C:\\elsewhere\\a.md", "memory\\none.md"])
def test_on_windows_a_message_shows_the_path_with_slashes(root: Path, path: str) -> None:
    with pytest.raises((PathRefused, NotFound), match=f"^'{path.replace(chr(92), '/')}' "):
        Workspace(root).excerpt(path)


@pytest.mark.skipif(sys.platform != "win32", reason="only Windows has folders of other machines")
@pytest.mark.parametrize("share", ["\\\\server\\share\\notes", "//server/share/notes"])
def test_on_windows_a_note_on_another_machine_is_found_by_its_path(share: str, tmp_path: Path) -> None:
    workspace = load(arguments={"workspace": share, "home": tmp_path}, environ={}).workspace
    assert str(workspace) == "\\\\server\\share\\notes"
    for form in ("memory/a.md", f"{workspace}\\memory\\a.md", "//SERVER/share/Notes/memory/a.md"):
        with pytest.raises(NotFound, match=r"^'memory/a\.md' does not exist\.$"):
            Workspace(workspace).excerpt(form)
    with pytest.raises(PathRefused):
        Workspace(workspace).excerpt("//other/share/notes/memory/a.md")


@pytest.mark.requirement("C5")
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(["..", ".", "", "memory", "sub", "a.md", "outside", "~", "\0", "MEMORY.md", "//"]),
        max_size=7,
    )
)
def test_no_path_leads_outside(root: Path, parts: list[str]) -> None:
    for path in ("/".join(parts), f"{root}/" + "/".join(parts)):
        with suppress(PathRefused, NotFound):
            assert SECRET not in Workspace(root).excerpt(path).text


# ---- while files are swapped ----------------------------------------------------------------------------------


class Swap:
    """Replaces a file or folder with a link to the outside, and restores it."""

    def __init__(self, place: Path, target: Path) -> None:
        self.place, self.kept, self.link = place, place.with_name("kept"), place.with_name("link")
        self.link.symlink_to(target)

    def there(self) -> None:
        self.place.rename(self.kept)
        self.link.rename(self.place)

    def back(self) -> None:
        self.place.rename(self.link)
        self.kept.rename(self.place)


def swaps(root: Path, tmp_path: Path) -> list[Swap]:
    sub = root / "memory/sub"
    return [Swap(sub, tmp_path / "outside"), Swap(sub / "a.md", tmp_path / "outside/a.md")]


@posix
@pytest.mark.parametrize("which", ["folder", "file"])
def test_a_swap_before_any_open_leaks_nothing(
    root: Path, tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = swaps(root, tmp_path)[which == "file"]
    open_file, outcomes = os.open, []
    for moment in range(4):  # the workspace, memory, sub, a.md
        calls = iter(range(100))

        def open_after_swap(*args: object, moment: int = moment, calls=calls, **kwargs: object) -> int:
            if next(calls) == moment:
                swap.there()
            return open_file(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", open_after_swap)
            try:
                outcomes.append(Workspace(root).excerpt("memory/sub/a.md").text)
            except SourceError as refusal:
                outcomes.append(type(refusal).__name__)
        swap.back()
    late = "one\ntwo\nthree" if which == "folder" else "PathRefused"  # by then, the right folder is open
    assert outcomes == ["PathRefused", "PathRefused", "PathRefused", late]


@posix
def test_control_a_reader_that_checks_and_then_opens_leaks(root: Path, tmp_path: Path) -> None:
    """The control: the same swap, between check and open of a reader that trusts the path."""
    swap = swaps(root, tmp_path)[0]
    path = (root / "memory/sub/a.md").resolve()
    assert path.is_relative_to(root.resolve())
    swap.there()
    assert path.read_text() == SECRET


@posix
def test_a_thread_that_keeps_swapping_files_leaks_nothing(root: Path, tmp_path: Path) -> None:
    folder, file = swaps(root, tmp_path)
    done = threading.Event()

    def swap() -> None:
        for _ in range(4000):
            for each in (folder, file):
                each.there()
                each.back()
        done.set()

    workspace, read, refused = Workspace(root), 0, 0
    thread = threading.Thread(target=swap)
    thread.start()
    while not done.is_set():
        try:
            assert workspace.excerpt("memory/sub/a.md").text == "one\ntwo\nthree"
            read += 1
        except (SourceError, NotFound):
            refused += 1
    thread.join()
    assert workspace.excerpt("memory/sub/a.md").text == "one\ntwo\nthree"
    assert read + refused > 0
